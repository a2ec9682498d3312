package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// searchPages returns the ids of all pages of a search. It calls meanwhile before each page after the first.
func (srv mailServer) searchPages(args object, meanwhile func(page int)) (ids []string) {
	srv.t.Helper()
	args = maps.Clone(args)
	for page := 1; ; page++ {
		f := srv.search(args)
		ids = append(ids, f.ids()...)
		if f.More != (f.Next != "") {
			srv.t.Fatalf("more is %v and next_cursor %q", f.More, f.Next)
		}
		if f.Next == "" {
			return ids
		}
		if page > 100 {
			srv.t.Fatalf("%v has more than 100 pages: %v", args, ids)
		}
		args["cursor"] = f.Next
		if meanwhile != nil {
			meanwhile(page)
		}
	}
}

// The pages of a search have the same mails in the same order as one large page. Mail that arrives between two pages
// neither repeats nor hides earlier mail.
func TestI13_SearchPages(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		var more []object
		for i := range 24 { // some with equal scores and equal dates
			more = append(more, object{"message_id": fmt.Sprint("same", i%10, "-", i), "inbox": fmt.Sprint("box", i%3),
				"subject": "catalogue of seeds", "body": "fernhill " + strings.Repeat("leaf ", i/3),
				"date": fmt.Sprintf("2026-09-%02dT10:00:00Z", 1+i/4)})
		}
		srv.importMails("more", "", "1", more...)
		searches := []object{{"query": "fernhill"}, {"query": "catalogue OR fernhill"},
			{"query": "catalogue", "inbox_id": "box1"}, {"query": "fernhill", "date_from": "2026-09-03",
				"date_to": "2026-09-07"}, {"query": ""},
			{"query": "-catalogue"}, {"query": "", "sender": "fernhill"}, {"query": "fern*"},
			{"query": "", "inbox_id": "box2", "date_from": "2026-09-02"}}
		want := map[int][]string{}
		for i, s := range searches {
			s["limit"] = 50 // a page ends before it is cut off at 16 KB
			if want[i] = srv.searchPages(s, nil); len(want[i]) < 7 {
				t.Fatalf("%v found %v", s, want[i])
			}
			for _, n := range []int{1, 3, 7} {
				s["limit"] = n
				if got := srv.searchPages(s, nil); !slices.Equal(got, want[i]) {
					t.Errorf("%v by %d:\n got %v\nwant %v", s, n, got, want[i])
				}
			}
		}
		for i, s := range searches {
			s["limit"] = 4
			got := srv.searchPages(s, func(page int) {
				srv.importMails(fmt.Sprint("late", i, page), "", "1",
					object{"message_id": fmt.Sprint("late", i, "-", page),
						"inbox": "box2", "subject": "catalogue", "body": "fernhill greens",
						"sender": "new@fernhill.example", "date": fmt.Sprintf("2026-09-%02dT11:00:00Z", 2+page%6)})
			})
			// Results by date keep their order. Ranked results depend on word frequency and mail length, which new mail
			// changes, so two of them may swap places.
			moved, most := 0, 0
			if s["query"] != "" && s["query"] != "-catalogue" {
				most = 2
			}
			times := map[string]int{}
			for _, id := range got {
				times[id]++
			}
			for _, id := range want[i] {
				if times[id] != 1 {
					moved++
				}
			}
			if moved > most {
				t.Errorf("%v: %d mails were repeated or missing: %v", s, moved, got)
			}
		}
	})
}

// Invalid cursors are refused. A cursor stays valid when the last mail of its page is deleted.
func TestI13_InvalidCursors(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env).installSample()
		first := srv.search(object{"query": "fernhill", "limit": 3})
		for _, bad := range []object{{"query": "fernhill", "cursor": "x"}, {"query": "fernhill", "cursor": "b.0.0.0"},
			{"query": "fernhill", "cursor": "..."}, {"query": "fernhill", "cursor": first.Next + "x"},
			{"query": "fernhill", "cursor": "x" + first.Next},
			{"query": "roses", "cursor": first.Next}, {"query": "fernhill", "inbox_id": "mara", "cursor": first.Next},
			{"query": "fernhill", "cursor": strings.Repeat("A", 257)}, {"query": "fernhill", "cursor": 7}} {
			r := srv.Do("POST", "/api/agents/"+srv.agent+"/calls", object{"tool": "email_search", "args": bad})
			if s := string(r.Body); !strings.Contains(s, `"code":"VALIDATION_ERROR"`) ||
				!strings.Contains(s, "cursor") {
				t.Errorf("%v: %d %s", bad, r.Status, s)
			}
		}
		all := srv.search(object{"query": "fernhill", "limit": 25}).ids()
		srv.importMails("gone", "", "1", object{"message_id": "gone", "inbox": "gone",
			"subject": "fernhill fernhill fernhill",
			"body":    "fernhill"})
		top := srv.search(object{"query": "fernhill", "limit": 1})
		if fmt.Sprint(top.ids()) != "[gone]" {
			t.Fatalf("best result %v, want gone", top.ids())
		}
		srv.Want(204, nil, "DELETE", "/api/mail/inboxes/gone", nil)
		if got := srv.searchPages(object{"query": "fernhill", "cursor": top.Next}, nil); !slices.Equal(got, all) {
			t.Errorf("after a deleted mail:\n got %v\nwant %v", got, all)
		}
	})
}

// Markup in a mail is escaped in snippets. Every <mark> element in a snippet is a match.
func TestI13_SnippetsAreSafe(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		srv.importMails("one", "", "1", object{"message_id": "evil", "inbox": "box",
			"subject": "<mark>otter</mark> & <b>walrus</b>", "sender": `"<script>" <heron@x.example>`,
			"body": "before \x01otter\x02 <mark>penguin</mark> <script>alert('walrus')</script> a < b && c > d " +
				"&lt;mark&gt; the walrus's end"})
		f := srv.search(object{"query": "walrus"})
		want := "Subject: &lt;mark&gt;otter&lt;/mark&gt; &amp; &lt;b&gt;<mark>walrus</mark>&lt;/b&gt; | Body: before " +
			"otter &lt;mark&gt;penguin&lt;/mark&gt; &lt;script&gt;alert('<mark>walrus</mark>')&lt;/script&gt; " +
			"a &lt; b &amp;&amp; c &gt; d &amp;lt;mark&amp;gt; the <mark>walrus</mark>'s end"
		if f.Total != 1 || f.Emails[0].Snippet != want {
			t.Errorf("snippet\n %s\nwant\n %s", f.Emails[0].Snippet, want)
		}
		if got := f.Emails[0].Subject; got != "<mark>otter</mark> & <b>walrus</b>" {
			t.Errorf("subject %q", got)
		}
		for _, q := range []object{{"query": "from:heron"}, {"query": ""}, {"query": "script"}, {"query": "mark"},
			{"query": "lt"}} {
			for _, e := range srv.search(q).Emails {
				s := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(e.Snippet)
				if strings.ContainsAny(s, "<>") || strings.Count(e.Snippet, "<mark>") != strings.Count(e.Snippet,
					"</mark>") {
					t.Errorf("%v: %s", q, e.Snippet)
				}
			}
		}
	})
}

// A repeated batch is added once. A different batch at the same position is refused.
func TestI16_BatchesAreAddedOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		id := decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports", object{"source": "s"})).ID
		at := "/api/mail/imports/" + id + "/batches"
		line := func(id string) string {
			return encodeMailLine(object{"message_id": id, "inbox": "x", "body": "penguin"})
		}
		wantImport := func(position string, seen, added int64) {
			t.Helper()
			if v := decode[reeve.MailImport](t, srv.Want(200, nil, "GET", "/api/mail/imports/"+id, nil)); v.Position != position || v.Seen != seen || v.Added != added {
				t.Errorf("the import is %+v", v)
			}
		}
		wantClientError(t, "a batch that does not advance", srv.Do("POST", at+"?position=1&after=1", line("a")),
			reeve.Validation)
		for range 3 {
			srv.Want(200, nil, "POST", at+"?position=1", line("a"))
		}
		wantImport("1", 1, 1)
		wantClientError(t, "another batch at the current position",
			srv.Do("POST", at+"?position=1", line("b")),
			reeve.Conflict)
		wantClientError(t, "the same batch after another position", srv.Do("POST", at+"?position=1&after=0", line("a")),
			reeve.Conflict)
		wantClientError(t, "a batch that does not advance", srv.Do("POST", at+"?position=1&after=1", line("c")),
			reeve.Validation)
		wantImport("1", 1, 1)
		srv.Want(200, nil, "POST", at+"?position=2&after=1", line("b"))
		wantClientError(t, "a batch before the last one", srv.Do("POST", at+"?position=1", line("a")), reeve.Conflict)
		wantImport("2", 2, 2)
		srv.Want(200, nil, "POST", "/api/mail/imports/"+id+"/finish?position=2", nil)
		// A repeated batch succeeds after the import is finished.
		srv.Want(200, nil, "POST", at+"?position=2&after=1", line("b"))
		wantClientError(t, "another batch after the end", srv.Do("POST", at+"?position=2&after=1", line("c")),
			reeve.Conflict)
		wantImport("2", 2, 2)
	})
}

// Only its user or an owner can continue an import, or replace or delete its mail.
func TestI06_MailBelongsToItsImporter(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		member := func(user string) []string {
			var made api.NewToken
			srv.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: user, User: user, Role: reeve.Member,
				Workspaces: []string{"default"}})
			return withToken(made.Token)
		}
		ann, bob := member("ann"), member("bob")
		beginImport := func(source string, replace bool, who []string) reeve.MailImport {
			return decode[reeve.MailImport](t, srv.Want(201, nil, "POST", "/api/mail/imports",
				object{"source": source, "replace": replace}, who...))
		}
		batch := func(v reeve.MailImport, query, id, body string, who []string) reevetest.Reply {
			return srv.Do("POST", "/api/mail/imports/"+v.ID+"/batches?"+query,
				encodeMailLine(object{"message_id": id, "inbox": "anns", "body": body}), who...)
		}
		v := beginImport("s", false, ann)
		if v.User != "ann" || batch(v, "position=1", "a", "walrus", ann).Status != 200 {
			t.Fatalf("%+v", v)
		}
		wantProblem(t, batch(v, "position=2&after=1", "b", "walrus", bob), 403, reeve.Forbidden)
		wantProblem(t, srv.Do("POST", "/api/mail/imports/"+v.ID+"/finish?position=1", nil, bob...), 403,
			reeve.Forbidden)
		wantProblem(t, srv.Do("DELETE", "/api/mail/inboxes/anns", nil, bob...), 403, reeve.Forbidden)
		if again := beginImport("s", false, ann); again.ID != v.ID || again.Position != "1" {
			t.Errorf("own import is not continued: %+v", again)
		}
		his := beginImport("s", false, bob)
		if his.ID == v.ID || his.User != "bob" {
			t.Errorf("import of another user is continued: %+v", his)
		}
		if r := batch(his, "position=1", "b", "penguin", bob); r.Status != 200 { // any member may add mail to an inbox
			t.Errorf("%d %s", r.Status, r.Body)
		}
		other := beginImport("t", true, bob)
		wantProblem(t, batch(other, "position=1", "a", "ostrich", bob), 403, reeve.Forbidden)
		srv.wantFound(object{"query": "walrus"}, "a")
		box := decode[api.MailboxList](t, srv.Want(200, nil, "GET", "/api/mail/inboxes", nil, bob...)).Mailboxes
		if len(box) != 1 || box[0].User != "ann" || box[0].Messages != 2 {
			t.Errorf("%+v", box)
		}
		// An owner may do all of this.
		srv.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/finish?position=1", nil)
		srv.Want(200, nil, "POST", "/api/mail/imports/"+other.ID+"/finish", nil)
		mine := beginImport("u", true, ann)
		if r := batch(mine, "position=1", "a", "heron", ann); r.Status != 200 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
		srv.wantFound(object{"query": "heron"}, "a")
		srv.Want(204, nil, "DELETE", "/api/mail/inboxes/anns", nil, ann...)
		srv.importMails("mine", "", "1", object{"message_id": "c", "inbox": "owners", "body": "walrus"})
		wantProblem(t, srv.Do("DELETE", "/api/mail/inboxes/owners", nil, ann...), 403, reeve.Forbidden)
		srv.Want(204, nil, "DELETE", "/api/mail/inboxes/owners", nil)
	})
}
