//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"io"
	"os"

	"reeve/internal/sandbox/js/wire"
)

// finish ends the run when no job, host call or invocation is left. It reports the script's value, or an unhandled
// rejection, or that the script has no value. It does not return.
func (w *worker) finish() {
	e := w.engine
	if len(e.rejections) > 0 {
		w.fail(w.describe(wire.Unhandled, e.dup(e.rejections[0].reason)))
	}
	if !w.hasResult && e.memoryUsed() > w.start.Memory/2 { // there was no memory left for an error
		w.fail(wire.Fault{Failure: wire.Memory, Message: "out of memory"})
	}
	if !w.hasResult {
		w.fail(wire.Fault{Failure: wire.Stalled, Message: "the script awaits a promise that can never be settled"})
	}
	w.send(wire.JSON(wire.KindDone, 0, w.result))
	w.exit()
}

// onDone is called by the prelude when the script has ended with a value.
func (w *worker) onDone(args []value, _ int32) value {
	text, ok := w.engine.stringify(args[0])
	if !ok {
		return w.engine.exceptionResult()
	}
	if w.outputSize+int64(len(text)) > w.start.Output {
		w.fail(w.newOutputFault())
	}
	w.hasResult, w.result = true, text
	return undefined
}

// onFailed is called by the prelude when the script has thrown an error.
func (w *worker) onFailed(args []value, _ int32) value {
	w.fail(w.describe(wire.Thrown, w.engine.dup(args[0])))
	return undefined
}

// onLog is called by the prelude for each line of console output.
func (w *worker) onLog(args []value, _ int32) value {
	text, ok := w.engine.toBytes(args[1])
	if !ok {
		return w.engine.exceptionResult()
	}
	if w.outputSize += int64(len(text)) + 1; w.outputSize > w.start.Output {
		w.fail(w.newOutputFault())
	}
	w.send(wire.Log(uint32(w.engine.toInt(args[0])), text))
	w.flush() // the host must receive the line even if the worker crashes next
	return undefined
}

// newOutputFault returns the fault of a script that exceeds its output limit.
func (w *worker) newOutputFault() wire.Fault {
	t := w.describe(wire.Output, w.engine.newErrorHere())
	t.Name, t.Message = "", wire.OutputMessage
	return t
}

// checkSize returns text, or fails the run if text does not fit in a frame.
func (w *worker) checkSize(text []byte) []byte {
	if len(text) > wire.MaxBody {
		w.fail(w.newOutputFault())
	}
	return text
}

// fail ends the run with a fault. It can be called while the script runs, and does not return.
func (w *worker) fail(t wire.Fault) {
	w.computing.stop()
	w.send(t.Encode(wire.KindFailed, 0))
	w.exit()
}

// exit ends the process once the host has closed its end of the pipe, which it does after it has read everything.
func (w *worker) exit() {
	w.flush()
	_, _ = io.Copy(io.Discard, w.in)
	os.Exit(0)
}

// must returns v, or fails the run if v is an exception or the time limit is exceeded. It is for the worker's own
// operations, which fail only if memory or time is exhausted.
func (w *worker) must(v value) value {
	if isException(v) {
		w.fail(w.describe(wire.Thrown, w.engine.takeException()))
	}
	w.failIfTimedOut()
	return v
}

// failIfTimedOut fails the run if the interrupt handler has stopped the script. The script cannot catch the timeout.
func (w *worker) failIfTimedOut() {
	if w.engine.timedOut {
		w.fail(w.describe(wire.Timeout, undefined))
	}
}

// handleStop ends a run that exceeded its time limit while it waited for the host. It reports the position of the
// oldest call in progress.
func (w *worker) handleStop() {
	oldest := uint32(0)
	for id := range w.calls {
		if oldest == 0 || id < oldest {
			oldest = id
		}
	}
	if p := w.calls[oldest]; p != nil {
		w.engine.stoppedAt = w.engine.dup(p.callSite)
	}
	w.engine.timedOut = true
	w.fail(w.describe(wire.Timeout, undefined))
}

// handleAbort ends the run because of a host call, and reports the position of the call. The script is not informed.
func (w *worker) handleAbort(call uint32) {
	t := wire.Fault{Failure: wire.Thrown}
	if p := w.calls[call]; p != nil {
		t.Stack = w.describe(wire.Thrown, w.engine.dup(p.callSite)).Stack
	}
	w.fail(t)
}
