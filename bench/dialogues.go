package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// readDialogues reads the questions about long dialogues of LoCoMo (locomo10.json) or LongMemEval (longmemeval_s.json).
// Each message is a text. The messages of a dialogue belong to one user, who asks the questions about it.
func readDialogues(file string) (set questionSet, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return set, err
	}
	set.name, set.relevant = strings.TrimSuffix(filepath.Base(file), ".json"), map[string]map[string]bool{}
	if bytes.Contains(b, []byte(`"haystack_sessions"`)) {
		err = set.addLongMemEval(b)
	} else {
		err = set.addLoCoMo(b)
	}
	if err == nil && len(set.questions) == 0 {
		err = fmt.Errorf("it has no question with an answer; expected the format of LoCoMo or LongMemEval")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return set, err
}

// unanswerable is the category of the questions of LoCoMo that have no answer in the dialogue.
const unanswerable = 5

var dialogueID = regexp.MustCompile(`D\d+:\d+`)

// addLoCoMo adds dialogues of LoCoMo. A text names its speaker and has the caption of its picture, if any.
func (s *questionSet) addLoCoMo(b []byte) error {
	var dialogues []struct {
		Sample       string                     `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		QA           []struct {
			Question string   `json:"question"`
			Evidence []string `json:"evidence"`
			Category int      `json:"category"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(b, &dialogues); err != nil {
		return err
	}
	for _, d := range dialogues {
		known := map[string]bool{}
		for _, session := range d.Conversation {
			var messages []struct {
				Speaker string `json:"speaker"`
				ID      string `json:"dia_id"`
				Text    string `json:"text"`
				Caption string `json:"blip_caption"`
			}
			if json.Unmarshal(session, &messages) != nil { // other entries are names and dates
				continue
			}
			for _, m := range messages {
				known[d.Sample+m.ID] = true
				s.texts = append(s.texts, judgedText{d.Sample + m.ID,
					strings.TrimSpace(m.Speaker + ": " + m.Text + " " + m.Caption), d.Sample})
			}
		}
		for i, q := range d.QA {
			relevant := map[string]bool{}
			for _, id := range dialogueID.FindAllString(strings.Join(q.Evidence, " "), -1) {
				if known[d.Sample+id] {
					relevant[d.Sample+id] = true
				}
			}
			if q.Category != unanswerable {
				s.addQuestion(fmt.Sprint(d.Sample, "-", i), q.Question, d.Sample, relevant)
			}
		}
	}
	return nil
}

// addLongMemEval adds dialogues of LongMemEval. Each question has its own.
func (s *questionSet) addLongMemEval(b []byte) error {
	var questions []struct {
		ID       string `json:"question_id"`
		Question string `json:"question"`
		Sessions [][]struct {
			Content   string `json:"content"`
			HasAnswer bool   `json:"has_answer"`
		} `json:"haystack_sessions"`
	}
	if err := json.Unmarshal(b, &questions); err != nil {
		return err
	}
	for _, q := range questions {
		relevant := map[string]bool{}
		for i, session := range q.Sessions {
			for j, m := range session {
				if strings.TrimSpace(m.Content) == "" {
					continue
				}
				id := fmt.Sprint(q.ID, "-", i, "-", j)
				s.texts = append(s.texts, judgedText{id, m.Content, q.ID})
				if m.HasAnswer {
					relevant[id] = true
				}
			}
		}
		s.addQuestion(q.ID, q.Question, q.ID, relevant)
	}
	return nil
}

// addQuestion adds a question that has an answer.
func (s *questionSet) addQuestion(id, text, user string, relevant map[string]bool) {
	if len(relevant) > 0 {
		s.questions, s.relevant[id] = append(s.questions, judgedText{id, text, user}), relevant
	}
}
