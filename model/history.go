package model

import (
	"fmt"
	"slices"
	"strings"

	"reeve"
)

// prepareMessages returns the messages of a request in a form that every provider accepts, and leaves its input
// unchanged. Roles alternate, beginning and ending with the user. Each call is followed by its result. No part is
// empty. Reasoning of other providers is removed.
//
// A file that the provider does not accept is an error if it belongs to the last user message. In earlier messages a
// text replaces it, because these cannot be changed any more.
func prepareMessages(ms []Message, provider string, refuses func(media Part) error) ([]Message, error) {
	if len(ms) == 0 {
		return nil, reeve.Errorf(reeve.Validation, "the request has no messages")
	}
	ms, err := mergeMessages(ms, provider, refuses)
	if err != nil {
		return nil, err
	}
	ms = pairResults(ms)
	if len(ms) == 0 {
		return nil, reeve.Errorf(reeve.Validation, "all messages of the request are empty")
	}
	if ms[0].Role != User {
		ms = slices.Insert(ms, 0, NewTextMessage(User, "(The conversation continues.)"))
	}
	if ms[len(ms)-1].Role != User {
		ms = append(ms, NewTextMessage(User, "Continue."))
	}
	return ms, nil
}

// mergeMessages drops empty parts and joins consecutive messages of the same role.
func mergeMessages(ms []Message, provider string, refuses func(media Part) error) ([]Message, error) {
	var out []Message
	lastUser := lastUserMessage(ms)
	for i, m := range ms {
		var parts []Part
		for _, p := range m.Parts {
			if !isSendable(p, m.Role, provider) {
				continue
			}
			if p.Type == Media {
				switch err := refuses(p); {
				case err != nil && i >= lastUser:
					return nil, err
				case err != nil:
					p = mediaPlaceholder(p)
				}
			}
			parts = append(parts, p)
		}
		for len(parts) > 0 && parts[len(parts)-1].Type == Reasoning {
			parts = parts[:len(parts)-1] // providers reject reasoning without a following part
		}
		if n := len(out); n > 0 && m.Role == Assistant &&
			slices.ContainsFunc(out[n-1].Parts, func(p Part) bool { return p.Type == ToolCall }) && len(parts) > 0 {
			out = append(out, Message{Role: m.Role, Parts: parts}) // results go between the two
			continue
		}
		out = appendMessage(out, Message{Role: m.Role, Parts: parts})
	}
	return out, nil
}

// lastUserMessage returns the index of the last message with a part from the user other than a tool result, or -1.
func lastUserMessage(ms []Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		for _, p := range ms[i].Parts {
			if ms[i].Role == User && p.Type != Result {
				return i
			}
		}
	}
	return -1
}

// appendMessage appends a message, merging it into the last one if the role is the same.
func appendMessage(ms []Message, m Message) []Message {
	n := len(ms)
	switch {
	case len(m.Parts) == 0:
		return ms
	case n > 0 && ms[n-1].Role == m.Role:
		ms[n-1].Parts = append(ms[n-1].Parts, m.Parts...)
		return ms
	default:
		return append(ms, m)
	}
}

func isSendable(p Part, r Role, provider string) bool {
	switch p.Type {
	case Text:
		return strings.TrimSpace(p.Text) != ""
	case Media:
		return r == User && (len(p.Data) > 0 || p.URL != "")
	case Reasoning:
		_, ok := decodeRaw(provider, p.Raw)
		return ok && r == Assistant
	case ToolCall:
		return p.Name != "" && r == Assistant
	case Result:
		return r == User
	default:
		return false
	}
}

// pendingCall is a call and its result, once found.
type pendingCall struct {
	call   *Part
	result *Part
}

// pendingCalls are the calls without a result, by original id, in the order of their messages. A map keeps the lookup
// fast, because there may be very many.
type pendingCalls map[string][]messageCalls

// messageCalls are the calls of one message.
type messageCalls struct {
	message int // index of the message
	calls   []*pendingCall
}

func (u pendingCalls) add(id string, by int, a *pendingCall) {
	if n := len(u[id]); n == 0 || u[id][n-1].message != by {
		u[id] = append(u[id], messageCalls{message: by})
	}
	last := &u[id][len(u[id])-1]
	last.calls = append(last.calls, a)
}

// pop removes and returns the first call of the newest message that has a call with this id, or nil if all have their
// results. known reports whether the id was ever added.
func (u pendingCalls) pop(id string) (a *pendingCall, known bool) {
	list, known := u[id]
	if len(list) == 0 {
		return nil, known
	}
	last := &list[len(list)-1]
	a, last.calls = last.calls[0], last.calls[1:]
	if len(last.calls) == 0 {
		u[id] = list[:len(list)-1]
	}
	return a, known
}

// pairResults moves each result directly behind its call, assigns every call a unique id that providers accept, and
// adds an error result to each call without one.
func pairResults(ms []Message) []Message {
	seen := map[string]bool{}
	open := pendingCalls{}
	calls := map[int][]*pendingCall{} // pending calls by the index of the message that made them
	for i := range ms {
		for j := range ms[i].Parts {
			switch p := &ms[i].Parts[j]; p.Type {
			case ToolCall:
				a := &pendingCall{call: p}
				open.add(p.ID, i, a)
				p.ID = assignCallID(p.ID, seen, i, j)
				calls[i] = append(calls[i], a)
			case Result:
				attachResult(open, p)
			case Text, Media, Reasoning:
			}
		}
	}
	var out []Message
	for i, m := range ms {
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool { return p.Type == "" })
		out = appendMessage(out, m)
		if len(calls[i]) == 0 {
			continue
		}
		var results []Part
		for _, a := range calls[i] {
			results = append(results, a.resultPart())
		}
		out = appendMessage(out, Message{Role: User, Parts: results})
	}
	return out
}

// attachResult moves a result to its call: of the pending calls with its id, the first of the newest message. It
// empties the original part. It drops a second result of a call, and turns the result of an unknown call into text.
func attachResult(open pendingCalls, p *Part) {
	to, known := open.pop(p.ID)
	if to != nil {
		r := *p
		r.ID, r.Name = to.call.ID, to.call.Name
		to.result = &r
	}
	if known {
		*p = Part{}
		return
	}
	*p = Part{Type: Text, Text: strings.TrimSpace(fmt.Sprintf("(Result of %s: %s)", p.Name, p.Text))}
}

func (a *pendingCall) resultPart() Part {
	if a.result == nil {
		return Part{Type: Result, ID: a.call.ID, Name: a.call.Name, Text: "This call has no recorded result.",
			IsError: true}
	}
	r := *a.result
	if strings.TrimSpace(r.Text) == "" {
		r.Text = "(no output)"
	}
	return r
}

// assignCallID returns an id that providers accept and that no earlier call has.
func assignCallID(id string, seen map[string]bool, i, j int) string {
	if id == "" || len(id) > 40 || sanitizeName(id) != id || seen[id] {
		id = callID(id, fmt.Sprint(i, ".", j))
	}
	seen[id] = true
	return id
}
