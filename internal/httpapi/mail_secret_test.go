package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reeve"
)

// Secrets that email_get redacts are also redacted in the snippets of email_search, for every query and wherever a
// snippet begins or ends.
func TestG21_SnippetsRedactSecrets(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		const word, phrase = "hunter22-Passw0rdB-XyZ9", "amber lynx Azure sleeps quietly under seventeen bridges"
		srv.Want(204, nil, "PUT", "/api/secrets/WORD", object{"value": word})
		srv.Want(204, nil, "PUT", "/api/secrets/PHRASE", object{"value": phrase})
		key := "-----BEGIN PRIVATE KEY-----\n" +
			strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 24) +
			"zebra+x2/z0Q==\n-----END PRIVATE KEY-----"
		secrets := []struct{ id, text, secret, parts string }{
			{"word", "The password is %s, keep it", word, "hunter22 passw0rdb xyz9"},
			{"phrase", "They say %s, and then", phrase, "amber lynx azure sleeps quietly under seventeen bridges"},
			{"form", "Use %s please", "sk-" + "ant-api03-wombat-" + strings.Repeat("abcdefghijklmnopqrstuv", 3),
				"ant api03 wombat " + strings.Repeat("abcdefghijklmnopqrstuv", 3)},
			{"address", "See postgres://me:%s@db.example.com/x", "marmot77.otter", "marmot77 otter"},
			{"key", "Here it is:\n%s\nas you asked", key,
				"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj zebra z0Q"},
		}
		filler := strings.Repeat("nothing of note here. ", 500)
		var mails []object
		for _, s := range secrets {
			text := fmt.Sprintf(s.text, s.secret)
			mails = append(mails, object{"message_id": s.id + "-short", "inbox": "a", "subject": "about " + s.id,
				"body": "marigold " + text, "date": "2026-09-01T10:00:00Z"},
				object{"message_id": s.id + "-subject", "inbox": "a", "subject": strings.Repeat("so. ", 198) + text,
					"body": "marigold", "date": "2026-09-01T10:00:00Z"},
				object{"message_id": s.id + "-far", "inbox": "a", "subject": "x", "body": filler + text + filler,
					"date": "2026-09-01T10:00:00Z"})
			for i := range 9 { // the snippet around marigold begins or ends inside the secret
				near := strings.Repeat("so. ", 4*i)
				mails = append(mails, object{"message_id": fmt.Sprint(s.id, "-before", i), "inbox": "a", "subject": "x",
					"body": filler + text + " " + near + "marigold " + filler, "date": "2026-09-01T10:00:00Z"},
					object{"message_id": fmt.Sprint(s.id, "-behind", i), "inbox": "a", "subject": "x", "body": filler +
						" marigold " + near + text + filler, "date": "2026-09-01T10:00:00Z"})
			}
			for i := range 20 { // the snippet of a mail without a match is its beginning
				mails = append(mails, object{"message_id": fmt.Sprint(s.id, "-start", i), "inbox": "b", "subject": "x",
					"body": strings.Repeat("somewhat!longer!words, ", 10+i)[:230+i*8] + text + filler,
					"date": "2026-09-01T10:00:00Z"})
			}
		}
		srv.importMails("secrets", "", "1", mails...)
		for _, s := range secrets {
			words := strings.Fields(s.parts)
			wantRedacted := func(what, text string) {
				t.Helper()
				for _, w := range append(words, s.secret) {
					if strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
						t.Errorf("%s, %s: %q is shown: %s", s.id, what, w, text)
					}
				}
			}
			var e reeve.Email
			res := srv.Call(srv.agent, "email_get", object{"message_id": s.id + "-short"})
			if err := json.Unmarshal([]byte(res.Content), &e); err != nil {
				t.Fatal(err)
			}
			wantRedacted("email_get", strings.ReplaceAll(e.Body, "db.example", ""))
			queries := append([]string{"marigold", "", `"` + words[0] + " " + words[1] + `"`, words[0] + " OR marigold",
				words[0][:3] + "*"}, words...)
			for _, q := range queries {
				seen := 0
				for _, inbox := range []string{"a", "b"} {
					for next := any(""); next != nil; {
						f := srv.search(object{"query": q, "inbox_id": inbox, "sender": "", "date_from": "2026-01-01",
							"limit": 50, "cursor": next})
						for _, hit := range f.Emails {
							if strings.HasPrefix(hit.MessageID, s.id+"-") {
								wantRedacted(fmt.Sprintf("%q in %s", q, hit.MessageID), hit.Subject+" "+hit.Snippet)
								seen++
							}
						}
						if next = nil; f.Next != "" {
							next = f.Next
						}
					}
				}
				if seen == 0 {
					t.Errorf("%s, %q: nothing was found", s.id, q)
				}
			}
		}
		f := srv.wantFound(object{"query": "subject:word keep hunter22"}, "word-short")
		const want = "Subject: about <mark>word</mark> | " +
			"Body: marigold The password is [REDACTED], <mark>keep</mark> it"
		if len(f.Emails) != 1 || f.Emails[0].Snippet != want {
			t.Errorf("%+v", f.Emails)
		}
	})
}
