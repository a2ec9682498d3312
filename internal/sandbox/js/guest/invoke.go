//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"encoding/json"

	"reeve/internal/sandbox/js/wire"
)

// invoke calls a function that the script gave to the host. The hook tells the host how it went.
func (w *worker) invoke(f wire.Frame) error {
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
				w.last[f.ID] = id
			default:
				p.thrown = append(p.thrown, f.ID)
			}
		}
	}
	args := make([]json.RawMessage, len(m.Args))
	for i, a := range m.Args {
		args[i] = a.JSON
	}
	w.enter(f.ID, function, args)
	return nil
}

// enter calls a function of the script's.
func (w *worker) enter(id uint32, function value, args []json.RawMessage) {
	e := w.engine
	list := e.array()
	for i, a := range args {
		e.push(list, i, w.check(e.parse(a)))
	}
	w.invocations++
	e.free(w.check(e.call(w.hooks.invoke, e.number(int64(id)), function, list)), list)
}

// returned is told by the hook that an invocation is over, and how.
func (w *worker) returned(args []value, _ int32) value {
	id := w.engine.id(args[0])
	if _, last := w.last[id]; last {
		w.invocations--
		w.send(wire.JSON(wire.KindReturned, id, nil))
		w.settleLast(id, args[1], func(p *pending) value { return p.resolve })
		return undefined
	}
	text, ok := w.engine.stringify(args[1])
	if !ok {
		return w.engine.rethrow()
	}
	w.invocations--
	w.send(wire.JSON(wire.KindReturned, id, w.fit(text)))
	return undefined
}

func (w *worker) threw(args []value, _ int32) value {
	w.stopIfLate()
	e, id := w.engine, w.engine.id(args[0])
	w.invocations--
	t := w.describe(wire.Thrown, e.dup(args[1]))
	w.send(t.Encode(wire.KindThrew, id))
	if _, last := w.last[id]; last {
		w.settleLast(id, args[1], func(p *pending) value { return p.reject })
	} else {
		w.thrown[id] = e.dup(args[1])
	}
	return undefined
}
