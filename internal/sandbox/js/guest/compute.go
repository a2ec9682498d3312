//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"os"
	"time"
)

// computeTimer limits how long a script computes between two host calls. When the time is over, it interrupts the
// script. A script inside a built-in, which cannot be interrupted, ends with the process soon after.
type computeTimer struct {
	limit      time.Duration
	soft, hard *time.Timer
}

func newComputeTimer(e *engine, limit time.Duration) *computeTimer {
	return &computeTimer{limit,
		time.AfterFunc(limit, func() {
			if e.stop.CompareAndSwap(false, true) {
				e.tooLong.Store(true)
			}
		}),
		time.AfterFunc(limit+Grace, func() { os.Exit(ExitComputing) })}
}

// restart begins a new period of computing.
func (t *computeTimer) restart() {
	t.soft.Reset(t.limit)
	t.hard.Reset(t.limit + Grace)
}

// stop ends a period of computing, because the script waits for the host or has ended.
func (t *computeTimer) stop() {
	t.soft.Stop()
	t.hard.Stop()
}
