package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"reeve"
)

// taskSet is the content of a task file.
type taskSet struct {
	Name  string `json:"name,omitempty"`
	Tasks []task `json:"tasks"`
}

// task is a question with its expected answers and sources.
type task struct {
	ID       string     `json:"id,omitempty"`
	Question string     `json:"question"`
	Answer   stringList `json:"answer,omitempty"`  // each of them is correct
	Sources  stringList `json:"sources,omitempty"` // such as message ids
}

// hash identifies the content of a task.
func (t task) hash() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // a task holds only strings
	}
	return reeve.Hash(b)[:16]
}

// stringList is a list of strings that can be written as a single string or number.
type stringList []string

// UnmarshalJSON decodes a string, a number or a list of strings.
func (o *stringList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = stringList{one}
		return nil
	}
	var n json.Number
	if json.Unmarshal(b, &n) == nil && n != "" { // YAML reads 42 as a number
		*o = stringList{n.String()}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("must be text or a list of texts")
	}
	*o = list
	return nil
}

// readTasks reads a task set from YAML, JSON, or JSON lines with one task per line.
func (a *app) readTasks(name string) (set taskSet, err error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson":
		b, err := a.readInput(name)
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
		if err := a.readDocument(name, &set); err != nil {
			return set, err
		}
	}
	return set, set.check(name)
}

// check sets the id of tasks without one to their number. It fails on tasks without a question, duplicate ids and an
// empty set.
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
			return reeve.Errorf(reeve.Validation, "%s: duplicate task id %s", name, t.ID)
		}
		seen[t.ID] = true
	}
	if len(s.Tasks) == 0 {
		return reeve.Errorf(reeve.Validation, "%s has no tasks", name).
			Hintf(`write tasks as {"tasks": [{"question": ..., "answer": ..., "sources": [...]}]}`)
	}
	return nil
}
