// Go's ways to the time, beside the vDSO's own functions through pointers, timed as benches/src/harness does it.
//
//	helper ROUNDS OFFSETS ROW...
//
// As c/helper.c.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

func direct(function, first, second uintptr, calls int64)
func directIsolated(function, first, second uintptr, calls int64)
func nothingIsolated(calls int64)
func fence()

//go:linkname nanotime runtime.nanotime
func nanotime() int64

// Where answers go.
var (
	place    [2]int64
	number   int64
	moment   time.Time
	duration time.Duration
)

type contender struct {
	name  string
	loops [2]func(calls int64)
	// The loop of fences that is subtracted where calls are isolated.
	empty func(calls int64)
}

func nothing(calls int64) {
	for ; calls > 0; calls-- {
		fence()
	}
}

func floor(function, first, second uintptr) contender {
	return contender{"direct (Go)", [2]func(int64){
		func(calls int64) { direct(function, first, second, calls) },
		func(calls int64) { directIsolated(function, first, second, calls) },
	}, nothingIsolated}
}

var (
	timeNow = contender{"Go time.Now", [2]func(int64){
		func(calls int64) {
			for ; calls > 0; calls-- {
				moment = time.Now()
			}
		},
		func(calls int64) {
			for ; calls > 0; calls-- {
				moment = time.Now()
				fence()
			}
		},
	}, nothing}
	timeSince = contender{"Go time.Since", [2]func(int64){
		func(calls int64) {
			start := time.Now()
			for ; calls > 0; calls-- {
				duration = time.Since(start)
			}
		},
		func(calls int64) {
			start := time.Now()
			for ; calls > 0; calls-- {
				duration = time.Since(start)
				fence()
			}
		},
	}, nothing}
	runtimeNanotime = contender{"Go nanotime", [2]func(int64){
		func(calls int64) {
			for ; calls > 0; calls-- {
				number = nanotime()
			}
		},
		func(calls int64) {
			for ; calls > 0; calls-- {
				number = nanotime()
				fence()
			}
		},
	}, nothing}
	unixSeconds = contender{"Go time.Now", [2]func(int64){
		func(calls int64) {
			for ; calls > 0; calls-- {
				number = time.Now().Unix()
			}
		},
		func(calls int64) {
			for ; calls > 0; calls-- {
				number = time.Now().Unix()
				fence()
			}
		},
	}, nothing}
	nowAndSince = contender{"Go time.Now", [2]func(int64){
		func(calls int64) {
			for ; calls > 0; calls-- {
				duration = time.Since(time.Now())
			}
		},
		func(calls int64) {
			for ; calls > 0; calls-- {
				duration = time.Since(time.Now())
				fence()
			}
		},
	}, nothing}
)

func nanos(loop func(int64), calls int64) float64 {
	start := nanotime()
	loop(calls)
	return float64(nanotime()-start) / float64(calls)
}

const batch = 50e3

func callsOfBatch(loop func(int64)) int64 {
	for calls := int64(1); ; calls *= 2 {
		long := true
		for try := 0; try < 3; try++ {
			long = long && nanos(loop, calls)*float64(calls) >= batch
		}
		if long {
			return calls
		}
	}
}

func measure(row, spacing string, isolated int, who []contender, rounds int) {
	last := who[len(who)-1]
	last.name = "direct again (Go)"
	who = append(who, last)
	type loop struct {
		run   func(int64)
		calls int64
		least float64
	}
	var loops []loop
	for _, each := range who {
		loops = append(loops, loop{run: each.loops[isolated]})
	}
	for _, each := range who {
		loops = append(loops, loop{run: each.empty})
	}
	for at := range loops {
		loops[at].calls = callsOfBatch(loops[at].run)
		loops[at].least = 1e18
	}
	for round := 0; round < rounds; round++ {
		for turn := range loops {
			each := &loops[(round+turn)%len(loops)]
			each.least = min(each.least, nanos(each.run, each.calls))
		}
	}
	for at, each := range who {
		least := loops[at].least
		if isolated == 1 {
			least -= loops[len(who)+at].least
		}
		fmt.Printf("%s\t%s\t%s\t%.6f\n", row, spacing, each.name, least)
	}
}

// The vDSO's address, from the auxiliary vector.
func base() uintptr {
	auxv, _ := os.ReadFile("/proc/self/auxv")
	for ; len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == 33 {
			return uintptr(binary.LittleEndian.Uint64(auxv[8:]))
		}
	}
	return 0
}

func main() {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	rounds, _ := strconv.Atoi(os.Args[1])
	var functions []uintptr
	for _, offset := range strings.Split(os.Args[2], ",") {
		value, _ := strconv.ParseUint(offset, 0, 64)
		functions = append(functions, base()+uintptr(value))
	}
	gettime := func(clock uintptr) contender {
		return floor(functions[0], clock, uintptr(unsafe.Pointer(&place)))
	}
	for _, row := range os.Args[3:] {
		var who []contender
		switch row {
		case "time()":
			who = []contender{unixSeconds, floor(functions[2], 0, 0)}
		case "clock_gettime(REALTIME)":
			who = []contender{timeNow, gettime(0)}
		case "clock_gettime(MONOTONIC)":
			who = []contender{timeNow, timeSince, runtimeNanotime, gettime(1)}
		case "now() and elapsed()":
			who = []contender{nowAndSince, gettime(1)}
		default:
			continue
		}
		for isolated, spacing := range []string{"back to back", "isolated"} {
			measure(row, spacing, isolated, who, rounds)
		}
	}
}
