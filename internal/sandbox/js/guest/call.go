//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"fmt"

	"reeve/internal/sandbox/js/wire"
)

// pending is a call that the host has not answered.
type pending struct {
	resolve, reject value
	where           value // an Error made at the call: it becomes the error if the call fails
	size            int
	functions       []uint32
	thrown          []uint32
}

// call is every host function: it sends the arguments off and gives a promise.
func (w *worker) call(args []value, index int32) value {
	e := w.engine
	promise, resolve, reject := e.promise()
	if isException(promise) {
		return promise
	}
	p := &pending{resolve: resolve, reject: reject, where: e.here()}
	if isException(p.where) { // no memory or no stack left, as the script will see
		e.free(promise, resolve, reject)
		return p.where
	}
	refuse := func(format string, args ...any) value {
		w.refuse(p, fmt.Sprintf(format, args...))
		return promise
	}
	if len(w.calls) >= int(w.start.Calls) {
		return refuse("%d calls are waiting for the host, and no more may at once; await some first", len(w.calls))
	}
	if len(args) > wire.MaxArgs {
		return refuse("a host function was given %d arguments; at most %d are possible", len(args), wire.MaxArgs)
	}
	m := wire.Call{Function: int64(index), Args: make([]wire.Argument, len(args))}
	for i, v := range args {
		if e.isFunction(v) {
			w.lastHandle++
			m.Args[i].Function = w.lastHandle
			p.functions = append(p.functions, w.lastHandle)
			w.functions[w.lastHandle] = e.dup(v)
			continue
		}
		text, ok := e.stringify(v)
		if !ok {
			w.forget(p)
			reason := e.exception()
			if isBigInt(v) {
				e.free(reason)
				reason = e.typeError("a host function was given a BigInt, which JSON does not have; pass Number(n) " +
					"or String(n)")
			}
			e.free(e.call(reject, reason), reason)
			w.release(p)
			return promise
		}
		m.Args[i].JSON = text
		p.size += len(text)
	}
	if p.size > wire.MaxBody {
		return refuse("the arguments of one call have %d bytes and are too large; at most %d MB are possible, so "+
			"pass them on in parts", p.size, wire.MaxBody>>20)
	}
	if w.pendingSize+p.size > wire.MaxPending {
		return refuse("the arguments of all calls that wait for the host have %d bytes and are too large together; "+
			"at most %d MB are possible, so await some first",
			w.pendingSize+p.size, wire.MaxPending>>20)
	}
	w.lastCall++
	w.calls[w.lastCall] = p
	w.pendingSize += p.size
	w.send(m.Encode(w.lastCall))
	return promise
}

// refuse rejects a call that is not made.
func (w *worker) refuse(p *pending, message string) {
	e := w.engine
	w.forget(p)
	text, code := e.string(message), e.string("TOO_LARGE")
	e.free(e.call(w.hooks.fail, p.where, text, code, undefined, e.number(wire.Refused)), text, code)
	e.free(e.call(p.reject, p.where))
	w.release(p)
}

// forget drops the functions and thrown values that belong to a call.
func (w *worker) forget(p *pending) {
	for _, h := range p.functions {
		w.engine.free(w.functions[h])
		delete(w.functions, h)
	}
	for _, id := range p.thrown {
		w.engine.free(w.thrown[id])
		delete(w.thrown, id)
	}
}

func (w *worker) release(p *pending) { w.engine.free(p.resolve, p.reject, p.where) }

// answer settles a call.
func (w *worker) answer(f wire.Frame) error {
	e, p := w.engine, w.calls[f.ID]
	if p == nil {
		return wire.ErrMalformed
	}
	if f.Kind == wire.KindResolve {
		v := w.check(e.parse(f.Body))
		w.check(e.call(p.resolve, v))
		e.free(v)
	} else {
		m, err := wire.DecodeReject(f)
		if err != nil {
			return err
		}
		reason, ok := w.thrown[m.Invocation]
		if reason = e.dup(reason); !ok {
			text, code, hint := e.string(m.Message), e.string(m.Code), e.string(m.Hint)
			reason = w.check(e.call(w.hooks.fail, p.where, text, code, hint, e.number(int64(f.ID))))
			e.free(text, code, hint)
		}
		w.check(e.call(p.reject, reason))
		e.free(reason)
	}
	w.drop(f.ID, p)
	return nil
}

// drop ends a call that is settled.
func (w *worker) drop(id uint32, p *pending) {
	w.forget(p)
	w.release(p)
	w.pendingSize -= p.size
	delete(w.calls, id)
}

// settleLast settles the call whose outcome an invocation is, with the very value. The host was told, and does not
// answer: what the script says next goes along with that.
func (w *worker) settleLast(invocation uint32, v value, how func(*pending) value) {
	e, id := w.engine, w.last[invocation]
	p := w.calls[id]
	delete(w.last, invocation)
	e.free(w.check(e.call(how(p), v)))
	w.drop(id, p)
}
