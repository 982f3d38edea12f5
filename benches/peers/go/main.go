// Times Go's clock reads and the vDSO's functions, back to back, as benches/src/harness does.
//
//	helper ROUNDS OFFSETS ROW...
//
// The arguments and the output are those of c/helper.c.
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

//go:linkname nanotime runtime.nanotime
func nanotime() int64

// The answers.
var (
	out      [2]int64
	number   int64
	moment   time.Time
	duration time.Duration
)

type contender struct {
	name string
	loop func(calls int64)
}

var now = contender{"Go time.Now", func(calls int64) {
	for ; calls > 0; calls-- {
		moment = time.Now()
	}
}}
var since = contender{"Go time.Since", func(calls int64) {
	start := time.Now()
	for ; calls > 0; calls-- {
		duration = time.Since(start)
	}
}}
var nano = contender{"Go nanotime", func(calls int64) {
	for ; calls > 0; calls-- {
		number = nanotime()
	}
}}
var unix = contender{"Go time.Now", func(calls int64) {
	for ; calls > 0; calls-- {
		number = time.Now().Unix()
	}
}}

func nanos(loop func(int64), calls int64) float64 {
	start := nanotime()
	loop(calls)
	return float64(nanotime() - start)
}

func measure(row string, who []contender, rounds int) {
	calls, fastest := make([]int64, len(who)), make([]float64, len(who))
	for at, each := range who {
		fastest[at] = 1e18
		for calls[at] = 1; nanos(each.loop, calls[at]) < 50e3; {
			calls[at] *= 2
		}
	}
	for turn := 0; turn < rounds*len(who); turn++ {
		at := turn % len(who)
		fastest[at] = min(fastest[at], nanos(who[at].loop, calls[at])/float64(calls[at]))
	}
	for at, each := range who {
		fmt.Printf("%s\tback to back\t%s\t%f\n", row, each.name, fastest[at])
	}
}

// The address of the vDSO, from the auxiliary vector.
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
	offsets, image := strings.Split(os.Args[2], ","), base()
	vdso := func(function int, first, second uintptr) contender {
		offset, _ := strconv.ParseUint(offsets[function], 0, 64)
		address := image + uintptr(offset)
		return contender{"direct", func(calls int64) { direct(address, first, second, calls) }}
	}
	place := uintptr(unsafe.Pointer(&out))
	for _, row := range os.Args[3:] {
		switch row {
		case "time()":
			measure(row, []contender{unix, vdso(2, 0, 0)}, rounds)
		case "clock_gettime(REALTIME)":
			measure(row, []contender{now, vdso(0, 0, place)}, rounds)
		case "clock_gettime(MONOTONIC)":
			measure(row, []contender{now, since, nano, vdso(0, 1, place)}, rounds)
		}
	}
}
