package redact

import (
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestG21_InnocentCorpusIsNotDamaged redacts at least 500 real or realistic outputs of tools without secrets. Each must
// stay unchanged to the byte: as text, inside a JSON result, through a Writer, and where named values are masked.
func TestG21_InnocentCorpusIsNotDamaged(t *testing.T) {
	t.Parallel()
	r := New([]string{"a stored value of this test", "another-Stored_value/77+x"})
	corpus := innocentCorpus(t)
	if len(corpus) < 500 {
		t.Fatalf("the corpus has only %d outputs", len(corpus))
	}
	damaged := 0
	for name, text := range corpus {
		wrapped, err := json.Marshal(map[string]any{"stdout": text, "exit_code": 0})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		w := r.NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(len(rest), 1000)
			if _, err := io.WriteString(w, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		hasSecret := strings.Contains(text, "client_secret") // of a payment
		if named := r.MaskNamed(); !hasSecret && named.Text(text) != text {
			damaged++
			for _, s := range named.Find(text) {
				t.Errorf("%s, named: %.200q", name, text[max(0, s.From-40):min(len(text), s.To+20)])
			}
		}
		if r.Text(text) != text || r.Text(string(wrapped)) != string(wrapped) || out.String() != text {
			damaged++
			for _, s := range r.Find(text) {
				t.Errorf("%s: %.200q", name, text[max(0, s.From-40):min(len(text), s.To+20)])
			}
		}
	}
	t.Logf("%d outputs, %d damaged", len(corpus), damaged)
	if damaged > 0 {
		t.Errorf("%d outputs are damaged", damaged)
	}
}

// innocentCorpus returns texts without secrets by name: the files in testdata, the sources of this module, and outputs
// that are generated with fixed seeds in the format of well-known programs and services.
func innocentCorpus(t *testing.T) map[string]string {
	t.Helper()
	corpus := map[string]string{}
	f, err := os.Open("testdata/real.txtar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range txtar.Parse(data).Files {
		corpus["real/"+file.Name] = string(file.Data)
	}
	for name, text := range ownSources(t) {
		corpus["source/"+name] = text
	}
	for kind, make := range shapes {
		for seed := range 12 {
			s := &sampler{rand.New(rand.NewPCG(uint64(len(kind)), uint64(seed)))}
			corpus[fmt.Sprintf("shape/%s/%d", kind, seed)] = make(s)
		}
	}
	return corpus
}

// ownSources returns the Go files of some packages of this module.
func ownSources(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, dir := range []string{"../store", "../wake", "../../toolbox"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			files[path] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// sampler generates random values for the outputs.
type sampler struct{ *rand.Rand }

func (s *sampler) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return b
}

func (s *sampler) hex(n int) string { return hex.EncodeToString(s.bytes(n)) }
func (s *sampler) std(n int) string { return base64.StdEncoding.EncodeToString(s.bytes(n)) }
func (s *sampler) url(n int) string { return base64.RawURLEncoding.EncodeToString(s.bytes(n)) }

func (s *sampler) alnum(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = base62[s.IntN(62)]
	}
	return string(b)
}

func (s *sampler) uuid() string {
	h := s.hex(16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (s *sampler) lines(n int, line func() string) string {
	var b strings.Builder
	for range n {
		b.WriteString(line() + "\n")
	}
	return b.String()
}

// pem returns a block of base64 in lines of 64 characters.
func (s *sampler) pem(label string, n int) string {
	var b strings.Builder
	b.WriteString(pemBegin + label + pemDashes + "\n")
	for body := s.std(n); body != ""; {
		k := min(64, len(body))
		b.WriteString(body[:k] + "\n")
		body = body[k:]
	}
	return b.String() + pemEnd + label + pemDashes + "\n"
}

func (s *sampler) json(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error() // cannot happen: the shapes are plain values
	}
	return string(b)
}

func (s *sampler) list(n int, item func() any) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = item()
	}
	return all
}

type fields = map[string]any

// shapes generate outputs of programs and services. Random parts have the alphabets and lengths of the originals.
var shapes = map[string]func(s *sampler) string{
	"google list": func(s *sampler) string {
		return s.json(fields{"kind": "drive#fileList", "nextPageToken": "~!!~" + s.url(120), "incompleteSearch": false,
			"etag": `"` + s.url(20) + `/` + s.url(20) + `"`, "files": s.list(8, func() any {
				return fields{"id": "1" + s.url(24), "name": "Report", "md5Checksum": s.hex(16),
					"headRevisionId": "0B" + s.url(27),
					"webViewLink": "https://drive.google.com/file/d/1" + s.url(24) +
						"/view?usp=drivesdk&resourcekey=0-" + s.url(16)}
			})})
	},
	"gmail list": func(s *sampler) string {
		return s.json(fields{"nextPageToken": fmt.Sprint(s.Uint64()), "resultSizeEstimate": 201, "messages": s.list(10,
			func() any {
				return fields{"id": s.hex(8), "threadId": s.hex(8), "historyId": fmt.Sprint(s.Uint32())}
			})})
	},
	"gmail attachment": func(s *sampler) string {
		return s.json(fields{"attachmentId": "ANGjdJ" + s.url(220), "size": 4096, "data": s.url(600)})
	},
	"gcp service account": func(s *sampler) string {
		return s.json(fields{"name": "projects/p/serviceAccounts/a@p.iam.gserviceaccount.com", "uniqueId": "1" +
			s.hex(10),
			"etag": s.std(9), "oauth2ClientId": fmt.Sprint(s.Uint64()), "private_key_id": s.hex(20)})
	},
	"stripe list": func(s *sampler) string {
		return s.json(fields{"object": "list", "has_more": true, "url": "/v1/charges", "data": s.list(5, func() any {
			return fields{"id": "ch_3" + s.alnum(23), "balance_transaction": "txn_3" + s.alnum(23), "customer": "cus_" +
				s.alnum(14),
				"payment_intent": "pi_3" + s.alnum(23), "payment_method": "pm_1" + s.alnum(23), "invoice": "in_1" +
					s.alnum(23),
				"receipt_url": "https://pay.stripe.com/receipts/payment/" + s.url(90), "publishable": "pk_live_" +
					s.alnum(24),
				"fingerprint": s.alnum(16), "client_secret": "pi_3" + s.alnum(23) + "_secret_" + s.alnum(25)}
		})})
	},
	"github commits": func(s *sampler) string {
		return s.json(s.list(6, func() any {
			return fields{"sha": s.hex(20), "node_id": "C_kwDO" + s.url(40),
				"commit": fields{"tree": fields{"sha": s.hex(20)},
					"verification": fields{"verified": true, "signature": "-----BEGIN PGP SIGNATURE-----\n\n" +
						s.std(60) +
						"\n" +
						s.std(60) + "\n=" + s.std(3) + "\n-----END PGP SIGNATURE-----\n", "payload": "tree " +
						s.hex(20)}},
				"html_url": "https://github.com/o/r/commit/" + s.hex(20)}
		}))
	},
	"github headers": func(s *sampler) string {
		return "HTTP/2 200\r\nEtag: W/\"" + s.hex(32) + "\"\r\nX-Github-Request-Id: " + strings.ToUpper(s.hex(2)) +
			":" +
			strings.ToUpper(s.hex(3)) + "\r\nLink: <https://api.github.com/repositories/1/issues?page=2&after=" +
			s.url(30) +
			">; rel=\"next\"\r\nContent-Security-Policy: script-src 'nonce-" + s.std(16) + "'\r\n"
	},
	"graphql cursors": func(s *sampler) string {
		return s.json(fields{"data": fields{"pageInfo": fields{"endCursor": base64.StdEncoding.EncodeToString(
			[]byte(`{"k":"` + s.alnum(20) + `","id":7}`)), "startCursor": "Y3Vyc29yOnYyOpK5" + s.std(30)}}})
	},
	"slack history": func(s *sampler) string {
		return s.json(fields{"ok": true, "response_metadata": fields{"next_cursor": base64.StdEncoding.EncodeToString(
			[]byte("next_ts:" + fmt.Sprint(s.Uint64())))}, "messages": s.list(5, func() any {
			return fields{"client_msg_id": s.uuid(), "user": "U0" + strings.ToUpper(s.hex(4)), "team": "T0" +
				strings.ToUpper(s.hex(4)),
				"ts": "1700000000.000100", "blocks": s.list(1, func() any { return fields{"block_id": s.alnum(5)} }),
				"url_private": "https://files.slack.com/files-pri/T0123-F0" + strings.ToUpper(s.hex(4)) + "/a.png"}
		})})
	},
	"aws list": func(s *sampler) string {
		return s.json(fields{"NextToken": s.std(180), "ResponseMetadata": fields{"RequestId": s.uuid(),
			"HostId": s.std(56)},
			"AccessKeyMetadata": s.list(3, func() any {
				return fields{"AccessKeyId": "AKIA" + strings.ToUpper(s.alnum(16)), "Status": "Active",
					"UserName": "ci",
					"Arn":      "arn:aws:iam::123456789012:user/ci"}
			})})
	},
	"s3 signed address": func(s *sampler) string {
		return "https://b.s3.amazonaws.com/k?X-Amz-Credential=AKIA" + strings.ToUpper(s.alnum(16)) +
			"%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=" + s.hex(32) +
			"&X-Amz-Date=20260101T000000Z\n"
	},
	"azure sas address": func(s *sampler) string {
		return "https://a.blob.core.windows.net/c/b?sv=2024-08-04&se=2026-01-01T00%3A00%3A00Z&sr=b&sp=r&sig=" +
			s.url(32) +
			"%3D\n"
	},
	"go.sum": func(s *sampler) string {
		return s.lines(20, func() string { return "example.com/" + s.alnum(8) + " v1.2.3/go.mod h1:" + s.std(32) })
	},
	"package-lock": func(s *sampler) string {
		return s.json(fields{"lockfileVersion": 3, "packages": s.list(12, func() any {
			return fields{"resolved": "https://registry.npmjs.org/a/-/a-1.0.0.tgz", "integrity": "sha512-" + s.std(64)}
		})})
	},
	"yarn.lock": func(s *sampler) string {
		return s.lines(10, func() string {
			return "\"@scope/a@npm:^1.0.0\":\n  version: 1.0.0\n" +
				"  resolution: \"@scope/a@npm:1.0.0\"\n  checksum: 10c0/" +
				s.hex(64)
		})
	},
	"Cargo.lock": func(s *sampler) string {
		return s.lines(10, func() string { return "[[package]]\nname = \"a\"\nchecksum = \"" + s.hex(32) + "\"" })
	},
	"poetry.lock": func(s *sampler) string {
		return s.lines(10, func() string {
			return "    {file = \"a-1.0-py3-none-any.whl\", hash = \"sha256:" + s.hex(32) + "\"},"
		})
	},
	"git log": func(s *sampler) string {
		return s.lines(8, func() string {
			return "commit " + s.hex(20) + "\nMerge: " + s.hex(4) + " " + s.hex(4) +
				"\nAuthor: A <a@example.com>\n\n    token: " +
				"rotate the password\n\n    Change-Id: I" + s.hex(20) + "\n    Signed-off-by: A <a@example.com>\n"
		})
	},
	"git diff": func(s *sampler) string {
		return "diff --git a/b.bin b/b.bin\nindex " + s.hex(20) + ".." + s.hex(20) +
			" 100644\nGIT binary patch\nliteral 100\nzc$" +
			s.alnum(60) + "\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-digest: " + s.hex(32) + "\n+digest: " + s.hex(32) + "\n"
	},
	"mail headers": func(s *sampler) string {
		return "Return-Path: <bounces+" + s.alnum(20) +
			"=example.com@mail.example.org>\r\nReceived: by 2002:a05:6a10:0:0:0:0:0 with " +
			"SMTP id " + s.alnum(22) + "\r\nARC-Seal: i=1; a=rsa-sha256; b=" + s.std(256) +
			"\r\nDKIM-Signature: v=1; bh=" +
			s.std(32) +
			"; b=" + s.std(256) + "\r\nX-Google-Smtp-Source: " + s.std(48) + "\r\nMessage-ID: <CA+" + s.url(40) +
			"@mail.gmail.com>\r\n" +
			"Authentication-Results: mx.example.com; dkim=pass header.b=" + s.alnum(8) +
			"\r\nList-Unsubscribe: <https://e.example.org/" +
			"unsubscribe?u=" + s.hex(12) + "&id=" + s.url(24) + ">\r\n"
	},
	"certificate": func(s *sampler) string { return s.pem("CERTIFICATE", 900) + s.pem("CERTIFICATE REQUEST", 400) },
	"public key": func(s *sampler) string {
		return s.pem("PUBLIC KEY", 294) + s.pem("RSA PUBLIC KEY", 270) + "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ" +
			s.std(380) +
			" a@b\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + s.std(32) + " a@b\nSHA256:" + s.std(32) + "\n"
	},
	"known_hosts": func(s *sampler) string {
		return s.lines(5, func() string {
			return "|1|" + s.std(20) + "|" + s.std(20) + " ecdsa-sha2-nistp256 AAAAE2VjZHNh" + s.std(96)
		})
	},
	"jwks": func(s *sampler) string {
		return s.json(fields{"keys": s.list(3, func() any {
			return fields{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": s.hex(20), "n": s.url(256), "e": "AQAB",
				"x5t": s.url(20),
				"x5c": []string{"MII" + s.std(900)}}
		})})
	},
	"checksums": func(s *sampler) string {
		return s.lines(20, func() string {
			sum := sha512.Sum512(s.bytes(8))
			return s.hex(16) + "  a.tar.gz\n" + s.hex(20) + " *b.zip\n" + hex.EncodeToString(sum[:]) + "  c.iso"
		})
	},
	"uuids": func(s *sampler) string { return s.lines(30, s.uuid) },
	"kubectl pods": func(s *sampler) string {
		return s.lines(10, func() string {
			return "api-" + s.hex(5) + "-" + strings.ToLower(s.alnum(5)) +
				"   1/1   Running   Image ID: docker.io/a@sha256:" +
				s.hex(32) +
				"\n  kube-api-access-" + strings.ToLower(s.alnum(5)) +
				":\n    Type: Projected (token: kube-root-ca.crt)"
		})
	},
	"docker inspect": func(s *sampler) string {
		return s.json(fields{"Id": "sha256:" + s.hex(32), "RepoDigests": []string{"a@sha256:" + s.hex(32)},
			"RootFS": fields{
				"Layers": s.list(6, func() any { return "sha256:" + s.hex(32) })},
			"Env": []string{"PATH=/usr/bin", "GPG_KEY=" + strings.ToUpper(s.hex(20)), "PYTHON_SHA256=" + s.hex(32)}})
	},
	"workflow": func(s *sampler) string {
		return s.lines(6, func() string {
			return "      - uses: actions/checkout@" + s.hex(20) +
				" # v4\n        with:\n          token: ${{ secrets.GITHUB_TOKEN }}\n" +
				"      - uses: docker://alpine:3.19@sha256:" + s.hex(32) +
				"\n        env:\n          PASSWORD: ${{ secrets.PW }}"
		})
	},
	"compose": func(s *sampler) string {
		return "services:\n  db:\n    image: postgres@sha256:" + s.hex(32) +
			"\n    environment:\n      POSTGRES_PASSWORD: example\n" +
			"      DATABASE_URL: postgres://postgres:postgres@db:5432/app\n" +
			"      REDIS_URL: redis://:${REDIS_PASSWORD}@cache:6379\n"
	},
	"terraform": func(s *sampler) string {
		return s.json(fields{"lineage": s.uuid(), "serial": 7, "etag": s.hex(16), "content_base64sha256": s.std(32),
			"arn": "arn:aws:acm:eu-west-1:123456789012:certificate/" + s.uuid(), "provider_meta": "h1:" + s.std(32),
			"zh": s.hex(32)})
	},
	"csv": func(s *sampler) string {
		return s.lines(20, func() string {
			return "https://example.com:8443,alice@example.com," + s.uuid() + "," + s.alnum(27) + "," + s.std(21) +
				",password reset"
		})
	},
	"html": func(s *sampler) string {
		return `<meta name="csrf-token" content="` + s.std(64) + `"><script nonce="` + s.std(16) +
			`" src="/assets/app-` +
			s.hex(32) +
			`.js" integrity="sha384-` + s.std(48) + `"></script><input type="hidden" name="__VIEWSTATE" value="` +
			s.std(500) +
			`"><img src="data:image/png;base64,` + s.std(900) + `">`
	},
	"cookies": func(s *sampler) string {
		return "Set-Cookie: session=" + s.url(64) + "; HttpOnly\r\nSet-Cookie: _ga=GA1.2." + fmt.Sprint(s.Uint32()) +
			"\r\nETag: \"" +
			s.hex(16) + "-gzip\"\r\ncf-ray: " + s.hex(8) + "-FRA\r\ntraceparent: 00-" + s.hex(16) + "-" + s.hex(8) +
			"-01\r\n"
	},
	"source code": func(s *sampler) string {
		return "const token = process.env.TOKEN\nif password == \"\" { return errors.New(\"password: required\") }\n" +
			"// keys look like sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx or " +
			"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" +
			"const begin = \"-----BEGIN RSA PRIVATE KEY-----\"\nvar sum = \"" + s.hex(32) +
			"\"\nre_match := compile(s)\n" +
			"req.Header.Set(\"Authorization\", \"Bearer \"+token)\nurl := fmt.Sprintf(\"https://%s:%s@%s/\", user, " +
			"pass, host)\n"
	},
	"identifiers": func(s *sampler) string {
		return s.lines(20, func() string {
			return "op_" + strings.ToLower(s.alnum(26)) + " AC" + s.hex(16) + " SK" + s.hex(16) + " arn:" +
				s.alnum(40) + " " +
				s.url(43) + " 1A" +
				s.alnum(30) + ".pdf com.example.Http2StreamFrameToHttpObjectCodecTest"
		})
	},
	"opaque page tokens": func(s *sampler) string {
		return s.json(fields{"next_page_token": s.url(90), "cursor": s.std(77), "continuation": "CiAK" + s.url(60),
			"pageToken": base64.RawURLEncoding.EncodeToString([]byte(`{"offset":` + fmt.Sprint(s.Uint32()) +
				`,"sort":"id"}`)),
			"sync_token": "CP" + s.url(20) + "==", "after": s.alnum(64)})
	},
}
