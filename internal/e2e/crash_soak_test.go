//go:build soak

package e2e

import "testing"

// TestKillThousand is TestKill ten times as long, with ten times as many tasks.
func TestKillThousand(t *testing.T) { crash(t, 1000, 480) }

func TestKillMailThousand(t *testing.T) { killMail(t, 1000) }
