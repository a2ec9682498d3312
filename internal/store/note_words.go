package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	maxSearchTerms  = 32   // words by which notes are searched
	notesPerWord    = 200  // newest notes with a word that are candidates
	scoredNotes     = 200  // candidates whose texts are read
	scoredLength    = 2000 // characters of a text that are read
	minWordWeight   = 1e-6 // of a word that most notes have
	maxCountedNotes = 2000 // notes of a user that are counted to weigh words
)

// NoteWords is a note that shares words with a search.
type NoteWords struct {
	ID    string
	Score float64 // above 0; higher is better
}

// MatchNotes returns the user's current notes that share words with the search, best first. Rare words count more. Its
// cost is bounded: of each word, only the newest notes with it are candidates. Notes of others cost nothing, neither
// for the search nor for the weight of a word.
func (s Notes) MatchNotes(ctx context.Context, q NoteSearch) ([]NoteWords, error) {
	words := searchTerms(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	matches, err := s.matchWords(ctx, q, words)
	if err != nil || len(matches) == 0 {
		return nil, err
	}
	total, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*) FROM (SELECT 1 FROM notes o
		WHERE o.owner = $1 LIMIT $2) AS counted`, noteOwner(q.Workspace, q.User), maxCountedNotes)
	if err != nil {
		return nil, err
	}
	counts, err := s.countWords(ctx, q, matches, len(words), float64(total))
	if err != nil {
		return nil, err
	}
	weights := weighWords(counts, float64(total))
	list := selectCandidates(matches, weights)
	if err := s.readCandidates(ctx, list); err != nil {
		return nil, err
	}
	return scoreCandidates(list, words, weights, q.Limit), nil
}

// wordMatch is a note that has one of the words.
type wordMatch struct {
	word int   // index of the word
	n    int64 // row of the note
}

// matchWords returns, of each word, the newest notes of the user that have it and all tags.
func (s Notes) matchWords(ctx context.Context, q NoteSearch, words []string) ([]wordMatch, error) {
	owner := noteOwner(q.Workspace, q.User)
	tagged, args := tagCondition("o.id", 3, q.Tags)
	args = append([]any{owner, notesPerWord}, args...)
	table, condition, order := `notes_words JOIN notes o ON o.n = notes_words.rowid`, `notes_words MATCH $%d`,
		`notes_words.rowid`
	if s.db.Engine() == "postgres" {
		table, condition, order = `notes o`,
			`o.words @@ (to_tsquery('reeve_mail', $1) && to_tsquery('reeve_mail', $%d))`, `o.n`
	}
	var parts []string
	for i, word := range words {
		if s.db.Engine() == "postgres" {
			args = append(args, "'"+stripMarks(word)+"'")
		} else {
			args = append(args, `owner : "`+owner+`" AND content : "`+word+`"`)
		}
		parts = append(parts, fmt.Sprintf(`SELECT word, n FROM (SELECT %d AS word, o.n AS n FROM %s WHERE %s
			AND o.owner = $1 AND %s%s ORDER BY %s DESC LIMIT $2) AS found%[1]d`, i, table,
			fmt.Sprintf(condition, len(args)), isCurrentNote, tagged, order))
	}
	return queryAll(ctx, s.Snap, func(r scanner) (m wordMatch, err error) { return m, r.Scan(&m.word, &m.n) },
		strings.Join(parts, " UNION ALL "), args...)
}

// countWords returns how many notes of the user have each word, among total. Of a frequent word it estimates the
// number: the newest notes with it are as many of all notes that are as new.
func (s Notes) countWords(ctx context.Context, q NoteSearch, matches []wordMatch, words int,
	total float64) ([]float64, error) {
	counts, oldest := make([]float64, words), make([]int64, words)
	for _, m := range matches { // of each word, the newest first
		counts[m.word]++
		oldest[m.word] = m.n
	}
	for i, n := range counts {
		if n < notesPerWord {
			continue
		}
		among, _, err := queryOne(ctx, s.Snap, scanValue[int64], `SELECT count(*) FROM (SELECT 1 FROM notes o
			WHERE o.owner = $1 AND o.n >= $2 LIMIT $3) AS counted`, noteOwner(q.Workspace, q.User), oldest[i],
			maxCountedNotes)
		if err != nil {
			return nil, err
		}
		counts[i] = total * n / float64(max(among, 1))
	}
	return counts, nil
}

// weighWords returns the weight of each word: its inverse document frequency. A word that most notes have says nothing.
func weighWords(counts []float64, total float64) []float64 {
	weights := make([]float64, len(counts))
	for i, n := range counts {
		weights[i] = max(minWordWeight, math.Log((total-n+0.5)/(n+0.5)))
	}
	return weights
}

// wordCandidate is a note that has some of the words.
type wordCandidate struct {
	n       int64
	has     []bool // by word: the index found it
	weight  float64
	id      string
	content string
}

// selectCandidates returns the notes whose words have the highest weights, the newest of equal ones first.
func selectCandidates(matches []wordMatch, weights []float64) []*wordCandidate {
	byNote := map[int64]*wordCandidate{}
	var list []*wordCandidate
	for _, m := range matches {
		c := byNote[m.n]
		if c == nil {
			c = &wordCandidate{n: m.n, has: make([]bool, len(weights))}
			byNote[m.n], list = c, append(list, c)
		}
		c.has[m.word] = true
		c.weight += weights[m.word]
	}
	slices.SortFunc(list, func(a, b *wordCandidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.n, a.n))
	})
	return list[:min(len(list), scoredNotes)]
}

// readCandidates reads the ids of notes and the beginnings of their texts.
func (s Notes) readCandidates(ctx context.Context, list []*wordCandidate) error {
	byNote := map[int64]*wordCandidate{}
	for _, c := range list {
		byNote[c.n] = c
	}
	chosen := `o.n IN (SELECT value FROM json_each('[' || $1 || ']'))`
	if s.db.Engine() == "postgres" {
		chosen = `o.n = ANY (CAST(string_to_array($1, ',') AS BIGINT[]))`
	}
	_, err := queryAll(ctx, s.Snap, func(r scanner) (n int64, err error) {
		var id, content string
		if err = r.Scan(&n, &id, &content); err == nil {
			byNote[n].id, byNote[n].content = id, content
		}
		return n, err
	}, `SELECT o.n, o.id, substr(o.content, 1, $2) FROM notes o WHERE `+chosen,
		joinIDs(list, func(c *wordCandidate) int64 { return c.n }), scoredLength)
	return err
}

// scoreCandidates returns the notes with their scores by BM25, best first.
func scoreCandidates(list []*wordCandidate, words []string, weights []float64, limit int) []NoteWords {
	const saturation, lengthShare = 1.2, 0.75
	stems := make([]string, len(words))
	for i, w := range words {
		stems[i] = stemRoughly(w)
	}
	counts, lengths, mean := make([][]float64, len(list)), make([]float64, len(list)), 0.0
	for i, c := range list {
		counts[i], lengths[i] = countStems(c.content, stems)
		mean += lengths[i] / float64(len(list))
	}
	scored := make([]NoteWords, len(list))
	for i, c := range list {
		scored[i].ID = c.id
		for word, n := range counts[i] {
			if c.has[word] {
				n = max(n, 1)
			}
			scored[i].Score += weights[word] * n * (1 + saturation) /
				(n + saturation*(1-lengthShare+lengthShare*lengths[i]/mean))
		}
	}
	slices.SortStableFunc(scored, func(a, b NoteWords) int { return cmp.Compare(b.Score, a.Score) })
	return scored[:min(len(scored), limit)]
}

// countStems returns how often a text has each stem, and its number of words, at least 1.
func countStems(text string, stems []string) (counts []float64, length float64) {
	counts = make([]float64, len(stems))
	for w := range strings.FieldsFuncSeq(text, isWordSeparator) {
		length++
		if i := slices.Index(stems, stemRoughly(w)); i >= 0 {
			counts[i]++
		}
	}
	return counts, max(length, 1)
}

// stemRoughly folds a word and removes a usual English ending. It is only used to count the occurrences of words that
// the index, with its own stemmer, has found.
func stemRoughly(word string) string {
	w := strings.ToLower(word)
	if strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII }) {
		w = foldWord(w)
	}
	for _, end := range []string{"ing", "ies", "ed", "es", "ly", "s", "e", "y"} {
		if rest, ok := strings.CutSuffix(w, end); ok && len(rest) >= 3 {
			return rest
		}
	}
	return w
}

func isWordSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// searchTerms returns the distinct words of a text that have 3 to 64 bytes, in lower case.
func searchTerms(text string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(text, isWordSeparator) {
		if w = strings.ToLower(w); len(w) < 3 || len(w) > 64 || slices.Contains(out, w) {
			continue
		}
		if out = append(out, w); len(out) == maxSearchTerms {
			break
		}
	}
	return out
}
