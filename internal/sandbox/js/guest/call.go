//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"fmt"
	"os"

	quickjs "modernc.org/libquickjs"
	"reeve/internal/sandbox/js/wire"
)

// pendingCall is a host call that the host has not answered yet.
type pendingCall struct {
	resolve, reject value
	callSite        value    // an Error created at the call, which becomes the reason if the host rejects the call
	size            int      // bytes of the arguments
	functions       []uint32 // handles of the functions among the arguments
	thrown          []uint32 // invocations of these functions that may throw, keys of worker.thrown
}

// callHost implements every host function. It sends the call to the host and returns a promise.
func (w *worker) callHost(args []value, index int32) value {
	e := w.engine
	promise, resolve, reject := e.newPromise()
	if isException(promise) {
		return promise
	}
	p := &pendingCall{resolve: resolve, reject: reject, callSite: e.newErrorHere()}
	if isException(p.callSite) { // memory or stack is exhausted; the script receives the exception
		e.free(promise, resolve, reject)
		return p.callSite
	}
	refuse := func(format string, args ...any) value {
		w.refuseCall(p, fmt.Sprintf(format, args...))
		return promise
	}
	if len(w.calls) >= int(w.start.Calls) {
		return refuse("too many host calls in progress: %d; await some of them first", len(w.calls))
	}
	if len(args) > wire.MaxArgs {
		return refuse("a host function was called with %d arguments; pass at most %d", len(args), wire.MaxArgs)
	}
	m := wire.Call{Function: int64(index), Args: make([]wire.Argument, len(args))}
	for i, v := range args {
		if isMethod := int(index) >= len(w.start.Functions); isMethod {
			if m.Args[i].Failed = w.originOf(v); m.Args[i].Failed != 0 {
				continue
			}
		}
		if e.isFunction(v) && !w.isPlaceholder(v) {
			w.lastHandle++
			m.Args[i].Function = w.lastHandle
			p.functions = append(p.functions, w.lastHandle)
			w.functions[w.lastHandle] = e.dup(v)
			continue
		}
		text, ok := e.stringify(v)
		if !ok {
			w.freeHandles(p)
			reason := e.takeException()
			if isBigInt(v) {
				e.free(reason)
				reason = e.newTypeError("a host function was called with a BigInt, which JSON cannot represent; " +
					"pass Number(n) or String(n)")
			}
			e.free(e.call(reject, reason), reason)
			w.freeCall(p)
			return promise
		}
		m.Args[i].JSON = text
		p.size += len(text)
	}
	if p.size > wire.MaxBody {
		return refuse("the arguments of one host call are too large: %d bytes, at most %d MB are allowed; "+
			"split them over several calls", p.size, wire.MaxBody>>20)
	}
	if w.pendingSize+p.size > wire.MaxPending {
		return refuse("the arguments of all host calls in progress are too large: %d bytes, at most %d MB are "+
			"allowed; await some of them first", w.pendingSize+p.size, wire.MaxPending>>20)
	}
	w.lastCall++
	w.calls[w.lastCall] = p
	w.pendingSize += p.size
	w.send(m.Encode(w.lastCall))
	w.computing.restart()
	return promise
}

// callHostSync implements a host function that returns its result. It sends the call and waits for the answer. Other
// frames that arrive meanwhile are handled later.
func (w *worker) callHostSync(args []value, index int32) value {
	e := w.engine
	last := w.lastCall
	promise := w.callHost(args, index)
	if isException(promise) {
		return promise
	}
	defer e.free(promise)
	for id := w.lastCall; id != last && w.calls[id] != nil; {
		f := w.readFrame()
		isAnswer := f.Kind == wire.KindResolve || f.Kind == wire.KindReject || f.Kind == wire.KindPlaceholder
		if f.Kind != wire.KindStop && f.Kind != wire.KindAbort && (!isAnswer || f.ID != id) {
			w.deferred = append(w.deferred, f)
			continue
		}
		if err := w.handleFrame(f); err != nil {
			os.Exit(exitHost)
		}
	}
	v := quickjs.XJS_PromiseResult(e.tls, e.ctx, promise)
	if quickjs.XJS_PromiseState(e.tls, e.ctx, promise) == quickjs.EJS_PROMISE_REJECTED {
		e.forgetRejection(promise)
		return e.throw(v)
	}
	return v
}

// originOf returns the host call whose error v is, or 0.
func (w *worker) originOf(v value) uint32 {
	id := w.must(w.engine.call(w.hooks.origin, v))
	defer w.engine.free(id)
	return w.engine.toID(id)
}

// isPlaceholder reports whether v stands for the result of a call that was not made.
func (w *worker) isPlaceholder(v value) bool {
	is := w.must(w.engine.call(w.hooks.isPlaceholder, v))
	defer w.engine.free(is)
	return w.engine.isTrue(is)
}

// refuseCall rejects the promise of a call that exceeds a limit and is not sent.
func (w *worker) refuseCall(p *pendingCall, message string) {
	e := w.engine
	w.freeHandles(p)
	text, code := e.newString(message), e.newString("TOO_LARGE")
	e.free(e.call(w.hooks.fail, p.callSite, text, code, undefined, e.newNumber(wire.Refused)), text, code)
	e.free(e.call(p.reject, p.callSite))
	w.freeCall(p)
}

// freeHandles frees the functions and thrown values that belong to a call.
func (w *worker) freeHandles(p *pendingCall) {
	for _, h := range p.functions {
		w.engine.free(w.functions[h])
		delete(w.functions, h)
	}
	for _, id := range p.thrown {
		w.engine.free(w.thrown[id])
		delete(w.thrown, id)
	}
}

func (w *worker) freeCall(p *pendingCall) { w.engine.free(p.resolve, p.reject, p.callSite) }

// handleAnswer settles the promise of a host call with the host's result or error.
func (w *worker) handleAnswer(f wire.Frame) error {
	e, p := w.engine, w.calls[f.ID]
	if p == nil {
		return wire.ErrMalformed
	}
	switch f.Kind {
	case wire.KindResolve:
		v := w.must(e.parseJSON(f.Body))
		w.must(e.call(p.resolve, v))
		e.free(v)
	case wire.KindPlaceholder:
		text := e.newString(string(f.Body))
		v := w.must(e.call(w.hooks.placeholder, text))
		w.must(e.call(p.resolve, v))
		e.free(v, text)
	default:
		m, err := wire.DecodeReject(f)
		if err != nil {
			return err
		}
		reason, ok := w.thrown[m.Invocation]
		if reason = e.dup(reason); !ok {
			text, code, hint := e.newString(m.Message), e.newString(m.Code), e.newString(m.Hint)
			reason = w.must(e.call(w.hooks.fail, p.callSite, text, code, hint, e.newNumber(int64(f.ID))))
			e.free(text, code, hint)
		}
		w.must(e.call(p.reject, reason))
		e.free(reason)
	}
	w.removeCall(f.ID, p)
	return nil
}

// removeCall frees a settled call and removes it from w.calls.
func (w *worker) removeCall(id uint32, p *pendingCall) {
	w.freeHandles(p)
	w.freeCall(p)
	w.pendingSize -= p.size
	delete(w.calls, id)
}

// settleDelegatedCall settles the host call whose result the invocation provides, with the value v itself. Settle
// selects the promise's resolve or reject function. The host has been sent the outcome and does not answer the call.
func (w *worker) settleDelegatedCall(invocation uint32, v value, settle func(*pendingCall) value) {
	e, id := w.engine, w.delegated[invocation]
	p := w.calls[id]
	delete(w.delegated, invocation)
	e.free(w.must(e.call(settle(p), v)))
	w.removeCall(id, p)
}
