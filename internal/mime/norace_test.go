//go:build !race

package mime

// slowdown is what the race detector costs.
const slowdown = 1
