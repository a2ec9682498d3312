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

// rehearsal simulates a model. The same requests in the same order always get the same answers.
type rehearsal struct {
	script Script

	mu      sync.Mutex
	next    int         // number of used answers without a condition
	matches map[int]int // number of matches by index of the answer
}

// Rehearsal returns a model that follows a script and needs no key. Without a script, or after its last answer, it
// calls the tools that the user names, as in `file_list {"path":"/"}`. Otherwise it reports the tool results, or
// repeats the text of the user.
func Rehearsal(s Script) Model { return &rehearsal{script: s, matches: map[int]int{}} }

var rehearsalServer = Server{Name: "rehearsal", KeyVar: "the rehearsal script"}

// Answer implements Model.
func (m *rehearsal) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	if len(m.script.Models) > 0 && !slices.Contains(m.script.Models, r.Model) {
		return Answer{}, reeve.Errorf(reeve.NotFound, "there is no model %q", r.Model).
			Hintf("use one of the models of the rehearsal script: %s", strings.Join(m.script.Models, ", "))
	}
	if len(r.Messages) == 0 {
		return Answer{}, reeve.Errorf(reeve.Validation, "the request has no messages")
	}
	tail := readTail(r)
	l, ok := m.nextAnswer(r, tail)
	if !ok {
		l = defaultAnswer(r, tail)
	}
	if r.OneCall && len(l.Calls) > 1 {
		l.Calls = l.Calls[:1]
	}
	d := newDraft(rehearsalServer, r, toolNames{}, watch)
	d.answer.ID = "rehearsal_" + strings.TrimPrefix(callID(r.Model, r.System, fmt.Sprint(len(r.Messages)),
		tail.userText,
		tail.results), "call_")
	return streamAnswer(ctx, d, l, r, tail)
}

// requestTail is the end of a request, which selects the answer.
type requestTail struct {
	userText     string   // text of the last message, if the user wrote it
	results      string   // tool results of the last message
	resultTools  []string // tools of these results
	lastUserText string   // last text of the user, in any message
}

func readTail(r Request) requestTail {
	var tail requestTail
	var results []string
	last := r.Messages[len(r.Messages)-1]
	for _, p := range last.Parts {
		if p.Type == Result {
			results = append(results, p.Text)
			tail.resultTools = append(tail.resultTools, p.Name)
		}
	}
	tail.results = strings.Join(results, "\n")
	for i, m := range slices.Backward(r.Messages) {
		if text := joinTexts(m.Parts); m.Role == User && text != "" {
			tail.lastUserText = text
			if i == len(r.Messages)-1 {
				tail.userText = text
			}
			break
		}
	}
	return tail
}

// joinTexts joins the texts of a message with line breaks. Several people may have written them.
func joinTexts(parts []Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == Text && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// nextAnswer returns the next matching answer of the script.
func (m *rehearsal) nextAnswer(r Request, tail requestTail) (ScriptAnswer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	unconditional := 0
	for i, l := range m.script.Answers {
		if l.When == (ScriptCondition{}) {
			if unconditional++; unconditional > m.next {
				m.next++
				return l, true
			}
			continue
		}
		if !l.When.matches(r, tail) {
			continue
		}
		m.matches[i]++
		if l.When.Every > 1 && m.matches[i]%l.When.Every != 1 {
			continue
		}
		return l, true
	}
	return ScriptAnswer{}, false
}

func (w ScriptCondition) matches(r Request, tail requestTail) bool {
	named := func(pattern string, names []string) bool {
		return pattern == "" || slices.ContainsFunc(names, func(n string) bool {
			return n == pattern || strings.HasPrefix(pattern, "/") && matchesPattern(pattern, n)
		})
	}
	var offered []string
	for _, t := range r.Tools {
		offered = append(offered, t.Name)
	}
	return (w.Said == "" || tail.userText != "" && matchesPattern(w.Said, tail.userText)) &&
		(w.Result == "" || len(tail.resultTools) > 0 &&
			matchesPattern(w.Result, tail.results)) &&
		named(w.Tool, tail.resultTools) && named(w.Offers, offered) && matchesPattern(w.System, r.System) &&
		(w.Model == "" || w.Model == r.Model)
}

// maxEcho limits the text of a message or a result that the default answer quotes.
const maxEcho = 1000

// defaultAnswer returns the answer of the model without a script.
func defaultAnswer(r Request, tail requestTail) ScriptAnswer {
	if calls := applyChoice(r, parseCalls(tail.userText, r.Tools)); len(calls) > 0 {
		return ScriptAnswer{Calls: calls}
	}
	if len(tail.resultTools) > 0 {
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
		return ScriptAnswer{Text: strings.TrimSpace(b.String())}
	}
	if strings.TrimSpace(tail.userText) == "" {
		return ScriptAnswer{Text: "This is the rehearsal model. Say something, or name a tool."}
	}
	return ScriptAnswer{Text: "You said: " + reeve.Truncate(strings.TrimSpace(tail.userText), maxEcho)}
}

// applyChoice adapts calls to the tool choice of the request: no calls, or at least one, possibly of a specific tool.
func applyChoice(r Request, calls []ScriptCall) []ScriptCall {
	switch r.Choice {
	case NoCall:
		return nil
	case MustCall:
		if r.ChoiceTool != "" {
			calls = slices.DeleteFunc(calls, func(c ScriptCall) bool { return c.Name != r.ChoiceTool })
		}
		if len(calls) == 0 && r.ChoiceTool != "" {
			return []ScriptCall{{Name: r.ChoiceTool}}
		}
		if len(calls) == 0 && len(r.Tools) > 0 {
			return []ScriptCall{{Name: r.Tools[0].Name}}
		}
	case MayCall:
	}
	return calls
}

// cutAtStop truncates a text before the first of the stop texts.
func cutAtStop(text string, stops []string) string {
	for _, s := range stops {
		text, _, _ = strings.Cut(text, s)
	}
	return text
}

// parseCalls finds the calls in a text: the name of an offered tool, followed by a JSON object, or alone on its line.
func parseCalls(text string, tools []Tool) []ScriptCall {
	var calls []ScriptCall
	for rest := text; rest != ""; {
		line, more, _ := strings.Cut(rest, "\n")
		name, at := findToolName(line, tools)
		if name == "" {
			rest = more
			continue
		}
		args := strings.TrimSpace(rest[at:])
		if !strings.HasPrefix(args, "{") {
			if strings.TrimSpace(line) == name {
				calls = append(calls, ScriptCall{Name: name})
			}
			rest = more
			continue
		}
		start := at + strings.Index(rest[at:], "{")
		d := json.NewDecoder(strings.NewReader(rest[start:]))
		var raw json.RawMessage
		if d.Decode(&raw) == nil { // the object may span several lines
			calls = append(calls, ScriptCall{Name: name, Args: string(raw)})
			rest = rest[start+int(d.InputOffset()):]
			continue
		}
		// invalid JSON, as a model may write it
		calls = append(calls, ScriptCall{Name: name, Args: strings.TrimSpace(line[at:])})
		rest = more
	}
	return calls
}

// findToolName returns the first tool name in a line and the offset of its end.
func findToolName(line string, tools []Tool) (name string, end int) {
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

// streamAnswer streams an answer of the script, or simulates its failure.
func streamAnswer(ctx context.Context, d *draft, l ScriptAnswer, r Request, tail requestTail) (Answer, error) {
	var steps []func()
	if l.Think != "" {
		for _, w := range splitText(l.Think, l.Pieces) {
			steps = append(steps, func() { d.addReasoning("", fragment(w)) })
		}
	}
	text := strings.NewReplacer("{{said}}", tail.lastUserText, "{{results}}", tail.results).Replace(l.Text)
	text = cutAtStop(text, r.StopAt)
	for _, w := range splitText(text, l.Pieces) {
		steps = append(steps, func() { d.addText("", fragment(w)) })
	}
	for i, c := range l.Calls {
		key, id, args := fmt.Sprint(i), c.ID, c.argumentsText()
		if id == "" {
			id = callID(d.answer.ID, key, c.Name, args)
		}
		middle := len(args) / 2
		steps = append(steps, func() { d.addCall(key, id, c.Name, fragment(args[:middle])) },
			func() { d.addCall(key, "", "", fragment(args[middle:])) })
	}
	if err := sleep(ctx, time.Duration(l.Delay)); err != nil {
		return Answer{}, err
	}
	for i, step := range steps {
		if l.Fail != nil && i >= l.Fail.After {
			break
		}
		if i > 0 {
			if err := sleep(ctx, time.Duration(l.Pace)); err != nil {
				return Answer{}, err
			}
		}
		step()
	}
	if l.Fail != nil {
		return Answer{}, l.Fail.simulate(ctx)
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

// argumentsText returns the arguments as a model would write them.
func (c ScriptCall) argumentsText() string {
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

// splitText splits a text into n fragments, or after each word if n is 0.
func splitText(text string, n int) []string {
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

// sleep waits for d. It returns an error if the context is done.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		notify.Sleep(ctx, d)
	}
	return contextError(ctx, "rehearsal")
}

// simulate returns the error of the failure. With Hang it blocks until the context is done.
func (f *ScriptFailure) simulate(ctx context.Context) error {
	switch {
	case f.Hang:
		<-ctx.Done()
		return contextError(ctx, "rehearsal")
	case f.Cut:
		return rehearsalServer.truncatedError(ctx)
	case f.Nonsense:
		return rehearsalServer.invalidAnswer("simulated by the script")
	default:
		h := http.Header{}
		if f.RetryAfter > 0 {
			h.Set("Retry-After", fmt.Sprint(time.Duration(f.RetryAfter).Seconds()))
		}
		return rehearsalServer.statusError(f.Status, h, "", f.Message)
	}
}

// usage returns the usage that the script sets, or an estimate from the lengths.
func (l ScriptAnswer) usage(r Request, a Answer) Usage {
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
	return Usage{Input: max(1, tokensOf(read)), Output: max(1, tokensOf(written)), Reasoning: tokensOf(thought)}
}
