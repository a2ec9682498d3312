package client

import (
	"strings"
	"testing"
)

// Slices that end within a character lose nothing and add nothing, whatever the text.
func TestWhole(t *testing.T) {
	text := strings.Repeat("aé€𝄞\uFFFD", 40)
	for n := 4; n < 40; n++ {
		var got strings.Builder
		for offset := 0; offset < len(text); {
			end := min(offset+n, len(text))
			sent := ""
			for _, r := range text[offset:end] { // as JSON carries it: each stray byte becomes a replacement character
				sent += string(r)
			}
			content, step := sent, len(sent)
			if step > n {
				content, step = whole(sent, n, end == len(text))
			}
			got.WriteString(content)
			offset += step
		}
		if got.String() != text {
			t.Fatalf("slices of %d: got %q", n, got.String())
		}
	}
}
