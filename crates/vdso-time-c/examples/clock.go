// Reads CLOCK_REALTIME with vdso-time between two reads with Go's own clock.
package main

// #cgo pkg-config: vdso_time
// #include <time.h>
// #include <vdso_time.h>
import "C"

import (
	"fmt"
	"log"
	"time"
)

func main() {
	var now C.struct_vdso_timespec
	before := time.Now().UnixNano()
	status := C.vdso_time_clock_gettime(C.CLOCK_REALTIME, &now)
	after := time.Now().UnixNano()
	nanos := int64(now.tv_sec)*1_000_000_000 + int64(now.tv_nsec)
	if status != 0 || nanos < before || nanos > after {
		log.Fatal(status, before, nanos, after)
	}
	fmt.Println("realtime", time.Unix(0, nanos).UTC())
}
