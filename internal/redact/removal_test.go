package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"html"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// surroundings are contexts in which secrets occur. %s is the secret.
var surroundings = []string{
	"%s", "the key is %s.", "use %s, please", "(%s)", "[%s]", "<code>%s</code>", "KEY=%s\n", "export KEY='%s'",
	`{"key":"%s","n":1}`,
	`{"text":"{\"key\":\"%s\"}"}`, "https://example.com/?k=%s&x=1", "first\n%s\nlast", `line\n%s\nline`, "k%%3D%s%%26",
	"\x1b[32m%s\x1b[0m",
	"- key: %s", "`%s`", "|%s|", "\t%s\t", "é%s é", "a;%s;b", "key:%s:x", "«%s»", "prefix_%s", "#%s!",
	"$ curl -u %s: https://example.com",
}

// surround puts a secret into a context, in which a percent sign is written twice.
func surround(context, secret string) string {
	before, after, _ := strings.Cut(context, "%s")
	return strings.ReplaceAll(before, "%%", "%") + secret + strings.ReplaceAll(after, "%%", "%")
}

// containsPart reports whether a text contains twelve consecutive bytes of a secret, or all of a shorter one.
func containsPart(text, secret string) bool {
	n := min(12, len(secret))
	for i := 0; i+n <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+n]) {
			return true
		}
	}
	return false
}

// generateKey generates a key of a format. Keys are generated at run time, so that scanners do not report this source.
func generateKey(f format, rnd *rand.Rand) string {
	s := &sampler{rnd}
	var alphabet []byte
	for c := range 256 {
		if classes[c]&f.set != 0 && c != '.' {
			alphabet = append(alphabet, byte(c))
		}
	}
	n := f.min + rnd.IntN(min(f.max-f.min, 40)+1)
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	b[0], b[1], b[n-1] = '7', 'a', 'e' // at least one digit, and no punctuation at the end
	if f.set&lower == 0 && f.set&hexLetter == 0 {
		b[1], b[n-1] = 'A', 'E'
	}
	body := string(b)
	switch {
	case f.prefix == "ghs_" && f.max == unbounded:
		body = "123456_" + sampleJWT + s.url(32)
	case f.prefix == "ghp_" || f.prefix == "gho_" || f.prefix == "ghu_" || f.prefix == "ghs_" || f.prefix == "npm_":
		body = withChecksum(body[:30])
	case f.prefix == "github_pat_" || f.prefix == "SG.":
		sign := map[string]string{"github_pat_": "_", "SG.": "."}[f.prefix]
		body = s.alnum(22) + sign + s.alnum(f.min-23)
	case strings.HasPrefix(f.prefix, "pat-"):
		body = s.uuid()
	case f.prefix == "EAA":
		body = s.alnum(150) + "4ZD"
	case len(f.prefix) == 2:
		id := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprint(1e17 + rnd.Int64N(8e17))))
		body = id[2:] + "." + s.alnum(6) + "." + s.alnum(38)
	case f.prefix == "re_":
		body = s.alnum(8) + "_" + s.alnum(23) + "7"
	case f.prefix == "pat":
		body = s.alnum(14) + "." + s.hex(32)
	case f.prefix == "A3-":
		body = "ABC123-DEF456-GHJKL-MNPQR-STUVW-XYZ23"
	case f.prefix == "eyJrIjoi":
		key := `{"k":"` + s.alnum(32) + `","n":"ci","id":1}`
		body = strings.TrimPrefix(base64.StdEncoding.EncodeToString([]byte(key)), f.prefix)
	}
	return f.prefix + body
}

// withChecksum appends the checksum of GitHub and npm tokens.
func withChecksum(body string) string {
	n := crc32.ChecksumIEEE([]byte(body))
	sum := make([]byte, 6)
	for i := 5; i >= 0; i-- {
		sum[i] = base62[n%62]
		n /= 62
	}
	return body + string(sum)
}

// infixKeys returns keys of the formats in infixFormats.
func infixKeys(rnd *rand.Rand) []string {
	s := &sampler{rnd}
	return []string{"123456789" + ":AA" + s.alnum(33), s.alnum(14) + ".atlasv1." + s.alnum(67), "a1B" + "8Q~" +
		s.alnum(34), s.hex(16) + "-us12"}
}

// TestG21_EveryKnownFormatIsRemoved puts keys of every known format into every context and redacts them, as a whole and
// in pieces through a Writer.
func TestG21_EveryKnownFormatIsRemoved(t *testing.T) {
	t.Parallel()
	r := New([]string{"some stored value"})
	rnd := rand.New(rand.NewPCG(7, 24))
	planted := 0
	for _, f := range formats {
		for range 3 {
			key := generateKey(f, rnd)
			for _, place := range surroundings {
				planted++
				text := surround(place, key)
				secret := key
				if strings.Contains(f.prefix, "/") || f.prefix == "AccountKey=" {
					secret = key[len(f.prefix):]
				}
				if got := r.Text(text); containsPart(got, secret) || !strings.Contains(got, Mark) {
					t.Errorf("%s: %q became %q", f.prefix, text, got)
				}
				if got := redactInPieces(t, r, text, rnd); containsPart(got, secret) {
					t.Errorf("%s in pieces: %q became %q", f.prefix, text, got)
				}
			}
		}
	}
	for _, key := range infixKeys(rnd) {
		for _, place := range []string{"%s", "the key is %s.", `{"key":"%s","n":1}`, "KEY=%s\n", "(%s)"} {
			if got := r.Text(surround(place, key)); containsPart(got, key) {
				t.Errorf("%q became %q", key, got)
			}
		}
	}
	t.Logf("%d keys of %d formats", planted, len(formats))
}

// redactInPieces writes a text through a Writer in pieces of random length.
func redactInPieces(t *testing.T, r *Redactor, text string, rnd *rand.Rand) string {
	t.Helper()
	var out strings.Builder
	w := r.NewWriter(&out)
	most := max(9, len(text)/8)
	for text != "" {
		n := min(len(text), 1+rnd.IntN(most))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// encoders are the encodings in which outputs contain a stored value.
var encoders = map[string]func(v string) string{
	"raw":              func(v string) string { return v },
	"JSON":             jsonContent,
	"JSON for HTML":    func(v string) string { b, _ := json.Marshal(v); return string(b[1 : len(b)-1]) },
	"JSON in JSON":     func(v string) string { return jsonContent(jsonContent(v)) },
	"query":            url.QueryEscape,
	"path":             url.PathEscape,
	"lower percent":    func(v string) string { return everyByte(v, "%%%02x") },
	"upper percent":    func(v string) string { return everyByte(v, "%%%02X") },
	"percent twice":    func(v string) string { return url.QueryEscape(url.QueryEscape(v)) },
	"HTML":             html.EscapeString,
	"numeric entities": func(v string) string { return everyByte(v, "&#%d;") },
	"hex entities":     func(v string) string { return everyByte(v, "&#x%x;") },
	"unicode escapes":  func(v string) string { return everyByte(v, `\u%04x`) },
	"hex escapes":      func(v string) string { return everyByte(v, `\x%02x`) },
	"hex":              func(v string) string { return hex.EncodeToString([]byte(v)) },
	"HEX":              func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	"mixed hex": func(v string) string {
		low := hex.EncodeToString([]byte(v))
		return strings.ToUpper(low[:len(low)/2]) + low[len(low)/2:]
	},
	"base64":          func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64 URL":      func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	"base64 behind 1": func(v string) string { return base64.StdEncoding.EncodeToString([]byte("u" + v + "tail")) },
	"base64 behind 2": func(v string) string { return base64.URLEncoding.EncodeToString([]byte("u:" + v)) },
	"base64 behind 5": func(v string) string {
		return base64.RawStdEncoding.EncodeToString([]byte("user:" + v + ":x"))
	},
}

// everyByte formats each byte of an ASCII value.
func everyByte(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

// TestG21_EveryEncodingOfAStoredValueIsRemoved puts stored values of many lengths and alphabets into every context in
// every encoding and redacts them, as a whole and in pieces through a Writer.
func TestG21_EveryEncodingOfAStoredValueIsRemoved(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 24))
	s := &sampler{rnd}
	values := []string{"abcdef", "Zq8s-1", `hunt"er<two99&/+=`, `back\slash "99"`, "pass word 99!x",
		"AzKey+abc/def+ghi9==", "correct-horse-battery",
		"a%41b&lt;c\\nd", s.alnum(8), s.alnum(32), s.std(40), s.hex(32), s.url(90), s.alnum(700)}
	planted := 0
	for _, v := range values {
		r := New([]string{v, "other-secret-value"})
		for name, encode := range encoders {
			encoded := encode(v)
			for _, place := range surroundings {
				planted++
				text := surround(place, encoded)
				if got := r.Text(text); !strings.Contains(got, Mark) || containsPart(got, encoded) &&
					!shortTail(got, encoded) {
					t.Errorf("%s of %q: %q became %q", name, v, text, got)
				}
				if got := redactInPieces(t, r, text, rnd); !strings.Contains(got, Mark) ||
					strings.Contains(got, encoded) {
					t.Errorf("%s of %q in pieces: %q became %q", name, v, text, got)
				}
			}
		}
	}
	t.Logf("%d stored values", planted)
}

// TestG21_AStoredValueInAnEncodedDocumentIsRemoved encodes JSON documents that contain a stored value. Around the mark
// only the rest of the document is left.
func TestG21_AStoredValueInAnEncodedDocumentIsRemoved(t *testing.T) {
	t.Parallel()
	mixed := func(b []byte) string { return strings.ReplaceAll(hex.EncodeToString(b), "a", "A") }
	for _, v := range []string{`hunt"er<two99&/+=`, `back\slash "99"`, "schlüssel🦉/9", "plain-value-7"} {
		forHTML, _ := json.Marshal(v)
		python := strings.NewReplacer("ü", `\u00fc`, "🦉", `\ud83e\udd89`).Replace(jsonContent(v))
		for _, content := range []string{jsonContent(v), string(forHTML[1 : len(forHTML)-1]), python,
			strings.ReplaceAll(python, "/", `\/`)} {
			for margin := range 3 {
				doc := []byte(`{"v":"` + strings.Repeat("x", margin) + content + `","n":1}`)
				for _, encoded := range []string{base64.StdEncoding.EncodeToString(doc),
					base64.RawURLEncoding.EncodeToString(doc), hex.EncodeToString(doc), mixed(doc)} {
					got := New([]string{v}).Text("k " + encoded + " end")
					rest := len(encoded) * (len(doc) - len(content)) / len(doc)
					if !strings.Contains(got, Mark) || len(got) > len("k "+Mark+" end")+rest+4 {
						t.Errorf("%s: %q became %q", doc, encoded, got)
					}
				}
			}
		}
	}
}

// shortTail reports whether the rest of an encoded value is only the base64 of adjacent bytes.
func shortTail(text, encoded string) bool {
	return !strings.Contains(text, encoded) && len(encoded) < 24
}

// TestG21_SplitStreamShowsNoSecret writes a text with secrets that span several lines in two parts, split at every
// byte, and in three parts.
func TestG21_SplitStreamShowsNoSecret(t *testing.T) {
	t.Parallel()
	const lines = "one line\nanother of the same secret\nthe last"
	pem := pemBegin + "PRIVATE KEY" + pemDashes + "\n" + strings.Repeat(sampleKeyLine+"\n", 3) + "x2/z0Q==\n" + pemEnd +
		"PRIVATE KEY" + pemDashes
	r := New([]string{lines, "hunter22-Passw0rdB"}).MaskNamed()
	text := "begin\n" + lines + "\npw hunter22-Passw0rdB end\n" + pem +
		"\nAuthorization: Bearer a1b2c3d4e5f6a7b8\nexport " +
		"password=correcthorse99\nhttps://me:Summer2026rain@h/\n" + sampleJWT + sampleSignature +
		"\n" + puttyBegin + "2\n" + sampleKeyLine + "\nx2/z0Q==\n" + puttyEnd +
		"da39a3ee\nplain text at the end"
	want := Replace(text, r.Find(text))
	write := func(parts ...string) string {
		var out strings.Builder
		w := r.NewWriter(&out)
		for _, p := range parts {
			if _, err := io.WriteString(w, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for i := range len(text) {
		if got := write(text[:i], text[i:]); got != want {
			t.Fatalf("cut at %d: %q, want %q", i, got, want)
		}
		j := i + (len(text)-i)/3
		if got := write(text[:i], text[i:j], text[j:]); got != want {
			t.Fatalf("cut at %d and %d: %q, want %q", i, j, got, want)
		}
	}
	if strings.Count(want, Mark) != 8 {
		t.Errorf("%q", want)
	}
}

// TestWriterWritesWholeLinesAtOnce checks that a Writer does not buffer complete lines, and that it buffers only a
// limited part of a very long line.
func TestWriterWritesWholeLinesAtOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := New([]string{"stored value"}).NewWriter(&out)
	if _, err := io.WriteString(w, "one\ntwo\nthr"); err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	long := strings.Repeat("x", 100_000)
	if _, err := io.WriteString(w, long); err != nil || len(out.String()) < len(long)-Window {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if err := w.Close(); err != nil || out.String() != "one\ntwo\nthr"+long {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// FuzzRedact checks that stored values are removed from any text: as a whole, in slices and in pieces.
func FuzzRedact(f *testing.F) {
	f.Add("password=hunter22", "hunter22", 3)
	f.Add("\"token\": \"\\u0000", "abcdef", 1)
	f.Add("-----BEGIN PRIVATE KEY-----\nMIIE", "PRIVATE", 5)
	f.Fuzz(func(t *testing.T, text, secret string, cut int) {
		r := New([]string{secret})
		plain := strings.ReplaceAll(text, secret, Mark)
		if len(secret) < MinStored || strings.Contains(Mark, secret) || strings.Contains(plain, secret) {
			return // the secret is too short, or a replacement creates it
		}
		cut = min(max(cut, 0), len(text))
		for name, got := range map[string]string{
			"text": r.Text(text), "stored only": r.StoredOnly().Text(text), "named": r.MaskNamed().Text(text),
			"head": r.Head(text, cut),
			"pieces": func() string {
				var out strings.Builder
				w := r.NewWriter(&out)
				_, _ = io.WriteString(w, text[:cut]) // a strings.Builder does not fail
				_, _ = io.WriteString(w, text[cut:])
				_ = w.Close()
				return out.String()
			}(),
		} {
			if strings.Contains(text, secret) && strings.Contains(got, secret) &&
				!strings.Contains(secret, "REDACTED") {
				t.Fatalf("%s: %q is left in %q", name, secret, got)
			}
		}
	})
}
