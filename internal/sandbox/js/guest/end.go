//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"io"
	"os"

	"reeve/internal/sandbox/js/wire"
)

// finish ends the run when nothing is left that could go on.
func (w *worker) finish() {
	e := w.engine
	if len(e.rejections) > 0 {
		w.fail(w.describe(wire.Unhandled, e.dup(e.rejections[0].reason)))
	}
	if !w.settled && e.memory() > w.start.Memory/2 { // there was not even enough left to say that there was not enough
		w.fail(wire.Fault{Failure: wire.Memory, Message: "out of memory"})
	}
	if !w.settled {
		w.fail(wire.Fault{Failure: wire.Stalled,
			Message: "the script waits for a promise that nothing can settle any more"})
	}
	w.send(wire.JSON(wire.KindDone, 0, w.result))
	w.end()
}

// done is told by the hook that the script has ended with a value.
func (w *worker) done(args []value, _ int32) value {
	text, ok := w.engine.stringify(args[0])
	if !ok {
		return w.engine.rethrow()
	}
	if w.printed+int64(len(text)) > w.start.Output {
		w.fail(w.overflow())
	}
	w.settled, w.result = true, text
	return undefined
}

// failed is told by the hook that the script has thrown.
func (w *worker) failed(args []value, _ int32) value {
	w.fail(w.describe(wire.Thrown, w.engine.dup(args[0])))
	return undefined
}

// log is the script's console.
func (w *worker) log(args []value, _ int32) value {
	text, ok := w.engine.bytes(args[1])
	if !ok {
		return w.engine.rethrow()
	}
	if w.printed += int64(len(text)) + 1; w.printed > w.start.Output {
		w.fail(w.overflow())
	}
	w.send(wire.Log(uint32(w.engine.toInt(args[0])), text))
	w.flush() // what was said before a crash should be seen
	return undefined
}

// overflow is the fault of a script that says too much.
func (w *worker) overflow() wire.Fault {
	t := w.describe(wire.Output, w.engine.here())
	t.Name, t.Message = "", "more output than allowed"
	return t
}

// fit keeps a frame within bounds.
func (w *worker) fit(text []byte) []byte {
	if len(text) > wire.MaxBody {
		w.fail(w.overflow())
	}
	return text
}

// fail ends the run with a fault, whatever the script is doing. It does not return.
func (w *worker) fail(t wire.Fault) {
	w.send(t.Encode(wire.KindFailed, 0))
	w.end()
}

// end ends the process when the host has read everything, which it shows by closing its end.
func (w *worker) end() {
	w.flush()
	_, _ = io.Copy(io.Discard, w.in)
	os.Exit(0)
}

// check passes a value on, or ends the run: it is for steps of our own, which fail only when memory or time is used up.
func (w *worker) check(v value) value {
	if isException(v) {
		w.fail(w.describe(wire.Thrown, w.engine.exception()))
	}
	w.stopIfLate()
	return v
}

// stopIfLate ends the run if the interrupt handler has struck: what the script makes of it does not count.
func (w *worker) stopIfLate() {
	if w.engine.timedOut {
		w.fail(w.describe(wire.Timeout, undefined))
	}
}

// late ends a run that was waiting when its time was over. The oldest call that it waits for says where.
func (w *worker) late() {
	oldest := uint32(0)
	for id := range w.calls {
		if oldest == 0 || id < oldest {
			oldest = id
		}
	}
	if p := w.calls[oldest]; p != nil {
		w.engine.where = w.engine.dup(p.where)
	}
	w.engine.timedOut = true
	w.fail(w.describe(wire.Timeout, undefined))
}

// abort ends the run for what a call did, and says where that was made. The script learns nothing of it.
func (w *worker) abort(call uint32) {
	t := wire.Fault{Failure: wire.Thrown}
	if p := w.calls[call]; p != nil {
		t.Stack = w.describe(wire.Thrown, w.engine.dup(p.where)).Stack
	}
	w.fail(t)
}
