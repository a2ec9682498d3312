package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// judgedText is a text or a question with its id. A question is asked among the texts of its user.
type judgedText struct{ id, text, user string }

// questionSet is texts, questions, and the texts that answer each question.
type questionSet struct {
	name      string
	texts     []judgedText
	questions []judgedText               // only those with an answer
	relevant  map[string]map[string]bool // ids of texts by id of the question
}

// readQuestionSets reads a file of dialogues, or a folder with corpus.jsonl, queries.jsonl and qrels.tsv, or all folders
// in it that have them.
func readQuestionSets(dir string) ([]questionSet, error) {
	if strings.HasSuffix(dir, ".json") {
		set, err := readDialogues(dir)
		return []questionSet{set}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "corpus.jsonl")); errors.Is(err, fs.ErrNotExist) {
		folders, err := filepath.Glob(filepath.Join(dir, "*", "corpus.jsonl"))
		if err == nil && len(folders) == 0 {
			err = fmt.Errorf("%s has no corpus.jsonl; expected corpus.jsonl, queries.jsonl and qrels.tsv", dir)
		}
		var sets []questionSet
		for _, f := range folders {
			set, problem := readQuestionSet(filepath.Dir(f))
			sets, err = append(sets, set), errors.Join(err, problem)
		}
		return sets, err
	}
	set, err := readQuestionSet(dir)
	return []questionSet{set}, err
}

func readQuestionSet(dir string) (set questionSet, err error) {
	set.name, set.relevant = filepath.Base(dir), map[string]map[string]bool{}
	judged, err := os.ReadFile(filepath.Join(dir, "qrels.tsv"))
	if err != nil {
		return set, err
	}
	for line := range strings.Lines(string(judged)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[len(f)-1] == "0" {
			continue
		}
		question, text := f[0], f[len(f)-2]
		if set.relevant[question] == nil {
			set.relevant[question] = map[string]bool{}
		}
		set.relevant[question][text] = true
	}
	if set.texts, err = readTexts(filepath.Join(dir, "corpus.jsonl")); err != nil {
		return set, err
	}
	questions, err := readTexts(filepath.Join(dir, "queries.jsonl"))
	for _, q := range questions {
		if len(set.relevant[q.id]) > 0 {
			set.questions = append(set.questions, q)
		}
	}
	if err == nil && len(set.questions) == 0 {
		err = fmt.Errorf("%s has no question with an answer", dir)
	}
	return set, err
}

// readTexts reads a file with one {"id", "text"} per line.
func readTexts(file string) (list []judgedText, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, len(b)+1)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var t struct{ ID, Text string }
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, judgedText{id: t.ID, text: t.Text})
	}
	return list, lines.Err()
}

// people are the names in generated notes.
var people = strings.Fields(`Anna Boris Clara David Elena Felix Greta Hugo Irina Jonas Karin Lukas Maria Nils Olga Pavel
	Rita Stefan Tanya Ulrich Vera Walter Xenia Yuri Zelda Agnes Bruno Celia Dmitri Emma Frank Gina Henrik Ilse Jakob
	Katya Leo Mona Norbert Oskar`)

// facts are notes about a person and questions that ask for them in other words.
var facts = [][2]string{
	{"%s cannot eat peanuts", "Which food makes %s ill?"},
	{"%s works as a nurse in a hospital", "What is the profession of %s?"},
	{"%s flies to Lisbon in June", "Where is %s going on holiday this summer?"},
	{"%s drives an old blue Volvo", "What kind of car does %s have?"},
	{"%s plays the cello every evening", "Does %s make music?"},
	{"%s has two cats called Milo and Luna", "Which pets live with %s?"},
	{"%s was born on 3 March", "When is the birthday of %s?"},
	{"%s prefers tea without sugar", "What should I offer %s to drink?"},
	{"%s broke a leg while skiing", "What injury did %s have?"},
	{"%s lives on the fourth floor without a lift", "Which apartment is the home of %s?"},
	{"%s speaks Finnish and some Japanese", "Which languages does %s know?"},
	{"%s is married to a pilot", "Who is the spouse of %s?"},
	{"%s paid 900 euros for the laptop", "How much money did %s spend on a computer?"},
	{"%s goes running before breakfast", "What exercise does %s do in the morning?"},
	{"%s studied chemistry in Vienna", "At which university did %s get a degree?"},
	{"%s is reading a novel about the sea", "Which book does %s enjoy at the moment?"},
	{"%s lost the keys to the office", "Why can %s not open the door at work?"},
	{"%s wants to be called after six o'clock", "At what time should I phone %s?"},
	{"%s grows tomatoes on the balcony", "Which vegetables does %s plant?"},
	{"%s takes pills against high blood pressure", "What medicine does %s need?"},
	{"%s sends invoices at the end of each month", "When does %s bill customers?"},
	{"%s is afraid of spiders", "What scares %s?"},
	{"%s has a daughter who starts school in autumn", "How is the child of %s doing?"},
	{"%s votes against the new budget", "What is the opinion of %s on the spending plan?"},
}

// factWords returns the words of facts and questions, the most frequent words of generated notes. The encoder splits
// other words into many pieces, and takes longer for them.
func factWords() (words []string) {
	for _, f := range facts {
		for _, w := range strings.Fields(f[0] + " " + f[1]) {
			if w = strings.ToLower(strings.Trim(w, "?%'")); w != "s" && !slices.Contains(words, w) {
				words = append(words, w)
			}
		}
	}
	return words
}

// paraphrases returns a note for each fact about some people, and a question for each note. The question shares the
// name with the note, and with all other notes about the person, and few other words.
func paraphrases(names int) questionSet {
	set := questionSet{name: "paraphrases", relevant: map[string]map[string]bool{}}
	for i, f := range facts {
		for _, name := range people[:names] {
			id := fmt.Sprint(name, i)
			set.texts = append(set.texts, judgedText{id: id, text: fmt.Sprintf(f[0], name)})
			set.questions = append(set.questions, judgedText{id: id, text: fmt.Sprintf(f[1], name)})
			set.relevant[id] = map[string]bool{id: true}
		}
	}
	return set
}
