//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"time"

	"reeve/internal/sandbox/js/wire"
)

const (
	maxMessage = 16 << 10 // bytes of a message that are sent
	maxTrace   = 64 << 10 // bytes of a stack trace that are parsed
)

// describe converts a thrown value to a fault and frees the value. It must work after the script has exhausted its
// memory or time, so it raises both limits a little while it runs.
func (w *worker) describe(k wire.Failure, thrown value) wire.Fault {
	e := w.engine
	late, full := e.timedOut, max(e.memoryUsed(), e.peakMemory) > w.start.Memory/4*3
	if late { // the position where the script was stopped is more useful than the thrown value
		e.free(thrown)
		thrown, e.stoppedAt = e.stoppedAt, undefined
	}
	if isException(thrown) { // creating the value threw another exception
		thrown = e.takeException()
	}
	e.timedOut = false
	e.stop.Store(false)
	timer := time.AfterFunc(Grace/5, func() { e.stop.Store(true) })
	e.setLimits(w.start.Memory+(1<<20), int(w.start.Stack)+200)
	defer func() {
		e.setLimits(w.start.Memory, int(w.start.Stack))
		if e.timedOut = late; timer.Stop() {
			e.stop.Store(late)
		}
	}()

	t := wire.Fault{Failure: k}
	if parts := e.call(w.hooks.describe, thrown); isException(parts) {
		e.free(e.takeException())
		t.Message = "the thrown value cannot be described"
	} else {
		t.Name, t.Message = w.descriptionText(parts, 0, maxMessage), w.descriptionText(parts, 1, maxMessage)
		t.Stack = w.source.parseStack(w.descriptionText(parts, 2, maxTrace))
		call := e.getElement(parts, 3)
		t.Call = e.toID(call)
		e.free(call, parts)
	}
	// The engine reports its limits only by these errors. A script that throws the same error itself gets the same
	// fault, which does no harm.
	engine := t.Name == "InternalError"
	switch {
	case late && e.tooLong.Load():
		t.Failure, t.Name, t.Message = wire.Compute, "", wire.ComputeMessage(w.start.Compute)
	case late:
		t.Failure, t.Name, t.Message = wire.Timeout, "", wire.TimeoutMessage
	case k != wire.Thrown && k != wire.Unhandled && k != wire.Syntax:
	// The engine throws null if there is no memory for an error object.
	case engine && t.Message == "out of memory", full && isNull(thrown):
		t.Failure, t.Name, t.Message = wire.Memory, "", "out of memory"
	case engine && t.Message == "stack overflow":
		t.Failure, t.Name, t.Message = wire.Stack, "", "calls nest too deeply"
	}
	e.free(thrown)
	return t
}

// descriptionText returns element i of a description, cut to most bytes. It returns "" if the element has no text.
func (w *worker) descriptionText(parts value, i, most int) string {
	v := w.engine.getElement(parts, i)
	defer w.engine.free(v)
	b, ok := w.engine.toBytes(v)
	if !ok {
		w.engine.free(w.engine.takeException())
		return ""
	}
	if len(b) > most {
		b = append(b[:most], "…"...)
	}
	return string(b)
}
