package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"reeve"
	"reeve/internal/notify"
)

// rehearsal plays a model, always the same for the same requests in the same order.
type rehearsal struct {
	script Script

	mu    sync.Mutex
	next  int         // how many answers without a condition were given
	times map[int]int // how often an answer with one fitted
}

// Rehearsal is the model that needs no key: it follows a script. Without one, or at its end, it calls the tool that the
// user names, as in `file_list {"path":"/"}`, says in words what tools answered, and otherwise says what it heard.
func Rehearsal(s Script) Model { return &rehearsal{script: s, times: map[int]int{}} }

var rehearsalServer = Server{Name: "rehearsal", KeyVar: "the rehearsal script"}

// Answer implements Model.
func (m *rehearsal) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	if len(m.script.Models) > 0 && !slices.Contains(m.script.Models, r.Model) {
		return Answer{}, reeve.Errorf(reeve.NotFound, "there is no model %q", r.Model).
			Hintf("The rehearsal script has %s.", strings.Join(m.script.Models, ", "))
	}
	if len(r.Messages) == 0 {
		return Answer{}, reeve.Errorf(reeve.Validation, "there is nothing to ask: the request has no messages")
	}
	h := heard(r)
	l, ok := m.line(r, h)
	if !ok {
		l = unscripted(r, h)
	}
	if r.OneCall && len(l.Calls) > 1 {
		l.Calls = l.Calls[:1]
	}
	d := newDraft(rehearsalServer, r, names{}, watch)
	d.answer.ID = "rehearsal_" + strings.TrimPrefix(callID(r.Model, r.System, fmt.Sprint(len(r.Messages)), h.said,
		h.results), "call_")
	return play(ctx, d, l, r, h)
}

// hearing is what a request ends with.
type hearing struct {
	said    string   // the words of the last message
	results string   // what tools answer in the last message
	tools   []string // which tools
	asked   string   // the last words of a person, in whatever message
}

func heard(r Request) hearing {
	var h hearing
	var results []string
	last := r.Messages[len(r.Messages)-1]
	for _, p := range last.Parts {
		if p.Type == Result {
			results = append(results, p.Text)
			h.tools = append(h.tools, p.Name)
		}
	}
	h.results = strings.Join(results, "\n")
	for i, m := range slices.Backward(r.Messages) {
		if text := words(m.Parts); m.Role == User && text != "" {
			h.asked = text
			if i == len(r.Messages)-1 {
				h.said = text
			}
			break
		}
	}
	return h
}

// words are the texts of a message, each on a line of its own: several may speak in one.
func words(parts []Part) string {
	var said []string
	for _, p := range parts {
		if p.Type == Text && p.Text != "" {
			said = append(said, p.Text)
		}
	}
	return strings.Join(said, "\n")
}

// line chooses the answer of the script that is next.
func (m *rehearsal) line(r Request, h hearing) (Line, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := 0
	for i, l := range m.script.Answers {
		if l.When == (When{}) {
			if free++; free > m.next {
				m.next++
				return l, true
			}
			continue
		}
		if !l.When.fits(r, h) {
			continue
		}
		m.times[i]++
		if l.When.Every > 1 && m.times[i]%l.When.Every != 1 {
			continue
		}
		return l, true
	}
	return Line{}, false
}

func (w When) fits(r Request, h hearing) bool {
	named := func(pattern string, names []string) bool {
		return pattern == "" || slices.ContainsFunc(names, func(n string) bool {
			return n == pattern ||
				strings.HasPrefix(pattern, "/") && fits(pattern, n)
		})
	}
	var offered []string
	for _, t := range r.Tools {
		offered = append(offered, t.Name)
	}
	return (w.Said == "" || h.said != "" && fits(w.Said, h.said)) && (w.Result == "" || len(h.tools) > 0 &&
		fits(w.Result, h.results)) &&
		named(w.Tool, h.tools) && named(w.Offers, offered) && fits(w.System, r.System) &&
		(w.Model == "" || w.Model == r.Model)
}

// maxEcho bounds what is quoted of what was said or answered.
const maxEcho = 1000

// unscripted is what the model says by itself.
func unscripted(r Request, h hearing) Line {
	if calls := chosen(r, spelled(h.said, r.Tools)); len(calls) > 0 {
		return Line{Calls: calls}
	}
	if len(h.tools) > 0 {
		var b strings.Builder
		for _, p := range r.Messages[len(r.Messages)-1].Parts {
			switch {
			case p.Type != Result:
			case p.IsError:
				fmt.Fprintf(&b, "%s failed: %s\n", p.Name, reeve.Truncate(p.Text, maxEcho))
			default:
				fmt.Fprintf(&b, "%s says: %s\n", p.Name, reeve.Truncate(p.Text, maxEcho))
			}
		}
		return Line{Text: strings.TrimSpace(b.String())}
	}
	if strings.TrimSpace(h.said) == "" {
		return Line{Text: "This is the rehearsal model. Say something, or name a tool."}
	}
	return Line{Text: "You said: " + reeve.Truncate(strings.TrimSpace(h.said), maxEcho)}
}

// chosen makes calls fit the request's choice of tools: none, or at least one, which may have to be of a certain tool.
func chosen(r Request, calls []LineCall) []LineCall {
	switch r.Choice {
	case NoCall:
		return nil
	case MustCall:
		if r.ChoiceTool != "" {
			calls = slices.DeleteFunc(calls, func(c LineCall) bool { return c.Name != r.ChoiceTool })
		}
		if len(calls) == 0 && r.ChoiceTool != "" {
			return []LineCall{{Name: r.ChoiceTool}}
		}
		if len(calls) == 0 && len(r.Tools) > 0 {
			return []LineCall{{Name: r.Tools[0].Name}}
		}
	case MayCall:
	}
	return calls
}

// stopped cuts a text before the first of the texts that it is to stop at.
func stopped(text string, at []string) string {
	for _, s := range at {
		text, _, _ = strings.Cut(text, s)
	}
	return text
}

// spelled finds the calls that a person spells out: on a line, the name of a tool that is offered, and its arguments or
// nothing.
func spelled(said string, tools []Tool) []LineCall {
	var calls []LineCall
	for rest := said; rest != ""; {
		line, more, _ := strings.Cut(rest, "\n")
		name, at := namedIn(line, tools)
		if name == "" {
			rest = more
			continue
		}
		args := strings.TrimSpace(rest[at:])
		if !strings.HasPrefix(args, "{") {
			if strings.TrimSpace(line) == name {
				calls = append(calls, LineCall{Name: name})
			}
			rest = more
			continue
		}
		start := at + strings.Index(rest[at:], "{")
		d := json.NewDecoder(strings.NewReader(rest[start:]))
		var raw json.RawMessage
		if d.Decode(&raw) == nil { // it may go over several lines
			calls = append(calls, LineCall{Name: name, Args: string(raw)})
			rest = rest[start+int(d.InputOffset()):]
			continue
		}
		calls = append(calls, LineCall{Name: name, Args: strings.TrimSpace(line[at:])}) // as a model may get it wrong
		rest = more
	}
	return calls
}

// namedIn finds the first tool that a line names as a word, and where its name ends.
func namedIn(line string, tools []Tool) (name string, end int) {
	word := func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || r == '/' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z'
	}
	for at := 0; at < len(line); {
		skip := strings.IndexFunc(line[at:], word)
		if skip < 0 {
			return "", 0
		}
		at += skip
		n := strings.IndexFunc(line[at:], func(r rune) bool { return !word(r) })
		if n < 0 {
			n = len(line) - at
		}
		if w := line[at : at+n]; slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == w }) {
			return w, at + n
		}
		at += n
	}
	return "", 0
}

// play streams an answer, or fails as it is told to.
func play(ctx context.Context, d *draft, l Line, r Request, h hearing) (Answer, error) {
	var steps []func()
	if l.Think != "" {
		for _, w := range pieces(l.Think, l.Pieces) {
			steps = append(steps, func() { d.think("", piece(w)) })
		}
	}
	text := strings.NewReplacer("{{said}}", h.asked, "{{results}}", h.results).Replace(l.Text)
	text = stopped(text, r.StopAt)
	for _, w := range pieces(text, l.Pieces) {
		steps = append(steps, func() { d.say("", piece(w)) })
	}
	for i, c := range l.Calls {
		key, id, args := fmt.Sprint(i), c.ID, c.written()
		if id == "" {
			id = callID(d.answer.ID, key, c.Name, args)
		}
		middle := len(args) / 2
		steps = append(steps, func() { d.call(key, id, c.Name, piece(args[:middle])) },
			func() { d.call(key, "", "", piece(args[middle:])) })
	}
	if err := wait(ctx, time.Duration(l.Delay)); err != nil {
		return Answer{}, err
	}
	for i, step := range steps {
		if l.Fail != nil && i >= l.Fail.After {
			break
		}
		if i > 0 {
			if err := wait(ctx, time.Duration(l.Pace)); err != nil {
				return Answer{}, err
			}
		}
		step()
	}
	if l.Fail != nil {
		return Answer{}, l.Fail.err(ctx)
	}
	stop := l.Stop
	if stop == "" {
		stop = StopEnd
	}
	a, err := d.finish(stop)
	if err != nil {
		return Answer{}, err
	}
	a.Usage = l.usage(r, a)
	return a, nil
}

// written gives a call's arguments as a model would write them.
func (c LineCall) written() string {
	switch args := c.Args.(type) {
	case nil:
		return "{}"
	case string:
		return args
	default:
		raw, err := json.Marshal(args)
		if err != nil {
			return fmt.Sprint(args)
		}
		return string(raw)
	}
}

// pieces cuts a text into n pieces, or after each word.
func pieces(text string, n int) []string {
	words := strings.SplitAfter(text, " ")
	if n > 0 {
		letters := []rune(text)
		words = nil
		for i := range n {
			words = append(words, string(letters[i*len(letters)/n:(i+1)*len(letters)/n]))
		}
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// wait waits, unless the caller gives up first.
func wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		notify.Sleep(ctx, d)
	}
	return interrupted(ctx, "rehearsal")
}

func (f *Fail) err(ctx context.Context) error {
	switch {
	case f.Hang:
		<-ctx.Done()
		return interrupted(ctx, "rehearsal")
	case f.Cut:
		return rehearsalServer.cut(ctx)
	case f.Nonsense:
		return rehearsalServer.nonsense("as the script wants it")
	default:
		h := http.Header{}
		if f.RetryAfter > 0 {
			h.Set("Retry-After", fmt.Sprint(time.Duration(f.RetryAfter).Seconds()))
		}
		return rehearsalServer.refused(f.Status, h, "", f.Message)
	}
}

// usage is what the script says, or about what the lengths come to.
func (l Line) usage(r Request, a Answer) Usage {
	if u := l.Usage; u != nil {
		return Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
			Reasoning: u.Reasoning}
	}
	read := len(r.System)
	for _, t := range r.Tools {
		read += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			read += len(p.Text) + len(p.Args) + len(p.Data)
		}
	}
	written, thought := 0, 0
	for _, p := range a.Parts {
		written += len(p.Text) + len(p.Args)
		if p.Type == Reasoning {
			thought += len(p.Text)
		}
	}
	return Usage{Input: max(1, tokens(read)), Output: max(1, tokens(written)), Reasoning: tokens(thought)}
}
