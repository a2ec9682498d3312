package host

import (
	"runtime"
	heap "runtime/metrics"
	"testing"
	"time"
)

// What the heap may grow to is never less than a few megabytes, and a share of what is in use when that is much.
func TestGarbageGathers(t *testing.T) {
	t.Parallel()
	for _, live := range []uint64{1 << 20, 5 << 20, 12 << 20, 13 << 20, 20 << 20, 200 << 20} {
		goal := live + live*uint64(computeGCPercent(live))/100
		if goal < minHeapBytes-live/50 || goal > max(minHeapBytes, live*8/5) {
			t.Errorf("with %d MB in use the heap may grow to %d MB", live>>20, goal>>20)
		}
	}
	if computeGCPercent(0) != gcPercent {
		t.Error("the first guess is not the least")
	}
}

// Each collection sets the pace of the next.
func TestGarbageKeepsPace(t *testing.T) { //nolint:paralleltest // it is about the whole process
	TuneGarbageCollector()
	is := []heap.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}}
	for end := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		heap.Read(is)
		if int(is[0].Value.Uint64()) == computeGCPercent(is[1].Value.Uint64()) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d %% of %d bytes", is[0].Value.Uint64(), is[1].Value.Uint64())
		}
		time.Sleep(10 * time.Millisecond) // the cleanup runs after the collection
	}
}
