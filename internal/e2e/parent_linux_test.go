//go:build linux && (e2e || bench || soak)

package e2e

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill cmd when the test ends without its cleanups, as it does
// when it is interrupted or over its time.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
