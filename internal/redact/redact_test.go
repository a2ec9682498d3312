package redact

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// sampleJWT is the header and payload of a token, to be followed by a signature.
var sampleJWT = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
	base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"1234567890"}`)) + "."

const sampleSignature = "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

var sampleKeyLine = strings.Repeat("MIIEvQIBADANBgkq", 4)

// splitMarked takes a text in which one secret is between « and ». It returns the text without « and », and the text
// with the secret redacted.
func splitMarked(text string) (plain, want string) {
	before, rest, _ := strings.Cut(text, "«")
	secret, after, closed := strings.Cut(rest, "»")
	if !closed {
		after = ""
	}
	return before + secret + after, before + Mark + after
}

// TestG21_ProtocolSecretsAreRemoved checks credentials that their context marks. Each text contains one secret between
// « and ».
func TestG21_ProtocolSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a bare token " + sampleJWT + "«" + sampleSignature + "» here",
		"https://example.com/confirm?t=" + sampleJWT + "«" + sampleSignature + "»&x=1",
		"Authorization: Bearer «" + sampleJWT + sampleSignature + "»",
		"authorization=Basic «dXNlcjpwYXNzd29yZA==»",
		`{"Authorization":"Bearer «0a1b2c3d4e5f6a7b8»"}`,
		`-H 'Authorization: token «0a1b2c3d4e5f6a7b8»'`,
		`{\"Authorization\": \"Bearer «0a1b2c3d4e5f6a7b8»\"}`,
		"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
		`{"SecretAccessKey":"«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»","AccessKeyId":"AKIAIOSFODNN7EXAMPLE"}`,
		"<SecretAccessKey>«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»</SecretAccessKey>",
		`{"auths":{"https://index.docker.io/v1/":{"auth":"«bWU6aHVudGVyMg==»"}}}`,
		`"auths": {"ghcr.io": {"auth": "«bWU6aHVudGVyMg==»"}} and more`,
		"//registry.npmjs.org/:_auth=«bWU6aHVudGVyMg==»",
		`{"kty":"EC","crv":"P-256","x":"` + sampleSignature + `","d":"«` + sampleSignature + `»"}`,
		`key: {\"kty\":\"OKP\",\"x\":\"` + sampleSignature + `\",\"d\":\"«` + sampleSignature + `»\"} end`,
		"PuTTY-User-Key-File-2: ssh-rsa\nPublic-Lines: 1\n" + sampleKeyLine + "\n«Private-Lines: 2\n" + sampleKeyLine +
			"\nx2/z0Q==\nPrivate-MAC: da39a3ee5e6b4b0d3255bfef95601890afd80709»\nafter",
		"postgres://me:«hunter2»@db.example.com:5432/x",
		"https://user:«p4ss%40word»@example.com/",
		"redis://:«p$ss-[w]ord»@cache:6379",
		"postgres://me:«hunt@er2»@db.example.com:5432/x",
		"see https://me:«@h:u@n»@db.example.com, or mail me@example.com",
		"«-----BEGIN PRIVATE KEY-----\n" + sampleKeyLine + "\nx2/z0Q==\n-----END PRIVATE KEY-----»\nafter",
		"«-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n" + sampleKeyLine +
			"\nx2/z0Q==\n-----END RSA PRIVATE KEY-----» after",
		"cut off: «-----BEGIN EC PRIVATE KEY-----\n" + sampleKeyLine + "\n" + sampleKeyLine + "»\nand then prose",
		"    «-----BEGIN PRIVATE KEY-----\n    " + sampleKeyLine +
			"\n    abc=\n    -----END PRIVATE KEY-----»\n    x: 1",
		`"key": "«-----BEGIN PRIVATE KEY-----\n` + sampleKeyLine + `\nabc=\n-----END PRIVATE KEY-----»\n", "b": 1`,
		"«-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n" + sampleKeyLine +
			"\n=x2z0\n-----END PGP PRIVATE KEY BLOCK-----»\n",
	} {
		plain, want := splitMarked(text)
		if got := New(nil).Text(plain); got != want {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// TestG21_TextThatOnlyLooksRandomPasses checks texts that only look like secrets because of random characters or the
// word before them.
func TestG21_TextThatOnlyLooksRandomPasses(t *testing.T) {
	t.Parallel()
	r := New([]string{"another stored value"})
	for _, text := range []string{
		"random aB3dE5gH7jK9mN1pQ3sT5vW7xZ tail", "x=Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A",
		`{"nextPageToken":"CAUQAA-Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A"}`, `{"password":"hunter2"}`, "password: swordfish",
		"the token is a1b2c3d4e5f6", "X-Api-Key: 0a1b2c3d4e5f", "aws AKIAIOSFODNN7EXAMPLE id",
		"op_01hzy2w8q4x6v5n3m1k0j9h8g7 and msg_01hzy2w8q4x6v5n3m1k0j9h8g7",
		"commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"3f2504e0-4f89-11d3-9a0c-0305e82c3301 3F2504E0-4F89-11D3-9A0C-0305E82C3301",
		"h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "sha512-" + strings.Repeat("aB3+/x9Q", 10) + "==",
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789", // a placeholder with a wrong checksum
		"sk_live_xxxxxxxxxxxxxxxxxxxxxxxx", "sk-XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
		"pk_live_51HzY2w8q4x6v5n3m1k0j9h8g7", "re_compile(pattern)", "risk-abcdefghijklmnopqrstuvwxyz012345",
		"postgres://user:password@localhost/db", "https://${USER}:${PASS}@host/", "https://<user>:<password>@host/",
		"postgres://postgres:postgres@localhost:5432/app", "https://user:[REDACTED]@host/", "amqp://u:%s@host",
		"u://a:***@h",
		"docker://alpine:3.19@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"https://example.com:8443,alice@example.com", "http://localhost:3000?user=alice@example.com",
		"git+ssh://git@github.com:user/repo.git#abc", "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
		"Authorization: Bearer <token>", "the authorization: basic understanding required",
		"-----BEGIN CERTIFICATE-----\n" + sampleKeyLine + "\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\n" + sampleKeyLine + "\n-----END PUBLIC KEY-----",
		"A key starts with -----BEGIN OPENSSH PRIVATE KEY----- and is kept in ~/.ssh. Its hash is " +
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.\n-----END OPENSSH PRIVATE KEY-----",
		"const begin, end = \"-----BEGIN PRIVATE KEY-----\", \"-----END PRIVATE KEY-----\"\nmore text follows",
		`{"auth": "basic", "author": "bWU6aHVudGVyMg=="}`, `"auth": "c29tZSB0ZXh0"`, "Private-Lines: 2 of the file",
		`{"kty":"EC","x":"` + sampleSignature + `","kid":"` + sampleSignature + `"}`, `{"d":"` + sampleSignature + `"}`,
		"eyJhbGciOi.notatoken.atall", "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.",
		"日本語の文章、パスワードではない。", "",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		if got := Replace(text, r.Find(text)); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestPassTokensKeepsTokens(t *testing.T) {
	t.Parallel()
	const stored = "correct horse"
	text := "confirm " + sampleJWT + sampleSignature + " with " + stored
	want := "confirm " + sampleJWT + sampleSignature + " with " + Mark
	if got := New([]string{stored}).PassTokens().Text(text); got != want {
		t.Errorf("%q", got)
	}
}

func TestStoredValues(t *testing.T) {
	t.Parallel()
	r := New([]string{"abcdef", "abcdefgh", `with "quotes" and \`, " spaced value\n", "a/b c+d", "abcde"})
	for text, want := range map[string]string{
		"abcdefgh":                             Mark,
		"xabcdefx":                             "x" + Mark + "x",
		"abcde":                                "abcde", // too short
		`{"v":"with \"quotes\" and \\"}`:       `{"v":"` + Mark + `"}`,
		"spaced value":                         Mark,
		"q=a%2Fb+c%2Bd":                        "q=" + Mark,
		"YWJjZGVmZ2g=":                         Mark,
		strings.Repeat("abcdefgh", 3) + " abc": strings.Repeat(Mark, 3) + " abc",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if got := r.StoredOnly().Text(text); got != want {
			t.Errorf("stored values only: %q became %q, want %q", text, got, want)
		}
	}
	if got := r.StoredOnly().Text("postgres://me:hunter2@db"); got != "postgres://me:hunter2@db" {
		t.Errorf("%q", got)
	}
}

// TestG21_EveryEscapingOfASecret checks stored values in the escaped forms that other programs write.
func TestG21_EveryEscapingOfASecret(t *testing.T) {
	t.Parallel()
	for secret, escaped := range map[string][]string{
		`hunt"er<two99`: {`hunt"er<two99`, `hunt\"er<two99`, `hunt\"er\u003ctwo99`, `hunt\"er\u003Ctwo99`,
			`hunt\\\"er<two99`, `hunt\\\"er\\u003ctwo99`, `hunt&#34;er&lt;two99`, `hunt&quot;er&lt;two99`,
			`hunt%22er%3Ctwo99`, `hunt%22er%3ctwo99`, "68756e74226572" + "3c74776f3939", "68756E742265723C74776F3939"},
		`hunt\er&two99`: {`hunt\\er&two99`, `hunt\\er\u0026two99`, `hunt\\\\er&two99`, `hunt\er&amp;two99`},
		"abc/def+ghi=123": {"abc%2Fdef%2Bghi%3D123", "abc%2fdef%2bghi%3d123", "abc/def%2Bghi%3D123", `abc\/def+ghi=123`,
			`abc\\/def+ghi=123`, "YWJjL2RlZitnaGk9MTIz"},
		"two words 99": {"two+words+99", "two%20words%2099", "dHdvIHdvcmRzIDk5"},
		"schlüssel🦉":   {`schl\u00fcssel\ud83e\udd89`, `schl\u00FCssel\uD83E\uDD89`, "schl%C3%BCssel%F0%9F%A6%89"},
		"AzKey+abc/def+ghi9==": {`AzKey\u002Babc/def\u002Bghi9==`, `AzKey\u002babc\/def\u002bghi9\u003d\u003D`,
			`AzKey\\u002Babc/def\\u002Bghi9==`, "AzKey%2Babc%2Fdef%2bghi9%3D=",
			"AzKey&#43;abc&sol;def&#x2B;ghi9&equals;=",
			`AzKey\x2Babc/def+ghi9==`, "AzKey%252Babc%252Fdef%252Bghi9%253D%253D", "QXpLZXkrYWJjL2RlZitnaGk5PT0%3D"},
		"Pw'quote+plus/99": {`Pw&#x27;quote&#43;plus/99`, `Pw\u0027quote+plus/99`, `Pw'quote%2Bplus%2F99`,
			`Pw&apos;quote+plus/99`, `Pw\'quote+plus/99`},
		`Zq9"x<y>&w 77`: {`Zq9"x&lt;y&gt;&amp;w 77`, `Zq9&quot;x&lt;y&gt;&amp;w 77`, `Zq9\"x&lt;y&gt;&amp;w 77`,
			`Zq9%22x%3Cy%3E%26w+77`, `Zq9&amp;quot;x&amp;lt;y&amp;gt;&amp;amp;w 77`},
		`back\new%41&lt;one`: {`back\new%41&lt;one`, `back\\new%41&lt;one`, `back\new%2541&lt;one`,
			`back\new%41&amp;lt;one`, `back%5Cnew%2541%26lt%3Bone`},
		"correct horse?>": {"dTpjb3JyZWN0IGhvcnNlPz4=", "dXM6Y29ycmVjdCBob3JzZT8-Ong=", "Y29ycmVjdCBob3JzZT8+"},
	} {
		r := New([]string{secret})
		for _, text := range escaped {
			got := r.Text("k " + text + " end")
			if !strings.Contains(got, Mark) || len(got) > len("k "+Mark+" end")+10 {
				t.Errorf("%s is left as %q", text, got)
			}
		}
	}
}

// TestRedactionIsIdempotent redacts texts twice, because stored results are redacted again when they are read.
func TestRedactionIsIdempotent(t *testing.T) {
	t.Parallel()
	r := New([]string{"hunter22"}).MaskNamed()
	for _, text := range []string{"password=hunter22", `{"token":"abc123def"}`, "https://u:pw123456@h/",
		"Authorization: Bearer " + sampleJWT + sampleSignature, "x " + sampleJWT + sampleSignature} {
		once := r.Text(text)
		if twice := r.Text(once); twice != once || once == text {
			t.Errorf("%q became %q and then %q", text, once, twice)
		}
	}
}

// TestLongTextIsLinear redacts long texts. It would not finish if the cost were quadratic in the length.
func TestLongTextIsLinear(t *testing.T) {
	t.Parallel()
	r := New([]string{"stored value"}).MaskNamed()
	for _, s := range []string{"token secret password ", "sk-sk-sk-", "://a:b", "-----BEGIN PRIVATE KEY-----\n",
		"eyJ.eyJ.", "Authorization: Bearer ", "%25", "&amp;", `\\`, puttyBegin + "3\n",
		puttyBegin + "1\n" + sampleKeyLine + "\n", "password: '", `"kty":"","d":"`, "AbCdEf01"} {
		r.Text(strings.Repeat(s, 400_000/len(s)))
		r.PartialSecretAt(strings.Repeat(s, 200_000/len(s)))
	}
}

func TestNilRedactorFindsNothing(t *testing.T) {
	t.Parallel()
	var r *Redactor
	const text = "postgres://me:hunter2@db"
	if got := r.MaskNamed().PassTokens().StoredOnly().Text(text); got != text || r.PartialSecretAt(text) != len(text) ||
		r.Head(text, 8) != "postgres" || len(r.Find(text)) > 0 {
		t.Errorf("%q", got)
	}
}

// BenchmarkText shows that the cost of a text hardly depends on the number of stored values.
func BenchmarkText(b *testing.B) {
	text := "[" + strings.Repeat(`{"id":"msg_01hzy2w8q4x6v5n3m1k0j9h8g7","subject":"Re: the \"quarterly\" numbers",`+
		`"body":"Dear all,\nplease find 100% of them at https://example.com/a?b=1&c=2\n"},`, 100) + "{}]"
	for _, n := range []int{0, 10, 1000} {
		values := make([]string, n)
		for i := range values {
			values[i] = fmt.Sprintf("stored+secret/%d of 'many'", i)
		}
		r := New(values)
		b.Run(fmt.Sprint(n, " secrets"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}
