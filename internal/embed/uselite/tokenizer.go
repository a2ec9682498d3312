package uselite

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Piece is an entry of the vocabulary: a part of a word, and the logarithm of its probability.
type Piece struct {
	Text  string
	Score float32
}

const (
	reserved  = 6        // pieces at the beginning with a special meaning, such as the end of a sentence
	unknown   = 0        // piece that stands for unknown characters
	separator = "\u2581" // stands for a space, at the beginning of a piece
)

// tokenizer splits texts into pieces as SentencePiece does with a unigram model.
type tokenizer struct {
	pieces []Piece
	trie   *trie
}

func newTokenizer(pieces []Piece) *tokenizer {
	return &tokenizer{pieces: pieces, trie: newTrie(pieces, reserved)}
}

// step is the most likely split of a text up to one position.
type step struct {
	score float64
	piece int32
	from  int32 // where the piece begins; -1 means that the position is not reached
}

// tokens returns the pieces that text most likely consists of. Neighbouring unknown characters are one piece.
func (t *tokenizer) tokens(text string) []int32 {
	text = normalize(text)
	if text == "" {
		return nil
	}
	text = separator + strings.ReplaceAll(text, " ", separator)
	steps := make([]step, len(text)+1)
	for i := range steps {
		steps[i].from = -1
	}
	steps[0].from = 0
	for i := range text { // the beginning of each character
		at := steps[i]
		if at.from < 0 {
			continue
		}
		reach := func(piece int32, length int, score float64) {
			next := &steps[i+length]
			if score += at.score; next.from < 0 || score >= next.score {
				*next = step{score: score, piece: piece, from: int32(i)}
			}
		}
		known := false
		t.trie.prefixes(text[i:], func(piece int32, length int) {
			known = true
			reach(piece, length, float64(t.pieces[piece].Score))
		})
		if !known { // no piece begins with this character, so it is unknown
			_, size := utf8.DecodeRuneInString(text[i:])
			reach(unknown, size, 0)
		}
	}
	return path(steps)
}

// path returns the pieces of the most likely split of the whole text.
func path(steps []step) []int32 {
	n := 0
	for i := len(steps) - 1; i > 0; i = int(steps[i].from) {
		n++
	}
	ids := make([]int32, n)
	for i := len(steps) - 1; i > 0; i = int(steps[i].from) {
		n--
		ids[n] = steps[i].piece
	}
	kept := ids[:0]
	for _, id := range ids {
		if id != unknown || len(kept) == 0 || kept[len(kept)-1] != unknown {
			kept = append(kept, id)
		}
	}
	return kept
}

// normalize applies the rule nmt_nfkc of SentencePiece to a text. The result has no control characters, is in the form
// NFKC and has single spaces between words. An invalid byte counts as a space.
func normalize(text string) string {
	text = norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f && r != 0x200d,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == utf8.RuneError:
			return ' '
		case r < 0x20, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		default:
			return r
		}
	}, text))
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " ")
}
