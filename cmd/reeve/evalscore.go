package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"reeve"
)

// outcome is the result of a task.
type outcome struct {
	Task          string       `json:"task"`
	Hash          string       `json:"hash"`
	Try           int          `json:"try"`
	State         string       `json:"state"` // done, failed, limit
	Answer        string       `json:"answer"`
	Exact         *bool        `json:"exact,omitempty"` // nil if the task has no expected answer
	Contains      *bool        `json:"contains,omitempty"`
	Recall        *float64     `json:"recall,omitempty"` // nil if the task has no sources
	Sources       []string     `json:"sources,omitempty"`
	Spent         reeve.Amount `json:"spent"`
	Millis        int64        `json:"millis"`
	ModelRequests int          `json:"model_requests"`
	Error         string       `json:"error,omitempty"`
	Turn          string       `json:"turn,omitempty"`
	Conversation  string       `json:"conversation,omitempty"`
}

// score compares the answer with the expected answers and sources of t. Case, punctuation and white space are ignored.
// A source counts if the answer or the arguments of a call name it; a search result that names it does not count.
func (o *outcome) score(t task, calls []string) {
	if len(t.Answer) > 0 {
		exact, contains := false, false
		answer := normalize(o.Answer)
		for _, want := range t.Answer {
			w := normalize(want)
			exact = exact || answer == w
			contains = contains || w != "" && strings.Contains(" "+answer+" ", " "+w+" ")
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

// normalize returns the words of s in lower case, separated by single spaces.
func normalize(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.IsSymbol(r)
	}), " ")
}

// evaluation is the result of a task set.
type evaluation struct {
	Set      string       `json:"set"`
	Agent    string       `json:"agent"`
	Tasks    int          `json:"tasks"`
	Done     int          `json:"done"`
	Failed   int          `json:"failed"`
	Left     int          `json:"left"` // not asked because of a limit
	Exact    *float64     `json:"exact,omitempty"`
	Contains *float64     `json:"contains,omitempty"`
	Recall   *float64     `json:"recall,omitempty"`
	Spent    reeve.Amount `json:"spent"`
	Limit    string       `json:"limit,omitempty"` // the limit that ended the evaluation
	Results  []outcome    `json:"results"`
}

// summarize fills the totals and mean scores from the results. A failed task scores zero; a task that was not asked
// does not count.
func (e *evaluation) summarize() {
	var exact, contains, recall mean
	for _, o := range e.Results {
		if o.State == "done" {
			e.Done++
		} else {
			e.Failed++
		}
		e.Spent = e.Spent.Plus(o.Spent)
		exact.addBool(o.Exact)
		contains.addBool(o.Contains)
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

func (m *mean) addBool(b *bool) {
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

// print writes a table of the tasks and a bar for each mean score.
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
	a.printTable(w, "TASK STATE EXACT CONTAINS RECALL REQUESTS TOKENS TIME ANSWER",
		rows(e.Results, func(o outcome) []string {
			recall, answer := "", o.Answer
			if o.Recall != nil {
				recall = fmt.Sprintf("%.0f%%", *o.Recall*100)
			}
			if o.State != "done" {
				answer = o.Error
			}
			took := time.Duration(o.Millis) * time.Millisecond
			return []string{o.Task, o.State, yes(o.Exact), yes(o.Contains), recall, fmt.Sprint(o.ModelRequests),
				fmt.Sprint(o.Spent.Tokens), took.String(), truncate(answer, 60)}
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
		e.Left, e.Spent.Tokens, formatMoney(e.Spent.Micros))
	if e.Limit != "" {
		fmt.Fprintf(w, "Stopped at %s. To continue, run the same command with a higher limit.\n", e.Limit)
	}
}

func formatMoney(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }
