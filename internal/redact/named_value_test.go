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
		"password=\"«$ecret-1»\"", "password=«CorrectHorseSecret»",
		"password=«hunter2»", "DB_PASSWORD: «s3cr3t!x»", `"api_key": "«9f8a7b6c5d4e3f2a1b0c»"`,
		"export MY_API_KEY_2='«9f8a7b6c5d4e»'", "PASSWORD_PROD=«hunter22»", "_authToken=«npm-a1b2c3d4»",
		"SECRET_KEY_BASE=«0a1b2c3d4e5f»", `$cfg{dbPassword} => "x"; accessKey: "«wJalrXUtnFEMI»"`,
		`line\npassword=«hunter22»\nnext`, "don't say password='«hunter2 x»', it's secret", "${PASSWORD:-«hunter2»}",
		`msg="{\"password\": \"«+a\\nb»\", \"n\": 1}"`, "password: «$ecret1!»", "token = «abc123.def456»",
		"open: token=\"«abc123 def456»\nnext line\"",
		`"private_key": "«abcdef\nghijkl1»", "x": 1`, "curl \"https://h/?access_token=«h480djs93hd8»&page=2\"",
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
		// lock files
		`"js-tokens": "^4.0.0"`, `"js-tiktoken": "^1.0.12",`, `js-tokens: "npm:^3.0.0 || ^4.0.0"`,
		`"csrf-token": "~1.2.3-rc.1"`,
		`"@tokenizer/token": "npm:^0.3.0"`, "passwords: swordfish1",
		// positions in lists
		"next_page_token=CAUQAA-Zk3vQ9mLx2", `"nextToken": "6JeAoK3XGyoFmW+iXEIr"`, "pageToken: CAUQAA-Zk3vQ9mLx2",
		`"ContinuationToken":"a1b2c3d4"`, "cursor_token=a1b2c3d4", "syncToken=CPDAlvWDx70CEPDAlvWDx70CGAU=",
		"$skiptoken=a1b2c3d4e5", `line\npage_token=a1b2c3d4`, `"eos_token": "<|endoftext|>"`,
		// signed addresses and ids of keys
		"https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20260101",
		"https://b.s3.amazonaws.com/k?X-Amz-Date=20260101&X-Amz-Security-Token=FwoGZXIvYXdzE3",
		"x?X-Goog-Credential=me%40p.iam.gserviceaccount.com%2F20260101", "aws_access_key=AKIAIOSFODNN7EXAMPLE",
		// a quote that closes the name
		"x `password=` (a) |\n\nReeve parses: `rm`\n", `"secret_key: " + strings.Repeat("ab", 20)`,
		`"password=" + p + "x"`,
		`getpass('Password: ')` + "\nx = 'y'", `h.Set("Authorization", "Bearer "+token+"abcdefgh1")`,
		// code
		"cliSecret := cli2.writeSecret[X]", "cliSecret := cli2.secret1", "Token: '#ffffff'",
		"private_key = $dir/private/cakey.pem",
		"password = config['password']", "self.password = password", "f(password=new_password, token=_token)",
		"secret=$secret", "private_key: ./keys/id_rsa.key", "secret: /run/secrets/db2", "password: Optional[str]",
		"push<syntax::tokenstream::TokenStream>", "credentials: 'same-origin'", "password?: string; secret: string;",
		"const tokenColumns = `id, name, user_name`", "var usage = \"secret: the words of a sentence\"",
		".. _`Bearer Token`: https://tools.ietf.org/html/rfc6750", "SECRET=OTHER_SECRET",
		// placeholders
		"API_KEY=your-api-key-here", "password: changeme", "Bearer ${secret:WEATHER_KEY}",
		"password: ${secret:weather_key1}",
		"token: <your token>", "password: example", "TOKEN={{ token1 }}", "PASSWORD=%PASSWORD%",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
