package main

import "os"

// terminate ends a process; Windows has no signal that asks.
func terminate(p *os.Process) error { return p.Kill() }
