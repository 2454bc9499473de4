//go:build e2e

package e2e

import "testing"

// TestKill kills the server at 100 random moments while 50 tasks run with tools and
// approvals.
func TestKill(t *testing.T) { crash(t, 100, 48) }

func TestKillMail(t *testing.T) { killMail(t, 40) }
