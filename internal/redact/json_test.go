package redact

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestG21_JSONStaysJSON redacts strings in all kinds of JSON. The result is valid JSON that lacks only the secret.
func TestG21_JSONStaysJSON(t *testing.T) {
	t.Parallel()
	key := "sk_" + "live_iK2ZWeqhFWCEPyYnaB3dEfGh1JkLmN0pQrSt"
	pem := "-----BEGIN PRIVATE KEY-----"
	s := New([]string{"nabcd1234", `"quoted`, "12345678", `{"type": "service", "n": 77}`, `tails\`})
	for text, want := range map[string]string{
		`{"text":"first\n` + key + `\nlast\n"}`:        `{"text":"first\n[REDACTED]\nlast\n"}`,
		`{"text":"first\t` + key + `\u00e9last"}`:      `{"text":"first\t[REDACTED]élast"}`,
		`{"text":"\u00e9` + key + `"}`:                 `{"text":"é[REDACTED]"}`,
		`{"text":"\ud83e\udd89` + key + `\/x"}`:        `{"text":"🦉[REDACTED]/x"}`,
		`["\\n` + key + `"]`:                           `["\\n[REDACTED]"]`,
		`["a\nabcd1234"]`:                              `["a\nabcd1234"]`, // \n is a line break, not part of the secret
		`["a nabcd1234"]`:                              `["a [REDACTED]"]`,
		`{"a":"quoted","b":"\"quoted"}`:                `{"a":"[REDACTED]","b":"[REDACTED]"}`,
		`{"n":12345678,"m":-9123456789.5,"o":1234567}`: `{"n":"[REDACTED]","m":"[REDACTED]","o":1234567}`,
		`{"type": "service", "n": 77}`:// the whole text is a stored value
		`{"[REDACTED]": "[REDACTED]", "[REDACTED]": "[REDACTED]"}`,
		`{"a":"tails\\","b":1}`:                               `{"a":"[REDACTED]","b":1}`,
		`{"password":"ab\"cdefgh","db_password" : "hunter2"}`: `{"password":"ab\"cdefgh","db_password" : "hunter2"}`,
		`{"password":-1.5e10,"token":false,"secret":null}`:    `{"password":-1.5e10,"token":false,"secret":null}`,
		`{"Authorization":"Bearer a1b2c3d4e5f6a7b8","t":"x"}`: `{"Authorization":"Bearer [REDACTED]","t":"x"}`,
		`{"a":"` + pem + `\n` + sampleKeyLine + `","b":"c"}`:  `{"a":"[REDACTED]","b":"c"}`,
		`{"a":"` + pem + `\nMII","b":"c"}`:                    `{"a":"` + pem + `\nMII","b":"c"}`, // a mention
		`["` + pem + `","` + sampleKeyLine + `","x2/z==","-- ","x"]`: `["` + pem +
			`","[REDACTED]","[REDACTED]","-- ","x"]`,
		`["` + pem + `","and","x"]`:      `["` + pem + `","and","x"]`,
		`"` + key + `"`:                  `"[REDACTED]"`,
		"  {\"a\" :\t\"" + key + "\"}\n": "  {\"a\" :\t\"[REDACTED]\"}\n",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
	// Text that contains JSON but is not JSON as a whole keeps its escapes.
	for text, want := range map[string]string{
		`{"a":"b\n` + key + `\nc"} {"a":1}`: `{"a":"b\n[REDACTED]\nc"} {"a":1}`,
		`"a":"\\u00e9` + key + `\nc`:        `"a":"\\u00e9[REDACTED]\nc`,
		`"a":"\ud83e\udd89` + key + `\nc`:   `"a":"\ud83e\udd89[REDACTED]\nc`,
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// TestFileNamesKeepKeyFormats checks that only stored values are removed from members that name files.
func TestFileNamesKeepKeyFormats(t *testing.T) {
	t.Parallel()
	key := "sk_" + "live_iK2ZWeqhFWCEPyYnaB3dEfGh1JkLmN0pQrSt"
	text := `{"path":"/shared/` + key + `","text":"` + key + `","name":"stored value"}`
	want := `{"path":"/shared/` + key + `","text":"[REDACTED]","name":"[REDACTED]"}`
	if got := New([]string{"stored value"}).Text(text, "path", "name"); got != want {
		t.Error(got)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":["\nAIzaSyA-abcdefghijklmnopqrstuvwxyz012",1.5e10,true,{"password":"\"x\u00e9\ud83e\udd89"}]}`,
		"secret")
	f.Add(`["token='", "it's", "-----BEGIN PRIVATE KEY-----"]`, `","`)
	f.Add(`{"k":"xyz12345"}`, `"xyz1`)
	f.Fuzz(func(t *testing.T, text, secret string) {
		s := New([]string{secret})
		in, err := json.Marshal(map[string]any{"text": text, text: []any{text, 12345678, secret}})
		if err != nil {
			t.Skip()
		}
		for _, doc := range []string{text, string(in)} {
			if !isJSON(doc) {
				continue
			}
			got := s.Text(doc)
			if !json.Valid([]byte(got)) {
				t.Fatalf("%q became %q", doc, got)
			}
			if !sameShape(decode(t, doc), decode(t, got)) {
				t.Fatalf("%q became %q, of another shape", doc, got)
			}
			if len(secret) >= 8 && !strings.Contains(secret, "REDACTED") && contains(decode(t, got),
				secret) && !strings.Contains(strings.ReplaceAll(text, secret, Mark), secret) {
				t.Fatalf("%q is left in %q", secret, got)
			}
		}
	})
}

func decode(t *testing.T, doc string) (v any) {
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		if strings.Contains(err.Error(), "number") {
			t.Skip() // the number is too large for a float64
		}
		t.Fatal(err)
	}
	return v
}

// sameShape reports whether two values have the same arrays and objects without additional members. Any value may be
// replaced by a mark.
func sameShape(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameShape(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && len(b) <= len(a)
	case string:
		_, ok := b.(string)
		return ok
	}
	return b == Mark || reflect.DeepEqual(a, b)
}

// contains reports whether a string or a member name in v contains secret.
func contains(v any, secret string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, secret)
	case []any:
		for _, e := range v {
			if contains(e, secret) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.Contains(k, secret) || contains(e, secret) {
				return true
			}
		}
	}
	return false
}
