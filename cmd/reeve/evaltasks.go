package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"reeve"
)

// taskSet is a file of questions.
type taskSet struct {
	Name  string `json:"name,omitempty"`
	Tasks []task `json:"tasks"`
}

// task is a question, what the answer should be, and where it is found.
type task struct {
	ID       string    `json:"id,omitempty"`
	Question string    `json:"question"`
	Answer   oneOrMore `json:"answer,omitempty"`  // any of them is right
	Sources  oneOrMore `json:"sources,omitempty"` // such as message ids
}

// hash tells whether a task is still the same.
func (t task) hash() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // it holds strings
	}
	return reeve.Hash(b)[:16]
}

// oneOrMore is a text or a list of them.
type oneOrMore []string

// UnmarshalJSON reads either.
func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	var n json.Number
	if json.Unmarshal(b, &n) == nil && n != "" { // YAML reads 42 as a number
		*o = oneOrMore{n.String()}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("neither a text nor a list of texts")
	}
	*o = list
	return nil
}

// tasks reads a task set: YAML or JSON, or JSON lines with a task on each.
func (a *app) tasks(name string) (set taskSet, err error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson":
		b, err := a.read(name)
		if err != nil {
			return set, err
		}
		n := 0
		for text := range bytes.Lines(b) {
			if n++; len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			var t task
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&t); err != nil {
				return set, reeve.Errorf(reeve.Validation, "%s: line %d is not a task: %s", name, n,
					strings.TrimPrefix(err.Error(), "json: "))
			}
			set.Tasks = append(set.Tasks, t)
		}
	default:
		if err := a.document(name, &set); err != nil {
			return set, err
		}
	}
	return set, set.check(name)
}

// check gives tasks without an id their number, and refuses what cannot be asked.
func (s *taskSet) check(name string) error {
	seen := map[string]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.ID == "" {
			t.ID = fmt.Sprintf("%d", i+1)
		}
		switch {
		case strings.TrimSpace(t.Question) == "":
			return reeve.Errorf(reeve.Validation, "%s: task %s has no question", name, t.ID)
		case seen[t.ID]:
			return reeve.Errorf(reeve.Validation, "%s: two tasks are called %s", name, t.ID)
		}
		seen[t.ID] = true
	}
	if len(s.Tasks) == 0 {
		return reeve.Errorf(reeve.Validation, "%s has no tasks", name).
			Hintf(`a task set is {"tasks": [{"question": ..., "answer": ..., "sources": [...]}]}`)
	}
	return nil
}
