package gate

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncateOutput(t *testing.T) {
	t.Parallel()
	g := New(Config{OutputCap: 10})
	for text, want := range map[string]string{
		"":                        "",
		"1234567890":              "1234567890",
		"12345678901":             "1234567890",
		"123456789é":              "123456789",
		"12345678é":               "12345678é",
		"1234567😀":                "1234567",
		"éééééé":                  "ééééé",
		"a\xffb":                  "a\uFFFDb",
		"a\x00b":                  "a\uFFFDb",
		strings.Repeat("\x00", 9): strings.Repeat("\uFFFD", 3), // three bytes each
		"\xff\xff\xff\xff":        "\uFFFD",
	} {
		o := g.truncateOutput(text)
		shown, note, hasNote := strings.Cut(o.content, "\n[output truncated")
		if shown != want || len(shown) > 10 || !utf8.ValidString(o.content) {
			t.Errorf("output %q: got %q", text, o.content)
		}
		if o.size != len(text) || hasNote != o.truncated {
			t.Errorf("%q: size %d, truncated %v, note %q", text, o.size, o.truncated, note)
		}
		if o.truncated && string(o.full) != text {
			t.Errorf("%q is stored as %q", text, o.full)
		}
		if !o.truncated && o.full != nil {
			t.Errorf("%q is stored although it was not truncated", text)
		}
	}
}

type panickingMarshaler struct{}

func (panickingMarshaler) MarshalJSON() ([]byte, error) { panic("no") }

func TestRenderValue(t *testing.T) {
	t.Parallel()
	g := New(Config{})
	for want, v := range map[string]any{"": nil, "a string": "a string", "bytes": []byte("bytes"),
		`{"a":"<b>"}`: map[string]string{"a": "<b>"}, `[1,2]`: []int{1, 2}, "7": 7} {
		if got := g.renderValue(v); got != want {
			t.Errorf("%v is %q", v, got)
		}
	}
	for _, v := range []any{panickingMarshaler{}, make(chan int), func() {}} {
		if got := g.renderValue(v); !strings.Contains(got, "cannot be encoded") {
			t.Errorf("%T is %q", v, got)
		}
	}
}
