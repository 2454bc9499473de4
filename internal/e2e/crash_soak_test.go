//go:build soak

package e2e

import "testing"

// TestKillThousand is TestKill ten times as long.
func TestKillThousand(t *testing.T) { crash(t, 1000) }
