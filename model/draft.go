package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"reeve"
)

// Limits of an answer.
const (
	maxAnswer = 8 << 20 // bytes of texts, reasoning and calls; twice what the largest models can write
	partSize  = 256     // bytes that a part counts in addition to its text
	maxID     = 256     // bytes of a call id
)

// draft builds an answer from streamed fragments. An adapter adds each fragment under the key that the provider uses
// for its part.
type draft struct {
	server Server
	names  toolNames
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
	text        strings.Builder
	pending     string // the first half of a surrogate pair, until the second arrives
	index       int    // position of a call among the calls
	providerID  string // id of a call as the provider sent it
	isAnnounced bool   // whether a delta with the name of a call was sent
}

func newDraft(s Server, r Request, n toolNames, watch func(Delta)) *draft {
	if watch == nil {
		watch = func(Delta) {}
	}
	return &draft{server: s, names: n, watch: watch, answer: Answer{Provider: s.Name, Model: r.Model},
		byKey: map[string]*draftPart{}, ids: map[string]bool{}}
}

func (d *draft) getPart(key string, t PartType) *draftPart {
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

// reserve adds n bytes to the size of the answer and reports whether the answer is still within its limit. The caller
// drops fragments that exceed the limit, and the answer fails.
func (d *draft) reserve(n int) bool {
	d.size += n
	return d.size <= maxAnswer
}

// checkSize returns an error if the answer exceeds its limit.
func (d *draft) checkSize() error {
	if d.size <= maxAnswer {
		return nil
	}
	return reeve.Errorf(reeve.ModelFailed, "the model's answer is longer than %d MB", maxAnswer>>20).
		Hintf("ask for a shorter answer; if the model repeats itself without end, use another model")
}

// addText adds a fragment of text. Text after a tool call starts a new part, even if the provider uses the same key for
// all text.
func (d *draft) addText(key string, next fragment) {
	if n := len(d.parts); n > 0 && d.parts[n-1].Type == ToolCall {
		delete(d.byKey, string(Text)+" "+key)
	}
	p := d.getPart(key, Text)
	if text := p.joinFragment(next); text != "" && d.reserve(len(text)) {
		if p.text.Len() == 0 && d.followsCall(p) {
			d.watch(Delta{Type: TextDelta, Text: TextSeparator})
		}
		p.text.WriteString(text)
		d.watch(Delta{Type: TextDelta, Text: text})
	}
}

// followsCall reports whether a tool call is between a text part and the previous text, as in Answer.Text.
func (d *draft) followsCall(of *draftPart) bool {
	hasText, hasCall := false, false
	for _, p := range d.parts {
		switch {
		case p == of:
			return hasText && hasCall
		case p.Type == ToolCall:
			hasCall = true
		case p.Type == Text && p.text.Len() > 0:
			hasText, hasCall = true, false
		}
	}
	return false
}

// addReasoning adds a fragment of reasoning. The fragment may be empty, for reasoning that the provider hides.
func (d *draft) addReasoning(key string, next fragment) *draftPart {
	p := d.getPart(key, Reasoning)
	if text := p.joinFragment(next); text != "" && d.reserve(len(text)) {
		p.text.WriteString(text)
		d.watch(Delta{Type: ReasoningDelta, Text: text})
	}
	return p
}

// addCall adds a fragment of a tool call: its id and name when known, and a fragment of its arguments.
func (d *draft) addCall(key, id, name string, next fragment) *draftPart {
	p := d.findCall(key, id, name)
	args := p.joinFragment(next)
	size := len(args)
	if p.providerID == "" {
		size += len(id)
	}
	if p.Name == "" {
		size += len(name)
	}
	if !d.reserve(size) {
		return p
	}
	if p.index < 0 {
		p.index, d.calls = d.calls, d.calls+1
	}
	if p.providerID == "" {
		p.providerID = id
	}
	if p.Name == "" {
		p.Name = d.names.fromProvider(strings.ReplaceAll(name, "\x00", "\uFFFD"))
	}
	if p.Name != "" && !p.isAnnounced {
		p.isAnnounced = true
		p.ID = d.assignID(p.providerID, p.index, p.Name)
		p.text.WriteString(args)
		d.watch(Delta{Type: CallDelta, Index: p.index, ID: p.ID, Name: p.Name, Text: p.text.String()})
		return p
	}
	if args != "" {
		p.text.WriteString(args)
		if p.isAnnounced {
			d.watch(Delta{Type: CallDelta, Index: p.index, Text: args})
		}
	}
	return p
}

// findCall returns the call that a fragment belongs to. Some servers give all parallel calls the same index. For these,
// a new id with a name starts a new call, and a fragment without an id belongs to the latest call.
func (d *draft) findCall(key, id, name string) *draftPart {
	p := d.getPart(key, ToolCall)
	if id == "" || id == p.providerID {
		return p
	}
	place := string(ToolCall) + " " + key
	switch known := d.byKey[place+" "+id]; {
	case p.providerID == "":
		d.byKey[place+" "+id] = p
	case known != nil || name != "":
		p = d.getPart(key+" "+id, ToolCall)
		d.byKey[place] = p
	}
	return p
}

// setRaw sets the provider's own form of a part.
func (d *draft) setRaw(p *draftPart, v any) {
	if raw := encodeRaw(d.server.Name, v); d.reserve(len(raw) - len(p.Raw)) {
		p.Raw = raw
	}
}

// assignID returns an id for a call that is unique in the answer: the provider's id if it is usable, else one derived
// from the call. The same answer always gets the same ids.
func (d *draft) assignID(id string, index int, name string) string {
	if id == "" || d.ids[id] || len(id) > maxID || strings.ContainsFunc(id, unicode.IsControl) {
		id = callID(d.answer.ID, id, fmt.Sprint(index), name)
	}
	d.ids[id] = true
	return id
}

// callID derives an id from the values that identify a call.
func callID(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return "call_" + hex.EncodeToString(sum[:12])
}

// closePart completes a part, replacing an unpaired surrogate at its end, and returns its text.
func (d *draft) closePart(p *draftPart) string {
	if p.pending != "" {
		p.pending = ""
		p.text.WriteString("\uFFFD")
		d.watch(Delta{Type: map[PartType]DeltaType{Text: TextDelta, Reasoning: ReasoningDelta,
			ToolCall: CallDelta}[p.Type], Index: max(0, p.index), Text: "\uFFFD"})
	}
	return p.text.String()
}

// markTruncated adds "{" to a call that was cut off before its arguments. Without it, the call would look like a
// complete call without arguments.
func (d *draft) markTruncated(p *draftPart) string {
	p.text.WriteString("{")
	d.watch(Delta{Type: CallDelta, Index: p.index, Text: "{"})
	return p.text.String()
}

// finish returns the answer, or an error if it is too long, empty or invalid.
func (d *draft) finish(stop Stop) (Answer, error) {
	if err := d.checkSize(); err != nil {
		return Answer{}, err
	}
	for i, p := range d.parts {
		text := d.closePart(p)
		switch p.Type {
		case ToolCall:
			if p.Name == "" {
				return d.usageOnly(), d.server.invalidAnswer("a tool call has no name")
			}
			if stop == StopLength && i == len(d.parts)-1 && strings.TrimSpace(text) == "" {
				text = d.markTruncated(p)
			}
			p.Args = encodeArguments(text)
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
			continue // answers have no such parts
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
		return d.usageOnly(), d.server.invalidAnswer("the answer is empty")
	}
	d.answer.Stop = stop
	return d.answer, nil
}

// usageOnly returns the model and the usage of an invalid answer, which costs as much as a valid one.
func (d *draft) usageOnly() Answer { return Answer{Model: d.answer.Model, Usage: d.answer.Usage} }
