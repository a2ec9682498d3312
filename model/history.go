package model

import (
	"fmt"
	"slices"
	"strings"

	"reeve"
)

// history makes the messages of a request sendable to a provider, whoever wrote them: roles alternate, beginning and
// ending with the user; each call is followed by its result; nothing is empty; reasoning is the provider's own. What it
// is given is not changed.
//
// A file that the provider refuses is an error if it comes with what is asked now. In what was said earlier, which is
// there to stay, words take its place.
func history(ms []Message, provider string, refuses func(media Part) error) ([]Message, error) {
	if len(ms) == 0 {
		return nil, reeve.Errorf(reeve.Validation, "there is nothing to ask: the request has no messages")
	}
	ms, err := merge(ms, provider, refuses)
	if err != nil {
		return nil, err
	}
	ms = pair(ms)
	if len(ms) == 0 {
		return nil, reeve.Errorf(reeve.Validation, "there is nothing to ask: all messages are empty")
	}
	if ms[0].Role != User {
		ms = slices.Insert(ms, 0, NewTextMessage(User, "(The conversation goes on.)"))
	}
	if ms[len(ms)-1].Role != User {
		ms = append(ms, NewTextMessage(User, "Go on."))
	}
	return ms, nil
}

// merge drops what is empty and joins the words of one side.
func merge(ms []Message, provider string, refuses func(media Part) error) ([]Message, error) {
	var out []Message
	asked := lastAsked(ms)
	for i, m := range ms {
		var parts []Part
		for _, p := range m.Parts {
			if !sendable(p, m.Role, provider) {
				continue
			}
			if p.Type == Media {
				switch err := refuses(p); {
				case err != nil && i >= asked:
					return nil, err
				case err != nil:
					p = unseen(p)
				}
			}
			parts = append(parts, p)
		}
		for len(parts) > 0 && parts[len(parts)-1].Type == Reasoning {
			parts = parts[:len(parts)-1] // thoughts that led to nothing are refused
		}
		if n := len(out); n > 0 && m.Role == Assistant &&
			slices.ContainsFunc(out[n-1].Parts, func(p Part) bool { return p.Type == ToolCall }) && len(parts) > 0 {
			out = append(out, Message{Role: m.Role, Parts: parts}) // results come between the two
			continue
		}
		out = join(out, Message{Role: m.Role, Parts: parts})
	}
	return out, nil
}

// lastAsked is the last message in which a person says something, and not only tools.
func lastAsked(ms []Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		for _, p := range ms[i].Parts {
			if ms[i].Role == User && p.Type != Result {
				return i
			}
		}
	}
	return -1
}

// join adds a message, to the last one if the same side speaks.
func join(ms []Message, m Message) []Message {
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

func sendable(p Part, r Role, provider string) bool {
	switch p.Type {
	case Text:
		return strings.TrimSpace(p.Text) != ""
	case Media:
		return r == User && (len(p.Data) > 0 || p.URL != "")
	case Reasoning:
		_, ok := unseal(provider, p.Raw)
		return ok && r == Assistant
	case ToolCall:
		return p.Name != "" && r == Assistant
	case Result:
		return r == User
	default:
		return false
	}
}

// asked is a call and where its answer will be.
type asked struct {
	call   *Part
	result *Part
}

// unanswered are the calls without a result by their ids as they were, in the order of the messages that made them.
// They are looked up, for there may be very many.
type unanswered map[string][]askedAtOnce

// askedAtOnce are calls of one message.
type askedAtOnce struct {
	by    int // the message
	calls []*asked
}

func (u unanswered) add(id string, by int, a *asked) {
	if n := len(u[id]); n == 0 || u[id][n-1].by != by {
		u[id] = append(u[id], askedAtOnce{by: by})
	}
	last := &u[id][len(u[id])-1]
	last.calls = append(last.calls, a)
}

// take gives the first call of the newest message that has one; none when all have their results.
func (u unanswered) take(id string) (a *asked, known bool) {
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

// pair puts each result right behind its call, gives every call an id of its own that providers take, and says where a
// result is missing.
func pair(ms []Message) []Message {
	seen := map[string]bool{}
	open := unanswered{}
	calls := map[int][]*asked{} // by the message that made them
	for i := range ms {
		for j := range ms[i].Parts {
			switch p := &ms[i].Parts[j]; p.Type {
			case ToolCall:
				a := &asked{call: p}
				open.add(p.ID, i, a)
				p.ID = fit(p.ID, seen, i, j)
				calls[i] = append(calls[i], a)
			case Result:
				settle(open, p)
			case Text, Media, Reasoning:
			}
		}
	}
	var out []Message
	for i, m := range ms {
		m.Parts = slices.DeleteFunc(m.Parts, func(p Part) bool { return p.Type == "" })
		out = join(out, m)
		if len(calls[i]) == 0 {
			continue
		}
		var results []Part
		for _, a := range calls[i] {
			results = append(results, a.answer())
		}
		out = join(out, Message{Role: User, Parts: results})
	}
	return out
}

// settle gives a result to the call with its id that has none, of the newest message that has one; its own place
// becomes empty. A second result for a call is dropped, and one of a call that nobody knows is told in words.
func settle(open unanswered, p *Part) {
	to, known := open.take(p.ID)
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

func (a *asked) answer() Part {
	if a.result == nil {
		return Part{Type: Result, ID: a.call.ID, Name: a.call.Name, Text: "No result of this call is recorded.",
			IsError: true}
	}
	r := *a.result
	if strings.TrimSpace(r.Text) == "" {
		r.Text = "(no output)"
	}
	return r
}

// fit gives a call an id that providers take, and that no earlier call has.
func fit(id string, seen map[string]bool, i, j int) string {
	if id == "" || len(id) > 40 || plain(id) != id || seen[id] {
		id = callID(id, fmt.Sprint(i, ".", j))
	}
	seen[id] = true
	return id
}
