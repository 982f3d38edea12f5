// reads ROUNDS NANOSECONDS: makes rounds of four clock reads, three in often() and one in seldom(),
// until one of the limits is reached. Prints the number of rounds and the nanoseconds.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func often() int {
	sum := 0
	for i := 0; i < 3; i++ {
		sum += time.Now().Nanosecond()
	}
	return sum
}

//go:noinline
func seldom() time.Time {
	return time.Now().Add(0)
}

var sink int

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	limit, _ := strconv.Atoi(os.Args[2])
	start := time.Now()
	round, passed := 0, 0
	for round < rounds && passed < limit {
		sink += often()
		passed = int(seldom().Sub(start))
		round++
	}
	fmt.Println(round, passed)
}
