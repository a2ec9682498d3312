package gate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

// Each text holds one secret, between « and ».
func TestScrubTakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"key «sk-proj-abcdefghijklmnopqrstuv» end",
		"OPENAI_KEY=«sk-abcdefghijklmnopqrstuv»",
		"curl -H x:«ghp_abcdefghijklmnopqrstuvwxyz012345»",
		"/shared/a.env:«sk-proj-abcdefghijklmnopqrstuv»",
		"/tmp/a.env:KEY=«Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A»",
		"https://example.com/shared/«Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A»",
		"see https://example.com/«ghp_abcdefghijklmnopqrstuvwxyz012345»",
		"slack «xoxb-123456789012-abcdefghijkl»",
		"aws «AKIAIOSFODNN7EXAMPLE» id",
		"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
		"google «AIzaSyA-abcdefghijklmnopqrstuvwxyz012»",
		"Authorization: Bearer «" + jwt + "»",
		"a bare jwt «" + jwt + "» here",
		"authorization=Basic «dXNlcjpwYXNzd29yZA»",
		`{"password":"«hunter2»"}`,
		`{"password": "«p@ss,w;o{r}d & more!»", "b":1}`,
		`{"text":"{\"api_key\":\"«abc123def456»\"}"}`,
		`{'client_secret': '«s3cr3tvalue»'}`,
		"password: «swordfish»",
		"PASSWORD=«correcthorsebatterystaple»",
		"db_password=«hunter22» host=x",
		"secret=«swordfish» next",
		"Server=db;Uid=me;Pwd=«/s3cr3tvalue»",
		"the token is «a1b2c3d4e5f6»",
		"the passphrase is «s3samest33t»",
		"token => «abc123def»",
		"X-Api-Key: «0a1b2c3d4e5f»",
		"postgres://me:«hunter2»@db.example.com:5432/x",
		"https://user:«p4ss%40word»@example.com/",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE«»\n-----END RSA PRIVATE KEY-----",
		"random «aB3dE5gH7jK9mN1pQ3sT5vW7xZ» tail",
		"x=«Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A»",
		"cut off: \"token\": \"«abc123def456ghi",
		"reeve token «reeve_tok_01hzy2w8q4x6v5n3m1k0j9h8g7_abcdefghijklmnop»",
	} {
		secret := ""
		if i, j := strings.Index(text, "«"), strings.Index(text, "»"); j < 0 {
			secret = text[i+len("«"):]
		} else {
			secret = text[i+len("«") : j]
		}
		plain := strings.NewReplacer("«", "", "»", "").Replace(text)
		got := newScrubber(nil).scrub(plain)
		if !strings.Contains(got, redacted) || (secret != "" && strings.Contains(got, secret)) {
			t.Errorf("%q became %q", plain, got)
		}
		if strings.HasPrefix(text, "-----") && strings.Contains(got, "MIIE") {
			t.Errorf("a private key is left: %q", got)
		}
	}
}

// A password in an address ends where a program that reads the address has it end: at the last @.
func TestG21_APasswordWithAnAtSign(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"postgres://me:hunt@er2@db.example.com:5432/x", "see https://me:@h:u@n@db.example.com, or mail me@example.com"} {
		got := newScrubber(nil).scrub(text)
		before, _, _ := strings.Cut(text, "me:")
		_, after, _ := strings.Cut(text, "@db.")
		if want := before + "me:" + redacted + "@db." + after; got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestScrubLeaves(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"op_01hzy2w8q4x6v5n3m1k0j9h8g7 and msg_01hzy2w8q4x6v5n3m1k0j9h8g7",
		"operation op_" + strings.Repeat("0a1b2c3d4e5f6g7h8j9kmnpqrs", 2),
		"commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
		"3f2504e0-4f89-11d3-9a0c-0305e82c3301 3F2504E0-4F89-11D3-9A0C-0305E82C3301",
		"/shared/reports/Quarterly-Report-2024-Q3-Final-Version-2.pdf",
		"file not found: /shared/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv.pdf",
		"PATH=/tmp/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUv:/project/9I0jKlMnOpQrStUv1A2b3C4d5E6f7G8h",
		"/shared/src/internal/Store/PostgresConn2Test/README.md",
		"github.com/santhosh-tekuri/jsonschema/v6/kind.ExclusiveMinimum",
		"https://example.com/a/b?page=2&limit=50#Section-3",
		"2026-01-02T15:04:05.000Z [INFO] started on 127.0.0.1:7410",
		"PWD=/shared/reports/2024\nOLDPWD=/shared",
		"the secret is knowing when to stop",
		"Token: expired. Secret: unknown.",
		"token := lexer.Next()",
		"password = getPassword()",
		"const token = process.env.TOKEN",
		"secret: ${API_SECRET}",
		"tokens: 123456, max_tokens=4096",
		`{"token_type":"Bearer","secret_name":"OPENAI_KEY","token_id":"tok_01hzy2w8q4x6v5n3m1k0j9h8g7"}`,
		"a basic understanding, the bearer of news",
		"func TestG21_SecretsAreScrubbedFromResultsAndErrors2026(t *testing.T)",
		"reeve/host_test.TestG08_LocalEffectAndRecordAreOne.func2",
		"com.example.Http2StreamFrameToHttpObjectCodecTest",
		"X-Amz-Meta-Content-MD5-V4-Sig2-Header",
		"The quick brown fox jumps over the lazy dog.",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"password: ********",
		"日本語の文章、パスワードではない。",
	} {
		if got := newScrubber(nil).scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestScrubKnownValues(t *testing.T) {
	t.Parallel()
	s := newScrubber([]string{"abcd", "abcdefgh", `with "quotes" and \`, " spaced value\n", "a/b c+d", "abc"})
	for text, want := range map[string]string{
		"abcdefgh":                       redacted,
		"xabcdx":                         "x" + redacted + "x",
		"abc":                            "abc", // too short to take out
		`{"v":"with \"quotes\" and \\"}`: `{"v":"` + redacted + `"}`,
		"spaced value":                   redacted,
		"q=a%2Fb+c%2Bd":                  "q=" + redacted,
		"YWJjZGVmZ2g=":                   redacted,
		strings.Repeat("abcdefgh", 3) + " " + "abc": strings.Repeat(redacted, 3) + " abc",
	} {
		if got := s.scrub(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A value that is known is taken out however another program, or our own JSON, spells it. The spellings are written by hand, or by other programs.
func TestG21_EverySpellingOfASecret(t *testing.T) {
	t.Parallel()
	for secret, spelt := range map[string][]string{
		`hunt"er<two99`: {`hunt"er<two99`, `hunt\"er<two99`, `hunt\"er\u003ctwo99`, `hunt\"er\u003Ctwo99`, `hunt\\\"er<two99`, `hunt\\\"er\\u003ctwo99`, `hunt&#34;er&lt;two99`, `hunt&quot;er&lt;two99`,
			`hunt%22er%3Ctwo99`, `hunt%22er%3ctwo99`, "68756e74226572" + "3c74776f3939", "68756E742265723C74776F3939"},
		`hunt\er&two99`:   {`hunt\\er&two99`, `hunt\\er\u0026two99`, `hunt\\\\er&two99`, `hunt\er&amp;two99`},
		"abc/def+ghi=123": {"abc%2Fdef%2Bghi%3D123", "abc%2fdef%2bghi%3d123", "abc/def%2Bghi%3D123", `abc\/def+ghi=123`, `abc\\/def+ghi=123`, "YWJjL2RlZitnaGk9MTIz"},
		"two words 99":    {"two+words+99", "two%20words%2099", "dHdvIHdvcmRzIDk5"},
		"schlüssel🦉":      {`schl\u00fcssel\ud83e\udd89`, `schl\u00FCssel\uD83E\uDD89`, "schl%C3%BCssel%F0%9F%A6%89"},
		"AzKey+abc/def+ghi9==": {`AzKey\u002Babc/def\u002Bghi9==`, `AzKey\u002babc\/def\u002bghi9\u003d\u003D`, `AzKey\\u002Babc/def\\u002Bghi9==`, "AzKey%2Babc%2Fdef%2bghi9%3D=", "AzKey&#43;abc&sol;def&#x2B;ghi9&equals;=",
			`AzKey\x2Babc/def+ghi9==`, "AzKey%252Babc%252Fdef%252Bghi9%253D%253D", "QXpLZXkrYWJjL2RlZitnaGk5PT0%3D"},
		"Pw'quote+plus/99":   {`Pw&#x27;quote&#43;plus/99`, `Pw\u0027quote+plus/99`, `Pw'quote%2Bplus%2F99`, `Pw&apos;quote+plus/99`, `Pw\'quote+plus/99`},
		`Zq9"x<y>&w 77`:      {`Zq9"x&lt;y&gt;&amp;w 77`, `Zq9&quot;x&lt;y&gt;&amp;w 77`, `Zq9\"x&lt;y&gt;&amp;w 77`, `Zq9%22x%3Cy%3E%26w+77`, `Zq9&amp;quot;x&amp;lt;y&amp;gt;&amp;amp;w 77`},
		`back\new%41&lt;one`: {`back\new%41&lt;one`, `back\\new%41&lt;one`, `back\new%2541&lt;one`, `back\new%41&amp;lt;one`, `back%5Cnew%2541%26lt%3Bone`},
		"correct horse?>":    {"dTpjb3JyZWN0IGhvcnNlPz4=", "dXM6Y29ycmVjdCBob3JzZT8-Ong=", "Y29ycmVjdCBob3JzZT8+"}, // the first two after u: and us:
	} {
		s := newScrubber([]string{secret})
		for _, text := range spelt {
			got := s.scrub("k " + text + " end")
			if !strings.Contains(got, redacted) || len(got) > len("k "+redacted+" end")+10 {
				t.Errorf("%s is left as %q", text, got)
			}
		}
	}
}

// However many secrets there are, a text is read once: what it costs to scrub one hardly depends on them.
func BenchmarkScrub(b *testing.B) {
	text := "[" + strings.Repeat(`{"id":"msg_01hzy2w8q4x6v5n3m1k0j9h8g7","subject":"Re: the \"quarterly\" numbers","body":"Dear all,\nplease find 100% of them at https://example.com/a?b=1&c=2\n"},`, 100) + "{}]"
	for _, n := range []int{0, 10, 1000} {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("stored+secret/%d of 'many'", i)
		}
		s := newScrubber(values)
		b.Run(fmt.Sprint(n, " secrets"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.scrub(text)
			}
		})
	}
}

// Keys drawn by lot are seen, all but a few.
func TestScrubSeesRandomKeys(t *testing.T) {
	t.Parallel()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{32, 40, 64} {
		missed := 0
		for range 1000 {
			key := make([]byte, n)
			for i := range key {
				key[i] = alphabet[r.IntN(len(alphabet))]
			}
			if strings.Contains(newScrubber(nil).scrub("value "+string(key)+" end"), string(key)) {
				missed++
			}
		}
		if missed > 40 {
			t.Errorf("%d of 1000 keys of %d characters were missed", missed, n)
		}
	}
}

// What was scrubbed once stays as it is: results are read back and shown again.
func TestScrubIsStable(t *testing.T) {
	t.Parallel()
	s := newScrubber([]string{"hunter22"})
	for _, text := range []string{"password=hunter22", `{"token":"abc123def"}`, "Authorization: Bearer " + jwt, "https://u:pw123456@h/"} {
		once := s.scrub(text)
		if twice := s.scrub(once); twice != once {
			t.Errorf("%q became %q and then %q", text, once, twice)
		}
	}
}

// A long text costs what its length is, however many telling words it holds: were it the square, this would not end.
func TestScrubIsLinear(t *testing.T) {
	t.Parallel()
	newScrubber(nil).scrub(strings.Repeat("token secret password ", 200_000))
}

func FuzzScrub(f *testing.F) {
	f.Add("password=hunter22", "hunter22")
	f.Add("\"token\": \"\\u0000", "x")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := newScrubber([]string{secret}).scrub(text)
		if len(secret) >= 4 && !strings.Contains(redacted, secret) && strings.Contains(text, secret) && strings.Contains(got, secret) &&
			!strings.Contains(strings.ReplaceAll(text, secret, redacted), secret) {
			t.Fatalf("%q is left in %q", secret, got)
		}
	})
}
