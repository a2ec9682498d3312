//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"encoding/json"

	"reeve/internal/sandbox/js/wire"
)

// handleInvoke calls a function that the script passed to a host call. The prelude calls onReturned or onThrew when the
// function has settled.
func (w *worker) handleInvoke(f wire.Frame) error {
	m, err := wire.DecodeInvoke(f)
	if err != nil {
		return err
	}
	function, ok := w.functions[m.Function]
	if !ok {
		return wire.ErrMalformed
	}
	for id, p := range w.calls {
		for _, h := range p.functions {
			switch {
			case h != m.Function:
			case m.Last:
				w.delegated[f.ID] = id
			default:
				p.thrown = append(p.thrown, f.ID)
			}
		}
	}
	args := make([]json.RawMessage, len(m.Args))
	for i, a := range m.Args {
		args[i] = a.JSON
	}
	w.callFunction(f.ID, function, args)
	return nil
}

// callFunction calls a function of the script with JSON arguments.
func (w *worker) callFunction(id uint32, function value, args []json.RawMessage) {
	e := w.engine
	list := e.newArray()
	for i, a := range args {
		e.setElement(list, i, w.must(e.parseJSON(a)))
	}
	w.invocations++
	e.free(w.must(e.call(w.hooks.handleInvoke, e.newNumber(int64(id)), function, list, w.methods)), list)
}

// onReturned is called by the prelude when an invocation has returned. It sends the result to the host.
func (w *worker) onReturned(args []value, _ int32) value {
	id := w.engine.toID(args[0])
	if _, last := w.delegated[id]; last {
		w.invocations--
		w.send(wire.JSON(wire.KindReturned, id, nil))
		w.settleDelegatedCall(id, args[1], func(p *pendingCall) value { return p.resolve })
		return undefined
	}
	text, ok := w.engine.stringify(args[1])
	if !ok {
		return w.engine.exceptionResult()
	}
	w.invocations--
	w.send(wire.JSON(wire.KindReturned, id, w.checkSize(text)))
	return undefined
}

// onThrew is called by the prelude when an invocation has thrown. It sends the fault to the host.
func (w *worker) onThrew(args []value, _ int32) value {
	w.failIfTimedOut()
	e, id := w.engine, w.engine.toID(args[0])
	w.invocations--
	t := w.describe(wire.Thrown, e.dup(args[1]))
	w.send(t.Encode(wire.KindThrew, id))
	if _, last := w.delegated[id]; last {
		w.settleDelegatedCall(id, args[1], func(p *pendingCall) value { return p.reject })
	} else {
		w.thrown[id] = e.dup(args[1])
	}
	return undefined
}
