package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestG21_NoSliceShowsAPartOfASecret slices texts at random offsets. No slice shows a part of a secret, and the slices
// contain everything else.
func TestG21_NoSliceShowsAPartOfASecret(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"word", "phrase", "lines", "form", "jwt", "header", "none"}).Draw(t, "kind")
		n := rapid.OneOf(rapid.IntRange(6, 120), rapid.IntRange(6, 4096)).Draw(t, "length")
		secret, before := drawSecret(t, kind, n)
		r := New(nil)
		if kind == "word" || kind == "phrase" || kind == "lines" {
			r = New([]string{secret})
		}
		filler := func(name string) string {
			n := rapid.SampledFrom([]int{0, 1, 40, 500, 9000}).Draw(t, name)
			signs := rapid.SampledFrom([]string{"!", ",", " ", "\n", "é", "§ ", "🦉"})
			return strings.Join(rapid.SliceOfN(signs, n, n).Draw(t, name), "")
		}
		head, tail := filler("before"), filler("after")
		text := head + " " + before + secret + "\n" + tail
		w := sliceReader{text: text, r: r}
		limit := rapid.OneOf(rapid.IntRange(1, 60), rapid.IntRange(60, 5000)).Draw(t, "limit")

		near := max(0, len(head)-30*limit) // skip text far from the secret
		var all strings.Builder
		for at := near; at < len(text); {
			if at > len(text)-len(tail)+30*limit {
				break
			}
			_, next, shown := w.slice(t, at, limit)
			if next <= at {
				t.Fatalf("the slice at %d ends at %d", at, next)
			}
			all.WriteString(shown)
			at = next
		}
		checkNoPart(t, secret, all.String())
		for range 30 {
			at := rapid.IntRange(max(0, len(head)-50), min(len(text)-1, len(text)-len(tail)+50)).Draw(t, "offset")
			_, _, shown := w.slice(t, at, rapid.IntRange(1, 50).Draw(t, "at once"))
			checkNoPart(t, secret, shown)
		}
		all.Reset()
		for at := 0; at < len(text); {
			from, next, shown := w.slice(t, at, 1000+limit)
			if from != at && utf8.RuneStart(text[at]) {
				t.Fatalf("the slice at %d starts at %d", at, from)
			}
			all.WriteString(shown)
			at = next
		}
		if want := Replace(text, r.Find(text)); all.String() != want {
			t.Fatalf("the slices are %q, want %q", all.String(), want)
		}
	})
}

// drawSecret generates a secret of about n characters, and the words that must precede it.
func drawSecret(t *rapid.T, kind string, n int) (secret, before string) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	seed := rapid.Uint64().Draw(t, "seed")
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			seed = seed*6364136223846793005 + 1442695040888963407
			b[i] = alphabet[seed>>33%uint64(len(alphabet))]
		}
		return string(b)
	}
	separated := func(separator string) string {
		b := []byte(random(n))
		for i := 5; i < len(b)-1; i += 7 {
			b[i] = separator[0]
		}
		return string(b)
	}
	switch kind {
	case "word":
		return random(n), ""
	case "phrase":
		return separated(" "), ""
	case "lines":
		return separated("\n"), ""
	case "form":
		prefix := rapid.SampledFrom([]string{"sk-ant-api03-", "xoxb-1", "ya29."}).Draw(t, "form")
		return prefix + random(60+n%100), ""
	case "jwt":
		return random(20 + n), sampleJWT
	case "header":
		return "k7" + random(20+n%4000), rapid.SampledFrom([]string{"Authorization: Bearer ",
			`"authorization": "Basic `}).Draw(t, "name")
	}
	return "", ""
}

// sliceReader reads slices of a text as tools do and redacts the results as the gate does.
type sliceReader struct {
	text string
	r    *Redactor
}

func (w sliceReader) slice(t *rapid.T, at, limit int) (from, next int, shown string) {
	for at < len(w.text) && !utf8.RuneStart(w.text[at]) {
		at++
	}
	end := min(len(w.text), at+limit)
	for end < len(w.text) && !utf8.RuneStart(w.text[end]) {
		end++
	}
	lo := max(0, at-Window)
	from, next, shown = w.r.Slice(w.text[lo:min(len(w.text), end+Window)], at-lo, end-lo)
	result, err := json.Marshal(map[string]string{"text": shown})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Text string }
	if err := json.Unmarshal([]byte(w.r.Text(string(result))), &back); err != nil {
		t.Fatal(err)
	}
	return lo + from, lo + next, back.Text
}

// checkNoPart fails if a text contains eight consecutive bytes of a secret, or all of a shorter one.
func checkNoPart(t *rapid.T, secret, text string) {
	n := min(8, len(secret))
	for i := 0; n > 0 && i+n <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+n]) {
			t.Fatalf("the text shows %q of the secret %q", secret[i:i+n], secret)
		}
	}
}
