package host

import (
	"runtime"
	"runtime/debug"
	heap "runtime/metrics"
)

const (
	// gcPercent is how much of it may gather before it is collected, in percent of what is in use. With many
	// conversations open a server holds a tenth less than by Go's own 100, and is no slower: most of its time is the
	// store's.
	gcPercent = 60
	// minHeapBytes is what the heap may always grow to. A server that has little in use would by its percents alone collect a
	// hundred times a second while it is called, which takes a fifth of its time.
	minHeapBytes = 20 << 20
)

// CollectGarbage has this process collect its garbage as reeve serve does. It is for programs that are nothing but a
// Host, and is called once.
func CollectGarbage() {
	live := []heap.Sample{{Name: "/gc/heap/live:bytes"}}
	set := 0
	adjust := func() {
		heap.Read(live)
		if percent := computeGCPercent(live[0].Value.Uint64()); percent != set {
			debug.SetGCPercent(percent)
			set = percent
		}
	}
	adjust()
	type cycle struct{ _ *byte } // of which nobody keeps one: it is found to be garbage by the next collection
	var next func()
	next = func() {
		runtime.AddCleanup(&cycle{}, func(int) { adjust(); next() }, 0)
	}
	next()
}

// computeGCPercent is how much garbage may gather, in percent of what is in use.
func computeGCPercent(live uint64) int {
	if live == 0 { // nobody has looked yet
		return gcPercent
	}
	return max(gcPercent, int(minHeapBytes*100/live)-100)
}
