package redact

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// TestG21_HeadShowsNoPartOfASecret checks heads of texts that end within a secret, and of texts that are cut within
// one.
func TestG21_HeadShowsNoPartOfASecret(t *testing.T) {
	t.Parallel()
	known := "hunter22-Passw\"rdB é/XyZ9 🦉 & more"
	r := New([]string{known})
	escapeAll := func(escape string) string { // escapes each byte
		var b strings.Builder
		for i := range len(known) {
			b.WriteString(strings.ReplaceAll(escape, "00",
				string("0123456789abcdef"[known[i]>>4])+string("0123456789abcdef"[known[i]&15])))
		}
		return b.String()
	}
	for name, secret := range map[string]string{
		"as it is":     known,
		"JSON":         jsonContent(known),
		"JSON in JSON": jsonContent(jsonContent(known)),
		"address":      url.QueryEscape(known),
		"percent":      escapeAll("%00"),
		"HTML":         strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace(known),
		"surrogates":   strings.NewReplacer("é", `\u00e9`, "🦉", `\ud83e\udd89`, `"`, `\"`).Replace(known),
		"base64":       encodings(known)[0],
		"form":         "sk-ant-" + "api03-" + strings.Repeat("abcDEF0123456789-_", 5),
	} {
		for n := range len(secret) {
			for where, shown := range map[string]string{
				"incomplete": r.Head("It is: "+secret[:n], 1000),
				"cut":        r.Head("It is: "+secret+" and so on", len("It is: ")+n),
				"both":       r.Head("It is: "+secret[:n], len("It is: ")+n/2),
			} {
				left := strings.TrimSuffix(strings.TrimPrefix(shown, "It is: "), Mark)
				maxLeft := 4*len("%00") - 1
				if strings.Contains("as it is, base64", name) {
					maxLeft = keyLen
				}
				if len(left) > maxLeft || name == "form" && len(left) > len("sk-ant-") {
					t.Fatalf("%s, %s at %d: %q", name, where, n, shown)
				}
			}
		}
	}
	for _, text := range []string{"nothing of note", "a hunt", "the hunter", "100%", "a & b", `a\`, "re_comp",
		"a sk-"} {
		if got := New([]string{"other value"}).Head(text, 100); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := r.Head("nothing of note here", 10); got != "nothing of" {
		t.Errorf("%q", got)
	}
	if got := r.Head("éé", 3); got != "é" {
		t.Errorf("%q", got)
	}
	doc, err := json.Marshal(map[string]string{"note": strings.Repeat("x", 50), "value": known})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Head(string(doc), len(doc)-8); strings.Contains(got, "hunt") {
		t.Errorf("%q", got)
	}
}
