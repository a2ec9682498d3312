package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"reeve"
)

// maxAnswer bounds what an answer holds: its words, its thoughts and its calls. The longest that models can say is half
// of it. partSize is what a part costs besides its text, and maxID what an id may have.
const (
	maxAnswer = 8 << 20
	partSize  = 256
	maxID     = 256
)

// draft is an answer in the making: adapters give it the pieces as they come, under the key that the provider has for
// each part.
type draft struct {
	server Server
	names  names
	watch  func(Delta)
	answer Answer
	parts  []*draftPart
	byKey  map[string]*draftPart
	ids    map[string]bool
	calls  int
	size   int // bytes of the answer so far
}

type draftPart struct {
	Part
	text  strings.Builder
	half  string // of a character whose other half has not come
	index int    // of calls
	asID  string // of calls: the id as the provider gave it
	shown bool   // of calls: its name was handed out
}

func newDraft(s Server, r Request, n names, watch func(Delta)) *draft {
	if watch == nil {
		watch = func(Delta) {}
	}
	return &draft{server: s, names: n, watch: watch, answer: Answer{Provider: s.Name, Model: r.Model},
		byKey: map[string]*draftPart{}, ids: map[string]bool{}}
}

func (d *draft) part(key string, t PartType) *draftPart {
	key = string(t) + " " + key
	p := d.byKey[key]
	if p == nil {
		p = &draftPart{Part: Part{Type: t}, index: -1}
		d.size += partSize
		d.byKey[key] = p
		d.parts = append(d.parts, p)
	}
	return p
}

// takes counts what is added to the answer, and tells whether it still fits. What does not is dropped: the answer
// fails.
func (d *draft) takes(n int) bool {
	d.size += n
	return d.size <= maxAnswer
}

// tooLong is the error for an answer that does not fit, or nil.
func (d *draft) tooLong() error {
	if d.size <= maxAnswer {
		return nil
	}
	return reeve.Errorf(reeve.ModelFailed, "the model's answer is longer than %d MB, and was cut off there",
		maxAnswer>>20).
		Hintf("Ask for less at once. A model that does not stop by itself is better replaced by another.")
}

// say adds a piece of text. One that comes after a tool call begins a new part, also where the provider has one key for
// all text.
func (d *draft) say(key string, next piece) {
	if n := len(d.parts); n > 0 && d.parts[n-1].Type == ToolCall {
		delete(d.byKey, string(Text)+" "+key)
	}
	p := d.part(key, Text)
	if text := p.join(next); text != "" && d.takes(len(text)) {
		if p.text.Len() == 0 && d.followsCall(p) {
			d.watch(Delta{Type: TextDelta, Text: Gap})
		}
		p.text.WriteString(text)
		d.watch(Delta{Type: TextDelta, Text: text})
	}
}

// followsCall tells whether a tool call stands between a text and the one before it, as in Answer.Text.
func (d *draft) followsCall(of *draftPart) bool {
	said, called := false, false
	for _, p := range d.parts {
		switch {
		case p == of:
			return said && called
		case p.Type == ToolCall:
			called = true
		case p.Type == Text && p.text.Len() > 0:
			said, called = true, false
		}
	}
	return false
}

// think adds a piece of reasoning; text may be empty, for reasoning that is not shown.
func (d *draft) think(key string, next piece) *draftPart {
	p := d.part(key, Reasoning)
	if text := p.join(next); text != "" && d.takes(len(text)) {
		p.text.WriteString(text)
		d.watch(Delta{Type: ReasoningDelta, Text: text})
	}
	return p
}

// call adds a piece of a call: its id and name when they are known, and some of its arguments.
func (d *draft) call(key, id, name string, next piece) *draftPart {
	p := d.callAt(key, id, name)
	args := p.join(next)
	size := len(args)
	if p.asID == "" {
		size += len(id)
	}
	if p.Name == "" {
		size += len(name)
	}
	if !d.takes(size) {
		return p
	}
	if p.index < 0 {
		p.index, d.calls = d.calls, d.calls+1
	}
	if p.asID == "" {
		p.asID = id
	}
	if p.Name == "" {
		p.Name = d.names.ours(strings.ReplaceAll(name, "\x00", "\uFFFD"))
	}
	if p.Name != "" && !p.shown {
		p.shown = true
		p.ID = d.unique(p.asID, p.index, p.Name)
		p.text.WriteString(args)
		d.watch(Delta{Type: CallDelta, Index: p.index, ID: p.ID, Name: p.Name, Text: p.text.String()})
		return p
	}
	if args != "" {
		p.text.WriteString(args)
		if p.shown {
			d.watch(Delta{Type: CallDelta, Index: p.index, Text: args})
		}
	}
	return p
}

// callAt gives the call that a piece belongs to. Some servers give every parallel call the same place: a new id with a
// name is a new call, and pieces without an id belong to the one that was spoken of last.
func (d *draft) callAt(key, id, name string) *draftPart {
	p := d.part(key, ToolCall)
	if id == "" || id == p.asID {
		return p
	}
	place := string(ToolCall) + " " + key
	switch known := d.byKey[place+" "+id]; {
	case p.asID == "":
		d.byKey[place+" "+id] = p
	case known != nil || name != "":
		p = d.part(key+" "+id, ToolCall)
		d.byKey[place] = p
	}
	return p
}

// keep has a part keep the provider's own form of it.
func (d *draft) keep(p *draftPart, v any) {
	if raw := seal(d.server.Name, v); d.takes(len(raw) - len(p.Raw)) {
		p.Raw = raw
	}
}

// unique gives a call an id that no other call of the answer has: the provider's when it is one that can be kept, else
// always the same for the same answer.
func (d *draft) unique(id string, index int, name string) string {
	if id == "" || d.ids[id] || len(id) > maxID || strings.ContainsFunc(id, unicode.IsControl) {
		id = callID(d.answer.ID, id, fmt.Sprint(index), name)
	}
	d.ids[id] = true
	return id
}

// callID makes an id from what tells a call from others.
func callID(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return "call_" + hex.EncodeToString(sum[:12])
}

// end adds what was still waited for to a part that is over, and gives its text.
func (d *draft) end(p *draftPart) string {
	if p.half != "" {
		p.half = ""
		p.text.WriteString("\uFFFD")
		d.watch(Delta{Type: map[PartType]DeltaType{Text: TextDelta, Reasoning: ReasoningDelta,
			ToolCall: CallDelta}[p.Type], Index: max(0, p.index), Text: "\uFFFD"})
	}
	return p.text.String()
}

// broken has a call that was cut off before its arguments stand as one that was cut off within them: no text at all
// would mean that it takes none.
func (d *draft) broken(p *draftPart) string {
	p.text.WriteString("{")
	d.watch(Delta{Type: CallDelta, Index: p.index, Text: "{"})
	return p.text.String()
}

// finish gives the answer, or says what is wrong with it.
func (d *draft) finish(stop Stop) (Answer, error) {
	if err := d.tooLong(); err != nil {
		return Answer{}, err
	}
	for i, p := range d.parts {
		text := d.end(p)
		switch p.Type {
		case ToolCall:
			if p.Name == "" {
				return d.cost(), d.server.nonsense("a tool call without a name")
			}
			if stop == StopLength && i == len(d.parts)-1 && strings.TrimSpace(text) == "" {
				text = d.broken(p)
			}
			p.Args = arguments(text)
		case Text:
			if text == "" {
				continue
			}
			p.Text = text
		case Reasoning:
			if text == "" && p.Raw == nil {
				continue
			}
			p.Text = text
		case Media, Result:
			continue // no provider's answer holds these
		}
		d.answer.Parts = append(d.answer.Parts, p.Part)
	}
	switch {
	case stop == StopEnd && d.calls > 0:
		stop = StopTools
	case stop == StopTools && d.calls == 0:
		stop = StopEnd
	}
	if stop == StopEnd && strings.TrimSpace(d.answer.Text()) == "" {
		return d.cost(), d.server.nonsense("it is empty")
	}
	d.answer.Stop = stop
	return d.answer, nil
}

// cost is what remains of an answer that came to its end and makes no sense: it costs what it cost.
func (d *draft) cost() Answer { return Answer{Model: d.answer.Model, Usage: d.answer.Usage} }
