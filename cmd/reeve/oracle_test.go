//go:build oracles

// These tests compare searches with those of notmuch, an independent program, on real mail. make oracles runs them;
// REEVE_ORACLES is the directory with the mail. They need notmuch and zstd.

package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/toolbox/mail/mailbox"
)

const (
	// maximum number of results of notmuch for a query to be compared; also the page size of email_search
	maxResults     = 50
	queriesPerKind = 60 // number of queries of each kind
)

func TestOracle_Notmuch(t *testing.T) {
	from := os.Getenv("REEVE_ORACLES")
	if from == "" {
		t.Fatal("REEVE_ORACLES is not set; set it to the directory that contains enron/foldered.tar.zst")
	}
	dir := t.TempDir()
	mail := filepath.Join(dir, "mail")
	input := ""
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdin = strings.NewReader(input)
		cmd.Env = append(os.Environ(), "NOTMUCH_CONFIG="+filepath.Join(dir, "config"), "HOME="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v %s", name, args, err, &stderr)
		}
		return string(out)
	}
	if err := os.Mkdir(mail, 0o755); err != nil {
		t.Fatal(err)
	}
	command("tar", "--zstd", "-xf", filepath.Join(from, "enron", "foldered.tar.zst"), "-C", mail)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte("[database]\npath="+mail+"\n[new]\ntags=new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log(strings.TrimSpace(command("notmuch", "new", "--quiet")))
	h := reevetest.Run(t, host.Config{OutputCap: 1 << 20})
	var out, stderr bytes.Buffer
	began := reeve.Monotonic()
	if code := run(t.Context(), []string{"import", "mail", mail, "--url", h.URL, "--json"},
		environment{in: strings.NewReader(""), out: &out, err: &stderr,
			env:  func(name string) string { return map[string]string{"REEVE_TOKEN": h.Token}[name] },
			home: func() (string, error) { return dir, nil }}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	var v reeve.MailImport
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d mails imported in %s, %d added, %d bad, %v", v.Seen, reeve.Since(began), v.Added, v.Unreadable, v.Problems)
	if v.Seen != 15_076 || v.Unreadable != 0 {
		t.Errorf("%d mails seen and %d bad, want 15076 and 0", v.Seen, v.Unreadable)
	}
	agent := h.Agent("reader", "email_search").ID
	// searchAll returns all results of a query, page by page.
	searchAll := func(query string) map[string]bool {
		ids := map[string]bool{}
		for cursor := ""; ; {
			r := h.Call(agent, "email_search", map[string]any{"query": query, "limit": maxResults, "cursor": cursor})
			var found struct {
				Emails []reeve.MailHit
				Next   string `json:"next_cursor"`
			}
			if r.IsError || json.Unmarshal([]byte(r.Content), &found) != nil {
				t.Fatalf("%s: %s", query, r.Content)
			}
			for _, e := range found.Emails {
				ids[strings.Trim(e.MessageID, "<>")] = true
			}
			if cursor = found.Next; cursor == "" {
				return ids
			}
		}
	}
	for kind, queries := range createQueries(t, mail) {
		theirs, ours, asked := 0, 0, 0
		input = strings.Join(queries, "\n") + "\n"
		counts := strings.Fields(command("notmuch", "count", "--exclude=false", "--batch"))
		if len(counts) != len(queries) {
			t.Fatalf("%s: %d counts of %d queries", kind, len(counts), len(queries))
		}
		for i, q := range queries {
			if n, err := strconv.Atoi(counts[i]); err != nil || n == 0 || n > maxResults || asked == queriesPerKind {
				continue
			}
			want := strings.Fields(command("notmuch", "search", "--output=messages", "--exclude=false", q))
			asked++
			got, missed := searchAll(q), 0
			for _, id := range want {
				if got[strings.TrimPrefix(id, "id:")] {
					ours++
				} else {
					missed++
				}
			}
			if theirs += len(want); missed > 0 {
				t.Logf("%s: %d of %d missed", q, missed, len(want))
			}
		}
		share := float64(ours) / float64(max(theirs, 1))
		t.Logf("%s: %d queries, %d of notmuch's %d results found: %.2f%%", kind, asked, ours, theirs, 100*share)
		if asked < queriesPerKind || share < 0.95 {
			t.Errorf("%s: %d queries, %.2f%% found, want at least 95", kind, asked, 100*share)
		}
	}
}

// TestOracle_MailPrefixes compares prefix searches in real mail with a scan of the same mail.
func TestOracle_MailPrefixes(t *testing.T) {
	from := os.Getenv("REEVE_ORACLES")
	if from == "" {
		t.Fatal("REEVE_ORACLES is not set; set it to the directory that contains enron/foldered.tar.zst")
	}
	dir := t.TempDir()
	archive := filepath.Join(from, "enron", "foldered.tar.zst")
	if out, err := exec.CommandContext(t.Context(), "tar", "--zstd", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	h := reevetest.Run(t, host.Config{OutputCap: 1 << 20})
	var out, stderr bytes.Buffer
	began := reeve.Monotonic()
	if code := run(t.Context(), []string{"import", "mail", dir, "--url", h.URL, "--json"},
		environment{in: strings.NewReader(""),
			out: &out, err: &stderr, env: func(name string) string {
				return map[string]string{"REEVE_TOKEN": h.Token}[name]
			},
			home: func() (string, error) { return dir, nil }}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	t.Logf("imported in %s", reeve.Since(began))
	// prefixes lists the mails with a word of each prefix, for the whole mail and for its sender.
	prefixes := map[string]map[string]bool{}
	n := 0
	addWords := func(field, text, id string) {
		for w := range strings.FieldsFuncSeq(strings.ToLower(text),
			func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
			letters := []rune(w)
			for i := 2; i <= min(len(letters), 12); i++ {
				k := field + string(letters[:i]) + "*"
				if prefixes[k] == nil {
					prefixes[k] = map[string]bool{}
				}
				prefixes[k][id] = true
			}
		}
	}
	if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		e, _, err := mailbox.Message(f)
		if err != nil {
			return err
		}
		n++
		sender := e.SenderName + " " + e.Sender
		people := strings.Join(slices.Concat(e.To, e.Cc, e.Bcc), " ")
		var files []string
		for _, a := range e.Attachments {
			files = append(files, a.Name)
		}
		addWords("", strings.Join([]string{e.Subject, e.Body, sender, people, strings.Join(files, " ")}, " | "),
			e.MessageID)
		addWords("from:", sender, e.MessageID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	agent := h.Agent("reader", "email_search").ID
	queries := slices.Sorted(maps.Keys(prefixes))
	r := rand.New(rand.NewPCG(4, 3))
	asked, bad := 0, 0
	for asked < 650 {
		q := queries[r.IntN(len(queries))]
		if asked%3 == 0 && !strings.HasPrefix(q, "from:") || len(prefixes[q]) > 300 ||
			strings.ContainsFunc(q, func(r rune) bool { return r > 126 }) {
			continue
		}
		asked++
		got := map[string]bool{}
		for cursor := ""; ; {
			res := h.Call(agent, "email_search", map[string]any{"query": q, "limit": maxResults, "cursor": cursor})
			var found struct {
				Emails []reeve.MailHit
				Next   string `json:"next_cursor"`
			}
			if res.IsError || json.Unmarshal([]byte(res.Content), &found) != nil {
				t.Fatalf("%s: %s", q, res.Content)
			}
			for _, e := range found.Emails {
				id, _, _ := strings.Cut(e.MessageID, "#") // the suffix distinguishes mails with the same id
				got[id] = true
			}
			if cursor = found.Next; cursor == "" {
				break
			}
		}
		if !maps.Equal(got, prefixes[q]) {
			bad++
			t.Errorf("%s: %d found, the scan has %d", q, len(got), len(prefixes[q]))
		}
	}
	t.Logf("%d mails, %d prefixes, %d differ", n, asked, bad)
}

var plainWord = regexp.MustCompile(`^[A-Za-z]{2,20}$`)

// createQueries derives queries of each kind from the mails. It is deterministic.
func createQueries(t *testing.T, dir string) map[string][]string {
	t.Helper()
	queries := map[string][]string{}
	seen := map[string]bool{}
	add := func(kind, q string) {
		if !seen[q] {
			seen[q] = true
			queries[kind] = append(queries[kind], q)
		}
	}
	n := 0
	if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if n++; err != nil || !d.Type().IsRegular() || strings.Contains(name, ".notmuch") || n%17 != 0 {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		e, _, err := mailbox.Message(f)
		if err != nil {
			return err
		}
		if row := findPhrase(e.Subject, 3, 0); row != "" {
			add("subject", `subject:"`+row+`"`)
		}
		if one := findPhrase(e.Subject, 1, 1); len(one) > 5 {
			add("subject word", "subject:"+one)
		}
		if strings.Contains(e.Sender, "@") && !strings.ContainsAny(e.Sender, " '\"/") &&
			!strings.Contains(e.Sender, "..") {
			add("sender", "from:"+e.Sender)
		}
		if row := findPhrase(e.Body, 4, n%23); row != "" {
			add("phrase", `"`+row+`"`)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return queries
}

// findPhrase returns n consecutive plain words of a line, after skipping the first few such sequences.
func findPhrase(text string, n, skip int) string {
	var last string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i := 0; i+n <= len(words); i++ {
			row, plain := words[i:i+n], true
			for _, w := range row {
				plain = plain && plainWord.MatchString(w)
			}
			if !plain {
				continue
			}
			if last = strings.Join(row, " "); skip == 0 {
				return last
			}
			skip--
		}
	}
	return last
}
