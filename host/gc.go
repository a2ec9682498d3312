package host

import (
	"runtime"
	"runtime/debug"
	heap "runtime/metrics"
)

const (
	// gcPercent is the value for debug.SetGCPercent. With many open conversations, a server uses a tenth less memory
	// than with Go's default of 100. It is not slower, because most of its time is spent in the store.
	gcPercent = 60
	// minHeapBytes is a heap size below which no collection starts. With little live memory, gcPercent alone would
	// cause a hundred collections per second under load, which takes a fifth of the CPU time.
	minHeapBytes = 20 << 20
)

// TuneGarbageCollector tunes the garbage collector of this process as reeve serve does. It is for programs that do
// nothing but run a Host. Call it once.
func TuneGarbageCollector() {
	liveBytes := []heap.Sample{{Name: "/gc/heap/live:bytes"}}
	current := 0
	adjust := func() {
		heap.Read(liveBytes)
		if percent := computeGCPercent(liveBytes[0].Value.Uint64()); percent != current {
			debug.SetGCPercent(percent)
			current = percent
		}
	}
	adjust()
	type cycle struct{ _ *byte } // unreachable at once, so its cleanup runs after the next collection
	var next func()
	next = func() {
		runtime.AddCleanup(&cycle{}, func(int) { adjust(); next() }, 0)
	}
	next()
}

// computeGCPercent returns the GC percent for an amount of live memory.
func computeGCPercent(live uint64) int {
	if live == 0 { // no collection so far
		return gcPercent
	}
	return max(gcPercent, int(minHeapBytes*100/live)-100)
}
