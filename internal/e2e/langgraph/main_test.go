//go:build bench

package langgraph

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
)

// sideVar makes the test binary our side of one measurement: "w1 10 <data root>".
const sideVar = "PIZZA_LANGGRAPH"

// figures are what one measurement tells, by name. Both sides print them as a line of JSON.
type figures map[string]any

// sides are the measurements of our side. Each gets its own arguments.
var sides = map[string]func(args []string) (figures, error){
	"w1":      sideW1,
	"loop":    sideLoop,
	"w2prep":  sideW2Prep,
	"w2":      sideW2,
	"w3":      sideW3,
	"w5child": sideW5,
	"w6":      sideW6,
	"w7":      sideW7,
	"fill":    sideFill,
	"waiting": sideWaiting,
}

// profileVar names a file for a CPU profile of our side.
const profileVar = "PIZZA_LANGGRAPH_PROFILE"

func profile() (stop func()) {
	path := os.Getenv(profileVar)
	if path == "" {
		return func() {}
	}
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		panic(err) // whoever set the variable watches
	}
	return func() { pprof.StopCPUProfile(); f.Close() }
}

func TestMain(m *testing.M) {
	line := os.Getenv(sideVar)
	if line == "" {
		os.Exit(m.Run())
	}
	args := strings.Fields(line)
	stop := profile()
	out, err := sides[args[0]](args[1:])
	stop()
	if err == nil {
		var b []byte
		if b, err = json.Marshal(out); err == nil {
			fmt.Println(string(b))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
