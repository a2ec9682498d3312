package uselite

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// vocabulary returns pieces behind the reserved ones.
func vocabulary(pieces ...Piece) []Piece {
	return append(make([]Piece, reserved), pieces...)
}

func TestTokensAreTheMostLikelyPieces(t *testing.T) {
	t.Parallel()
	pieces := vocabulary(Piece{"▁", -3}, Piece{"a", -5}, Piece{"b", -5}, Piece{"ab", -8}, Piece{"▁a", -7}, Piece{"▁ab", -12},
		Piece{"é", -4}, Piece{"ba", -11}, Piece{"bab", -12})
	tok := newTokenizer(pieces)
	for text, want := range map[string]string{
		"": "", " \n ": "", "a": "▁a", "ab": "▁ ab", "aab": "▁a ab", "a b": "▁a ▁ b", "é": "▁ é", "e\u0301": "▁ é",
		"x": "▁ ?", "xyz": "▁ ?", "x a": "▁ ? ▁a", "語x日a語": "▁ ? a ?", "bab": "▁ bab", "\xffa": "▁a",
	} {
		var got []string
		for _, id := range tok.tokens(text) {
			if id == unknown {
				got = append(got, "?")
			} else {
				got = append(got, pieces[id].Text)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q is %q, not %q", text, s, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "  a  b ": "a b", "a\tb\r\nc": "a b c", "a\x00b\x1fc\x7f": "abc", "ﬁ": "fi", "ｆｕｌｌ": "full",
		"a\u00a0b": "a b", "a\u3000b": "a b", "a\u200bb": "a b", "\ufeffa": "a", "a\xffb": "a b", "a\ufffdb": "a b",
		"cafe\u0301": "café", "▁a": "a", "①": "1", "👨\u200d👩": "👨\u200d👩",
	} {
		if got := normalize(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

func TestTrieFindsAllPrefixes(t *testing.T) {
	t.Parallel()
	m := load(t)
	index := map[string]int32{}
	for i, p := range m.tokenizer.pieces {
		if i >= reserved {
			index[p.Text] = int32(i)
		}
	}
	for _, p := range m.tokenizer.pieces[reserved:] {
		text := p.Text + "ing ▁the"
		found := map[string]int32{}
		m.tokenizer.trie.prefixes(text, func(piece int32, length int) { found[text[:length]] = piece })
		for n := range len(text) + 1 {
			want, ok := index[text[:n]]
			got, has := found[text[:n]]
			if ok != has || got != want {
				t.Fatalf("%q in %q: %d, %v instead of %d, %v", text[:n], text, got, has, want, ok)
			}
		}
	}
	m.tokenizer.trie.prefixes("", func(int32, int) { t.Error("found something in nothing") })
}

// TestEveryCharacterOfAPieceIsAPiece checks what the tokenizer relies on: every character of a piece is itself a piece.
func TestEveryCharacterOfAPieceIsAPiece(t *testing.T) {
	t.Parallel()
	m := load(t)
	alone := map[rune]bool{}
	for _, p := range m.tokenizer.pieces[reserved:] {
		if r, size := utf8.DecodeRuneInString(p.Text); size == len(p.Text) {
			alone[r] = true
		}
	}
	for _, p := range m.tokenizer.pieces[reserved:] {
		for _, r := range p.Text {
			if !alone[r] {
				t.Errorf("%q of %q is no piece", r, p.Text)
			}
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"", "hello world", "日本 x", "a\xff\x00b", ":-) 10:30", "e\u0301\u0301"} {
		f.Add(text)
	}
	m := load(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := m.Tokens(text)
		if again := m.Tokens(normalize(text)); len(again) != len(ids) {
			t.Errorf("%q has %d tokens, cleaned %d", text, len(ids), len(again))
		}
		previous := int32(-1)
		for _, id := range ids {
			if id < 0 || int(id) >= len(m.tokenizer.pieces) || id > 0 && id < reserved ||
				id == unknown && previous == unknown {
				t.Errorf("%q has the tokens %v", text, ids)
			}
			previous = id
		}
	})
}
