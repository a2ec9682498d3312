//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"time"

	"reeve/internal/sandbox/js/wire"
)

const (
	maxMessage = 16 << 10 // bytes of a message that travel
	maxTrace   = 64 << 10 // bytes of a stack that are read
)

// describe takes apart what was thrown, which it frees, and says what kind of failure it is. It has to work when the
// script has just used up its memory or its time, so it gets a little more of both.
func (w *worker) describe(k wire.Failure, thrown value) wire.Fault {
	e := w.engine
	late, full := e.timedOut, max(e.memory(), e.peak) > w.start.Memory/4*3
	if late { // what was thrown says less than where it was stopped
		e.free(thrown)
		thrown, e.where = e.where, undefined
	}
	if isException(thrown) { // even making it threw
		thrown = e.exception()
	}
	e.timedOut = false
	e.stop.Store(false)
	timer := time.AfterFunc(Grace/5, func() { e.stop.Store(true) })
	e.limit(w.start.Memory+(1<<20), int(w.start.Stack)+200)
	defer func() {
		e.limit(w.start.Memory, int(w.start.Stack))
		if e.timedOut = late; timer.Stop() {
			e.stop.Store(late)
		}
	}()

	t := wire.Fault{Failure: k}
	if parts := e.call(w.hooks.describe, thrown); isException(parts) {
		e.free(e.exception())
		t.Message = "something was thrown that cannot be looked at"
	} else {
		t.Name, t.Message = w.part(parts, 0, maxMessage), w.part(parts, 1, maxMessage)
		t.Stack = w.source.frames(w.part(parts, 2, maxTrace))
		call := e.at(parts, 3)
		t.Call = e.id(call)
		e.free(call, parts)
	}
	// The engine has no codes for its own limits, only these errors; a script that makes one up is believed, and ends
	// alike.
	engine := t.Name == "InternalError"
	switch {
	case late:
		t.Failure, t.Name, t.Message = wire.Timeout, "", "the time is over"
	case k != wire.Thrown && k != wire.Unhandled && k != wire.Syntax:
	// with no memory for an error object, null is thrown
	case engine && t.Message == "out of memory", full && isNull(thrown):
		t.Failure, t.Name, t.Message = wire.Memory, "", "out of memory"
	case engine && t.Message == "stack overflow":
		t.Failure, t.Name, t.Message = wire.Stack, "", "calls nest too deeply"
	}
	e.free(thrown)
	return t
}

// part is one text of a description, cut to a length.
func (w *worker) part(parts value, i, most int) string {
	v := w.engine.at(parts, i)
	defer w.engine.free(v)
	b, ok := w.engine.bytes(v)
	if !ok {
		w.engine.free(w.engine.exception())
		return ""
	}
	if len(b) > most {
		b = append(b[:most], "…"...)
	}
	return string(b)
}
