package gate

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"reeve"
)

// What is left of a secret where a text breaks off is not shown, however it is spelt there. Nor is it where there is more of the text than is shown.
func TestG21_NoHeadShowsTheBeginningOfASecret(t *testing.T) {
	t.Parallel()
	known := "hunter22-Passw\"rdB é/XyZ9 🦉 & more"
	s := newScrubber([]string{known})
	inv := &reeve.Invocation{Secrets: s.find, Begun: s.begun}
	twice := inJSON(inJSON(known))
	everywhere := func(escape string) string { // each character is escaped
		var b strings.Builder
		for i := range len(known) {
			b.WriteString(strings.ReplaceAll(escape, "00", string("0123456789abcdef"[known[i]>>4])+string("0123456789abcdef"[known[i]&15])))
		}
		return b.String()
	}
	for name, secret := range map[string]string{
		"as it is":     known,
		"JSON":         inJSON(known),
		"JSON in JSON": twice,
		"address":      url.QueryEscape(known),
		"percent":      everywhere("%00"),
		"HTML":         strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace(known),
		"surrogates":   strings.NewReplacer("é", `\u00e9`, "🦉", `\ud83e\udd89`, `"`, `\"`).Replace(known),
		"base64":       spellings(known)[0],
		"form":         "sk-ant-api03-abcdefghijklmnop",
	} {
		for n := range len(secret) {
			for where, shown := range map[string]string{
				"broken off": inv.Head("It is: "+secret[:n], 1000),
				"cut":        inv.Head("It is: "+secret+" and so on", len("It is: ")+n),
				"far beyond": inv.Head("It is: "+secret[:n], len("It is: ")+n/2),
			} {
				left := strings.TrimSuffix(strings.TrimPrefix(shown, "It is: "), redacted)
				if len(left) > 4*len("%00")-1 || strings.Contains("as it is, base64, form", name) && len(left) > least {
					t.Fatalf("%s, %s at %d: %q", name, where, n, shown)
				}
			}
		}
	}
	for _, text := range []string{"nothing of note", "a hunt", "the hunter", "100%", "a & b", `a\`} {
		if got := (&reeve.Invocation{Secrets: s.find, Begun: newScrubber([]string{"other value"}).begun}).Head(text, 100); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := inv.Head("nothing of note here", 10); got != "nothing of" {
		t.Errorf("%q", got)
	}
	if got := inv.Head("éé", 3); got != "é" {
		t.Errorf("%q", got)
	}
	doc, err := json.Marshal(map[string]string{"note": strings.Repeat("x", 50), "password": "correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	if got := inv.Head(string(doc), len(doc)-8); strings.Contains(got, "corr") {
		t.Errorf("%q", got)
	}
}
