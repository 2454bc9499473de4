//go:build !linux && (e2e || bench || soak)

package e2e

import "os/exec"

// dieWithParent does nothing here: only Linux can tell a process of its parent's end.
func dieWithParent(*exec.Cmd) {}
