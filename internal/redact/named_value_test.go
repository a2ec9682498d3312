package redact

import (
	"strings"
	"testing"
)

// TestG21_NamedValuesAreMaskedInCommandOutputAndLogs checks values after words such as password=. Each text contains
// one secret between « and ».
func TestG21_NamedValuesAreMaskedInCommandOutputAndLogs(t *testing.T) {
	t.Parallel()
	r := New(nil).MaskNamed()
	for _, text := range []string{
		`{"password":"«hunter2»"}`,
		`{"password": "«p@ss,w;o{r}d & more!»", "b":1}`,
		`{"password":"«ab\"cdefgh»","b":1}`,
		`{"db_password" : "«hunter2»", "PWD":"/shared/reports"}`,
		`{"a":"token='«abcdef»","b":"it's"}`,
		`{"text":"{\"api_key\":\"«abc123def456»\"}"}`,
		`{"Authorization":"Bearer «abcdefgh»","token_id":"x1234567"}`,
		`x "password":"«ab\"cdefgh»" y`,
		`x \"password\":\"«ab\\\"cdefgh»\" y`,
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
		"say Bearer «abcdef0123456789»",
		"cut off: \"token\": \"«abc123def456ghi",
	} {
		plain, want := splitMarked(text)
		if got := r.Text(plain); got != want {
			t.Errorf("%q became %q", plain, got)
		}
		if got := New(nil).Text(plain); got != plain {
			t.Errorf("without the rule %q became %q", plain, got)
		}
	}
}

// TestNamesWithoutASecretPass checks texts that contain words such as password but no secret.
func TestNamesWithoutASecretPass(t *testing.T) {
	t.Parallel()
	r := New(nil).MaskNamed()
	for _, text := range []string{
		"/shared/reports/Quarterly-Report-2024-Q3-Final-Version-2.pdf", "PWD=/shared/reports/2024\nOLDPWD=/shared",
		"the secret is knowing when to stop", "Token: expired. Secret: unknown.", "token := lexer.Next()",
		"password = getPassword()", "const token = process.env.TOKEN", "secret: ${API_SECRET}",
		"tokens: 123456, max_tokens=4096",
		`{"token_type":"Bearer","secret_name":"OPENAI_KEY","token_id":"tok_01hzy2w8"}`,
		"a basic understanding, the bearer of news", "password: ********", "x=Zk3vQ9mLx2Rt7Yb4Nc8Ws1Pd6Hf5Jg0A",
		"2026-01-02T15:04:05.000Z [INFO] started on 127.0.0.1:7410", strings.Repeat("a", 60),
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
