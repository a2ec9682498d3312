package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"reeve"
)

// outcome is what became of a task.
type outcome struct {
	Task         string       `json:"task"`
	Hash         string       `json:"hash"`
	Try          int          `json:"try"`
	State        string       `json:"state"` // done, failed, limit
	Answer       string       `json:"answer"`
	Exact        *bool        `json:"exact,omitempty"` // left out when the task says no answer
	Contains     *bool        `json:"contains,omitempty"`
	Recall       *float64     `json:"recall,omitempty"` // left out when the task names no sources
	Sources      []string     `json:"sources,omitempty"`
	Spent        reeve.Amount `json:"spent"`
	Millis       int64        `json:"millis"`
	Moves        int          `json:"moves"`
	Error        string       `json:"error,omitempty"`
	Turn         string       `json:"turn,omitempty"`
	Conversation string       `json:"conversation,omitempty"`
}

// score compares an answer with what it should be. Upper and lower case, signs and spaces at the ends or doubled do not
// count. A source counts when the answer names it, or when a call was made about it: having seen it among a search's
// results is not enough.
func (o *outcome) score(t task, calls []string) {
	if len(t.Answer) > 0 {
		exact, contains := false, false
		said := normal(o.Answer)
		for _, want := range t.Answer {
			w := normal(want)
			exact = exact || said == w
			contains = contains || w != "" && strings.Contains(" "+said+" ", " "+w+" ")
		}
		o.Exact, o.Contains = &exact, &contains
	}
	if len(t.Sources) == 0 {
		return
	}
	for _, s := range t.Sources {
		bare := strings.Trim(s, "<> ")
		for _, text := range append([]string{o.Answer}, calls...) {
			if bare != "" && strings.Contains(text, bare) {
				o.Sources = append(o.Sources, s)
				break
			}
		}
	}
	recall := float64(len(o.Sources)) / float64(len(t.Sources))
	o.Recall = &recall
}

// normal is a text by its words: what stands between them is a space.
func normal(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.IsSymbol(r)
	}), " ")
}

// evaluation is what a task set came to.
type evaluation struct {
	Set      string       `json:"set"`
	Agent    string       `json:"agent"`
	Tasks    int          `json:"tasks"`
	Done     int          `json:"done"`
	Failed   int          `json:"failed"`
	Left     int          `json:"left"` // not asked, because of a limit
	Exact    *float64     `json:"exact,omitempty"`
	Contains *float64     `json:"contains,omitempty"`
	Recall   *float64     `json:"recall,omitempty"`
	Spent    reeve.Amount `json:"spent"`
	Limit    string       `json:"limit,omitempty"` // which one ended it
	Results  []outcome    `json:"results"`
}

// sum adds outcomes up. A task that failed scores nothing; one that was not asked does not count.
func (e *evaluation) sum() {
	var exact, contains, recall mean
	for _, o := range e.Results {
		if o.State == "done" {
			e.Done++
		} else {
			e.Failed++
		}
		e.Spent = e.Spent.Plus(o.Spent)
		exact.truth(o.Exact)
		contains.truth(o.Contains)
		if o.Recall != nil {
			recall.add(*o.Recall)
		}
	}
	e.Left = e.Tasks - len(e.Results)
	e.Exact, e.Contains, e.Recall = exact.value(), contains.value(), recall.value()
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m *mean) truth(b *bool) {
	if b != nil && *b {
		m.add(1)
	} else if b != nil {
		m.add(0)
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}

// print writes a table of the tasks, and bars of what they came to.
func (e *evaluation) print(a *app, w io.Writer) {
	yes := func(b *bool) string {
		switch {
		case b == nil:
			return ""
		case *b:
			return "yes"
		}
		return "no"
	}
	a.table(w, "TASK STATE EXACT CONTAINS RECALL MOVES TOKENS TIME ANSWER", rows(e.Results, func(o outcome) []string {
		recall, answer := "", o.Answer
		if o.Recall != nil {
			recall = fmt.Sprintf("%.0f%%", *o.Recall*100)
		}
		if o.State != "done" {
			answer = o.Error
		}
		return []string{o.Task, o.State, yes(o.Exact), yes(o.Contains), recall, fmt.Sprint(o.Moves),
			fmt.Sprint(o.Spent.Tokens), (time.Duration(o.Millis) * time.Millisecond).Round(time.Millisecond).
				String(), cut(answer, 60)}
	}))
	fmt.Fprintln(w)
	for _, s := range []struct {
		name  string
		value *float64
	}{{"exact", e.Exact}, {"contains", e.Contains}, {"source recall", e.Recall}} {
		if s.value == nil {
			continue
		}
		full := int(*s.value*40 + 0.5)
		fmt.Fprintf(w, "%-14s %s%s %5.1f%%\n", s.name, strings.Repeat("█", full), strings.Repeat("·", 40-full),
			*s.value*100)
	}
	fmt.Fprintf(w, "%d tasks: %d done, %d failed, %d not asked; %d tokens, %s spent\n", e.Tasks, e.Done, e.Failed,
		e.Left, e.Spent.Tokens, money(e.Spent.Micros))
	if e.Limit != "" {
		fmt.Fprintf(w, "It ended at %s. Give the same command with a higher one to go on.\n", e.Limit)
	}
}

func money(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }
