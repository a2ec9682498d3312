package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// draft is an answer in the making: adapters give it the pieces as they come, under the key that the provider has for each part.
type draft struct {
	server Server
	names  names
	watch  func(Delta)
	answer Answer
	parts  []*draftPart
	byKey  map[string]*draftPart
	ids    map[string]bool
	calls  int
}

type draftPart struct {
	Part
	text  strings.Builder
	index int    // of calls
	asID  string // of calls: the id as the provider gave it
	shown bool   // of calls: its name was handed out
}

func newDraft(s Server, r Request, n names, watch func(Delta)) *draft {
	if watch == nil {
		watch = func(Delta) {}
	}
	return &draft{server: s, names: n, watch: watch, answer: Answer{Provider: s.Name, Model: r.Model}, byKey: map[string]*draftPart{}, ids: map[string]bool{}}
}

func (d *draft) part(key string, t PartType) *draftPart {
	key = string(t) + " " + key
	p := d.byKey[key]
	if p == nil {
		p = &draftPart{Part: Part{Type: t}, index: -1}
		d.byKey[key] = p
		d.parts = append(d.parts, p)
	}
	return p
}

// say adds a piece of text.
func (d *draft) say(key, text string) {
	p := d.part(key, Text)
	if text != "" {
		p.text.WriteString(text)
		d.watch(Delta{Type: TextDelta, Text: text})
	}
}

// think adds a piece of reasoning; text may be empty, for reasoning that is not shown.
func (d *draft) think(key, text string) *draftPart {
	p := d.part(key, Reasoning)
	if text != "" {
		p.text.WriteString(text)
		d.watch(Delta{Type: ReasoningDelta, Text: text})
	}
	return p
}

// call adds a piece of a call: its id and name when they are known, and some of its arguments.
func (d *draft) call(key, id, name, args string) *draftPart {
	p := d.part(key, ToolCall)
	if p.index >= 0 && id != "" && p.asID != "" && id != p.asID && name != "" {
		// Some servers give every parallel call the same place; a new id with a name is a new call.
		return d.call(key+"+", id, name, args)
	}
	if p.index < 0 {
		p.index, d.calls = d.calls, d.calls+1
	}
	if p.asID == "" {
		p.asID = id
	}
	if p.Name == "" {
		p.Name = d.names.ours(name)
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

// unique gives a call an id that no other call of the answer has: the provider's when it is one, else always the same for the same answer.
func (d *draft) unique(id string, index int, name string) string {
	if id == "" || d.ids[id] {
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

// finish gives the answer, or says what is wrong with it.
func (d *draft) finish(stop Stop) (Answer, error) {
	for _, p := range d.parts {
		text := p.text.String()
		switch p.Type {
		case ToolCall:
			if p.Name == "" {
				return Answer{}, d.server.nonsense("a tool call without a name")
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
		return Answer{}, d.server.nonsense("it is empty")
	}
	d.answer.Stop = stop
	return d.answer, nil
}
