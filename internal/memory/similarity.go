package memory

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"reeve"
)

const (
	relatedMeaning   = 0.6 // minimum cosine of notes about the same subject
	relatedWords     = 0.5 // or this share of the shorter note's words is in both
	duplicateMeaning = 0.9 // minimum cosine of notes that say the same in other words
	duplicateWords   = 0.5 // share of words that these notes must also have in common
	containedMeaning = 0.8 // minimum cosine if one note contains the words of the other
	containedWords   = 0.6 // or this share of words is in both notes
)

// stopWords are words that say little about a note.
var stopWords = strings.Fields(`a an the is are was were be been am i my me mine you your he she it its we our they
	their them his her of to in on at for with and or that this these those has have had do does did as by from will
	would so`)

// valueWords are words that change the meaning of a note, in addition to numbers and names.
var valueWords = strings.Fields(`not no never none without only except zero one two three four five six seven eight
	nine ten eleven twelve monday tuesday wednesday thursday friday saturday sunday january february march april may
	june july august september october november december`)

// noteWords has the words of a note, for comparisons.
type noteWords struct {
	words  []string // distinct, sorted, without stop words
	values []string // numbers, names and negations; distinct, sorted
}

// readWords returns the words of a text.
func readWords(text string) (w noteWords) {
	isSeparator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }
	for sentence := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(".!?\n", r) }) {
		for i, word := range strings.FieldsFunc(sentence, isSeparator) {
			lower := strings.ToLower(strings.Trim(word, "'"))
			if lower == "" || slices.Contains(stopWords, lower) {
				continue
			}
			isName := i > 0 && unicode.IsUpper([]rune(word)[0])
			if isName || strings.ContainsFunc(lower, unicode.IsDigit) || slices.Contains(valueWords, lower) ||
				strings.HasSuffix(lower, "n't") {
				w.values = append(w.values, lower)
			}
			if stem := strings.TrimSuffix(lower, "s"); len(stem) > 2 {
				lower = stem
			}
			w.words = append(w.words, lower)
		}
	}
	slices.Sort(w.words)
	slices.Sort(w.values)
	w.words, w.values = slices.Compact(w.words), slices.Compact(w.values)
	return w
}

// notePair is two notes and how similar they are.
type notePair struct {
	a, b       reeve.Note
	meaning    float64 // cosine; NaN if a vector is missing
	common     float64 // share of all words that are in both notes
	contained  float64 // share of the shorter note's words that are in both notes
	sameValues bool    // both have the same numbers, names and negations
}

// comparePair compares two notes.
func comparePair(a, b reeve.Note, meaning float64) notePair {
	p := notePair{a: a, b: b, meaning: meaning}
	one, two := readWords(a.Content), readWords(b.Content)
	both := 0
	for _, w := range one.words {
		if _, ok := slices.BinarySearch(two.words, w); ok {
			both++
		}
	}
	if all := len(one.words) + len(two.words) - both; all > 0 {
		p.common = float64(both) / float64(all)
	}
	if shorter := min(len(one.words), len(two.words)); shorter > 0 {
		p.contained = float64(both) / float64(shorter)
	}
	p.sameValues = slices.Equal(one.values, two.values)
	return p
}

// isNearDuplicate reports whether the notes say nearly the same.
func (p notePair) isNearDuplicate() bool {
	if !p.sameValues {
		return false
	}
	return p.contained == 1 && (p.common >= containedWords || p.meaning >= containedMeaning) ||
		p.common >= duplicateWords && p.meaning >= duplicateMeaning
}

// isRelated reports whether the notes may be about the same subject, so that one may contradict or complete the other.
func (p notePair) isRelated() bool {
	return p.isNearDuplicate() || p.meaning >= relatedMeaning ||
		p.contained >= relatedWords && !(p.meaning < minMeaning)
}

// isMixed reports whether only one of the notes comes from an untrusted source.
func (p notePair) isMixed() bool {
	return (p.a.Origin == reeve.NoteUntrusted) != (p.b.Origin == reeve.NoteUntrusted)
}

// roundScore returns a score with two digits, or 0 if there is none.
func roundScore(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Round(100*x) / 100
}
