//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"bytes"
	"encoding/json"

	"reeve/internal/sandbox/js/wire"
)

// foresight is what the host has said of calls that are yet to come. A call that it covers begins at once with what the host will say to it, and the host hears of
// it together with whatever the script does next: one wait less for each.
type foresight struct {
	wire.Foresee
	known map[string][]byte // by first argument; nil means that the host must be asked
}

// mostForeseen bounds how much a worker remembers.
const mostForeseen = 16 << 10

// begun marks the ids of invocations that the worker made up itself. The host's count from 1.
const begun = 1 << 31

func (w *worker) foresee(f wire.Frame) error {
	m, err := wire.DecodeForesee(f)
	if err != nil {
		return err
	}
	s := &foresight{m, make(map[string][]byte, len(m.Asked)+len(m.Known))}
	for _, k := range m.Asked {
		s.known[k] = nil
	}
	for i, k := range m.Known {
		s.known[k] = m.Given[i]
	}
	s.Asked, s.Known, s.Given = nil, nil, nil
	w.foreseen = s
	return nil
}

// ahead gives what the host will call the function of a call with; nil means that it must be asked. Nothing is foreseen twice: what
// the first call does may change what the second is to be given. Nor is it while other calls are open, as the host might refuse it then.
func (w *worker) ahead(index int32, args []wire.Argument) []byte {
	s := w.foreseen
	if s == nil || s.Function != int64(index) || len(w.calls) > 0 || w.next != 0 || len(args) == 0 || len(args) != len(s.Others) || args[len(args)-1].Function == 0 {
		return nil
	}
	for _, a := range args[:len(args)-1] {
		if len(a.JSON) < 3 || len(a.JSON) > 512 || a.JSON[0] != '"' || bytes.IndexByte(a.JSON, '\\') >= 0 || len(bytes.TrimSpace(a.JSON[1:len(a.JSON)-1])) == 0 {
			return nil // there may be more to say about it
		}
	}
	key := string(args[0].JSON[1 : len(args[0].JSON)-1])
	if key < s.From || !s.Open && key > s.To {
		return nil
	}
	given, listed := s.known[key]
	if !listed {
		var b bytes.Buffer
		for i, text := range s.Others {
			b.WriteString(text)
			if i < len(args)-1 {
				b.Write(args[i].JSON)
			}
		}
		given = b.Bytes()
	}
	if s.known[key] = nil; len(s.known) > mostForeseen {
		w.foreseen = nil
	}
	return given
}

// begin calls the function of a call that need not wait. The host hears of it with what the script does next, and soon if it does nothing: the function may never
// come to an end.
func (w *worker) begin() {
	w.out.soon()
	id := w.next
	p := w.calls[id]
	given := p.given
	w.next, p.given = 0, nil
	w.last[id|begun] = id
	w.enter(id|begun, w.functions[p.functions[0]], []json.RawMessage{given})
}
