package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// watch lets somebody see each commit of the Reeve that is started there, before and after it.
func (w *world) watch() *atomic.Pointer[func(after bool)] {
	watch := &atomic.Pointer[func(after bool)]{}
	told := func(after bool) func() {
		return func() {
			if f := watch.Load(); f != nil {
				(*f)(after)
			}
		}
	}
	w.cfg.OnFault.OnBefore, w.cfg.OnFault.OnAfter = told(false), told(true)
	return watch
}

// After a disconnect at any point of a request, repeating it with the same key finds the change made exactly once.
func TestIdempotencyKey_ClientDisconnects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t)
	agent := h.Agent("coach").ID
	category := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "home"})).
		ID

	began, ended := make(chan context.Context, 1), make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- r.Context()
		h.Server.Config.Handler.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer s.Close()

	posts := map[string]func(name string) object{
		"/api/journal/tasks": func(name string) object { return object{"category_id": category, "title": name} },
		"/api/schedules": func(name string) object {
			return object{"agent": agent, "name": name, "cadence_type": "interval", "cadence_value": "2h"}
		},
		"/api/agents": func(name string) object { return object{"name": name} },
	}
	for path, body := range posts {
		// The key is taken in the first commit. The change is made and its answer kept in the second, which is the
		// last.
		for commit := 1; commit <= 2; commit++ {
			for _, after := range []bool{false, true} {
				name := fmt.Sprintf("c%d-%v", commit, after)
				b, err := json.Marshal(body(name))
				if err != nil {
					t.Fatal(err)
				}
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				n, gone := 0, false
				leave := func(is bool) { // the store's writer, which is one
					if !is {
						n++
					}
					if gone || n != commit || is != after {
						return
					}
					gone = true
					_ = conn.Close()
					<-(<-began).Done() // the server has noticed
				}
				watch.Store(&leave)
				if _, err := fmt.Fprintf(conn,
					"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nX-Workspace-Id: "+
						"default\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
					path, h.Token, key, path+name, len(b), b); err != nil {
					t.Fatal(err)
				}
				<-ended
				if watch.Store(nil); !gone {
					t.Fatalf("%s made %d commits, and nobody left", path, n)
				}
				if again := h.Do("POST", path, string(b), key, path+name); again.Status != 201 ||
					again.Header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("%s, left at commit %d, after it %v: %d %s", path, commit, after, again.Status, again.Body)
				}
			}
		}
	}
	tasks := decode[api.TaskList](t, h.Want(200, nil, "GET", "/api/journal/tasks?category="+category, nil)).Tasks
	schedules := decode[api.ScheduleList](t, h.Want(200, nil, "GET", "/api/schedules", nil)).Schedules
	if len(tasks) != 4 || len(schedules) != 4 {
		t.Errorf("%d tasks and %d schedules, want 4 of each", len(tasks), len(schedules))
	}
}

// Whatever a request changes, its answer is known when that is committed: nothing is read after that whose failure
// would say that nothing was changed, and give the key back. A caller who goes away at that moment fails every read.
func TestIdempotencyKey_ResponseIsStoredWithTheChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t, tricks()...)
	x := furnish(t, h)
	h.Agent("other")
	// who is to be a participant
	h.Want(201, nil, "POST", "/api/tokens", api.TokenRequest{Name: "somebody", User: "somebody", Role: reeve.Member})
	posts := map[string]sample{}
	for _, o := range sampled(document(t, h).operations()) {
		if o.method == "POST" {
			posts[o.id] = samples(x)[o.id]
		}
	}
	for _, id := range []string{
		"deliverOperationResult",             // nobody waits for one
		"undoOperation",                      // it cannot be undone
		"playgroundChat",                     // whose client ends it
		"acceptChangeSet", "rejectChangeSet", // which decide on each item by itself
	} {
		delete(posts, id)
	}
	posts["createTool"] = sample{path: "/api/tools", body: weather(nil)}
	posts["attachTool"] = sample{path: "/api/agents/other/tools", body: object{"tool_id": "file_read",
		"config": object{}}}
	for _, id := range slices.Sorted(maps.Keys(posts)) { // the kill switch comes after what it would stop
		s := posts[id]
		text, ok := s.body.(string)
		if !ok {
			b, err := json.Marshal(s.body)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		ctx, cancel := context.WithCancel(t.Context())
		leave := func(after bool) {
			if after {
				cancel()
			}
		}
		watch.Store(&leave)
		r := httptest.NewRequestWithContext(ctx, "POST", s.path, strings.NewReader(text))
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+h.Token)
		r.Header.Set("X-Workspace-Id", "default")
		r.Header.Set("Content-Type", "application/json")
		got := httptest.NewRecorder()
		h.Server.Config.Handler.ServeHTTP(got, r)
		watch.Store(nil)
		if cancel(); got.Code >= 300 {
			t.Errorf("%s: %d %s", id, got.Code, got.Body)
		}
	}
}

// The removal of an inbox completes even if the client disconnects halfway.
func TestI15_ClientDisconnectsDuringInboxRemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t)
	v := decode[reeve.MailImport](t, h.Want(201, nil, "POST", "/api/mail/imports", object{"source": "box"}))
	var lines strings.Builder
	for i := range 1500 { // more than are removed at once
		lines.WriteString(mailLine(object{"message_id": fmt.Sprint(i), "inbox": "box"}))
	}
	h.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1", lines.String())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leave := func(after bool) {
		if after {
			cancel()
		}
	}
	watch.Store(&leave)
	r := httptest.NewRequestWithContext(ctx, "DELETE", "http://localhost/api/mail/inboxes/box", nil)
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("X-Workspace-Id", "default")
	h.Server.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	watch.Store(nil)
	if left := decode[api.MailboxList](t, h.Want(200, nil, "GET", "/api/mail/inboxes", nil)).
		Mailboxes; ctx.Err() == nil || len(left) > 0 {
		t.Errorf("%v: %+v is left", ctx.Err(), left)
	}
}

// A client that disconnects just as its turn begins cancels the turn, as a later disconnect does.
func TestW23_ClientDisconnectsAsTurnBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t) // which serves no turns
	h.Agent("coach")
	began, ended := make(chan context.Context, 1), make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- r.Context()
		h.Server.Config.Handler.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer s.Close()
	for _, after := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := false
		leave := func(is bool) {
			if gone || is != after {
				return
			}
			gone = true
			cancel()
			<-(<-began).Done() // the server has noticed
		}
		watch.Store(&leave)
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"coach","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.Token)
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			t.Fatalf("it was answered: %s", res.Status)
		}
		<-ended
		watch.Store(nil)
	}
	talks := decode[api.ConversationList](t, h.Want(200, nil, "GET", "/api/conversations", nil)).Conversations
	runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs
	if len(talks) != 2 || len(runs) != 2 {
		t.Fatalf("%d conversations and %d turns, want 2 of each", len(talks), len(runs))
	}
	for _, run := range runs {
		if run.State != reeve.RunCancelled || run.Message != "its client disconnected" {
			t.Errorf("a turn is %s: %s", run.State, run.Message)
		}
	}
}

// until is a request's context that is over when something has happened.
type until struct {
	context.Context
	over func() bool
}

func (u until) Err() error {
	if u.over() {
		return context.Canceled
	}
	return nil
}

// A merge is recorded even if the client disconnects after the default branch has moved. If the server crashes before
// it records a merge, the next merge request records it.
func TestW15_MergeIsRecordedAfterDisconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	x := furnishBranch(t, h)
	if x == noBranch {
		return
	}
	main := func() string {
		b, err := os.ReadFile(filepath.Join(x.path, ".git/refs/heads/main"))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	was := main()
	r := httptest.NewRequestWithContext(until{t.Context(), func() bool { return main() != was }}, "POST",
		"/api/branches/"+x.branch+"/merge", strings.NewReader("{}"))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("X-Workspace-Id", "default")
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	h.Server.Config.Handler.ServeHTTP(got, r)
	noted := func() reeve.Branch {
		return decode[reeve.Branch](t, h.Want(200, nil, "GET", "/api/branches/"+x.branch, nil))
	}
	b := noted()
	if got.Code != 200 || b.Merged != strings.TrimSpace(main()) || b.MergedBy != "owner" || b.MergedAt == nil {
		t.Errorf("%d %s: %+v", got.Code, got.Body, b)
	}
	h = w.rewind(t, h, `UPDATE branches SET merged = '', merged_by = '', merged_at = 0`)
	m := decode[reeve.MergeResult](t, h.Want(200, nil, "POST", "/api/branches/"+x.branch+"/merge", object{}))
	if a := noted(); !m.UpToDate || m.Merged != b.Merged || a.Merged != b.Merged || a.MergedBy != "owner" ||
		a.MergedAt == nil || a.MergedAt.After(*b.MergedAt) {
		t.Errorf("%+v, noted as %+v and not as %+v", m, a, b)
	}
}

// waiting asks for turns that nobody serves, in each of the ways in which a client waits for one to its end.
type waiting struct {
	path string
	body object
	told string // how the end of a stream is told; empty means that the whole answer is waited for
}

func waitings() []waiting {
	chat, respond := "/v1/chat/completions", "/v1/responses"
	said := []any{object{"role": "user", "content": "hi"}}
	return []waiting{{chat, object{"model": "coach", "messages": said}, ""},
		{chat, object{"model": "coach", "messages": said, "stream": true}, `data: {"error":`},
		{respond, object{"model": "coach", "input": "hi"}, ""},
		{respond, object{"model": "coach", "input": "hi", "stream": true}, "event: response.failed"},
		{"/api/playground/sessions/s1/chat", object{"agentId": "coach", "message": "hi"}, "event: recoverable-error"}}
}

// answered begins one, and gives its answer once that is there. It returns when the turn is committed or, of one that
// streams, when the stream has begun.
func (a waiting) answered(t *testing.T, h *reevetest.Host, watch *atomic.Pointer[func(after bool)],
	token string) <-chan *httptest.ResponseRecorder {
	t.Helper()
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	if a.told == "" {
		committed := func(after bool) {
			if after {
				begin()
			}
		}
		watch.Store(&committed)
		defer watch.Store(nil)
	}
	b, err := json.Marshal(a.body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", a.path, bytes.NewReader(b))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Workspace-Id", "default")
	r.Header.Set("Content-Type", "application/json")
	got := make(chan *httptest.ResponseRecorder, 1)
	handler := h.Server.Config.Handler
	go func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(listening{w, begin}, r)
		got <- w
	}()
	<-begun
	return got
}

// listening is a recorder that may take its time, and says when it hears something.
type listening struct {
	*httptest.ResponseRecorder
	begin func()
}

func (listening) SetWriteDeadline(time.Time) error { return nil }

func (l listening) Flush() { l.begin() }

// A client that waits for a turn receives an error when the server stops. The stop does not count as a disconnect, so
// the turn continues after the next start.
func TestW23_StoppingServerNotifiesWaitingClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t) // which serves no turns
	h.Agent("coach")
	var got []<-chan *httptest.ResponseRecorder
	for _, a := range waitings() {
		got = append(got, a.answered(t, h, watch, h.Token))
	}
	h.Stop()
	for i, a := range waitings() {
		r := <-got[i]
		if want := map[bool]int{true: 503, false: 200}[a.told == ""]; r.Code != want ||
			!strings.Contains(r.Body.String(), a.told) || !strings.Contains(r.Body.String(), "the server is stopping") {
			t.Errorf("%s %v: %d %s", a.path, a.body["stream"], r.Code, r.Body)
		}
	}
	h = w.start(t)
	runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs
	if len(runs) != len(waitings()) {
		t.Errorf("%d turns", len(runs))
	}
	for _, run := range runs {
		if run.State != reeve.RunRunning {
			t.Errorf("a turn is %s: %s", run.State, run.Message)
		}
	}
}

// When a token expires or is revoked, its stream reports it, and the turn is cancelled for that reason.
func TestW23_StreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watch := w.watch()
	h := w.start(t)
	h.Agent("coach")
	for _, a := range waitings() {
		tok := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "ada", "user": "ada",
			"role": "member"}))
		got := a.answered(t, h, watch, tok.Token)
		h.Want(204, nil, "DELETE", "/api/tokens/"+tok.ID, nil)
		if r := <-got; !strings.Contains(r.Body.String(), "no longer valid") || a.told == "" && r.Code != 401 {
			t.Errorf("%s %v: %d %s", a.path, a.body["stream"], r.Code, r.Body)
		}
	}
	for _, run := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs {
		if run.State != reeve.RunCancelled || run.Message != "its client may no longer listen" {
			t.Errorf("a turn is %s: %s", run.State, run.Message)
		}
	}
}
