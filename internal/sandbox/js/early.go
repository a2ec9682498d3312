package js

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"reeve/internal/sandbox/js/wire"
)

// Early answers a call before it is over: the script goes on meanwhile, and whatever it says is heard when the call is over and not before. What is left of the
// call must not matter to the script; when it fails, the run is aborted.
type Early struct {
	run  *run
	call uint32
	told atomic.Bool
}

type earlyKey struct{}

// EarlyFrom gives the way to answer a call early, by its context. Nil means that there is none: the script does something else meanwhile, which might be heard too soon.
func EarlyFrom(ctx context.Context) *Early {
	e, _ := ctx.Value(earlyKey{}).(*Early)
	return e
}

// Answer tells the script what its call comes to, nil for undefined, if that can be done without waiting. It is told once.
func (e *Early) Answer(value json.RawMessage) {
	if !e.told.Load() && (len(value) == 0 || json.Valid(value)) && e.run.sendNow(wire.JSON(wire.KindResolve, e.call, value)) {
		e.told.Store(true)
	}
}

func (e *Early) isTold() bool { return e != nil && e.told.Load() }

// sendNow writes a frame if that takes no time. A process that does not read holds nobody up.
func (r *run) sendNow(frame []byte) bool {
	if !r.write.TryLock() {
		return false
	}
	defer r.write.Unlock()
	if !r.proc.WriteNow(frame) {
		return false
	}
	r.sent++
	return true
}
