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

// watchCommits returns a pointer to a function that the next server calls before and after each commit.
func (env *testEnv) watchCommits() *atomic.Pointer[func(after bool)] {
	watch := &atomic.Pointer[func(after bool)]{}
	notify := func(after bool) func() {
		return func() {
			if f := watch.Load(); f != nil {
				(*f)(after)
			}
		}
	}
	env.cfg.OnFault.OnBefore, env.cfg.OnFault.OnAfter = notify(false), notify(true)
	return watch
}

// If the client disconnects at any point of a request and repeats it with the same key, the change is made exactly
// once.
func TestIdempotencyKey_ClientDisconnects(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t)
	agent := h.Agent("coach").ID
	category := decode[reeve.Category](t,
		h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "home"})).ID

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
		// The first commit claims the key. The second and last commit makes the change and stores the response.
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
				disconnect := func(is bool) { // called by the only writer of the store, so no lock is needed
					if !is {
						n++
					}
					if gone || n != commit || is != after {
						return
					}
					gone = true
					_ = conn.Close()
					<-(<-began).Done() // wait until the server notices
				}
				watch.Store(&disconnect)
				if _, err := fmt.Fprintf(conn,
					"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nX-Workspace-Id: "+
						"default\r\nContent-Type: application/json\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
					path, h.Token, idempotencyKey, path+name, len(b), b); err != nil {
					t.Fatal(err)
				}
				<-ended
				if watch.Store(nil); !gone {
					t.Fatalf("%s made %d commits, and the client did not disconnect", path, n)
				}
				if again := h.Do("POST", path, string(b), idempotencyKey, path+name); again.Status != 201 ||
					again.Header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("%s, disconnected at commit %d, after %v: %d %s", path, commit, after, again.Status,
						again.Body)
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

// The response of a request is complete when its change is committed. A read after the commit could fail, and the
// client would be told that nothing changed. The test cancels the request at the commit, so that every later read
// fails.
func TestIdempotencyKey_ResponseIsStoredWithTheChange(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t, testTools()...)
	x := createFixture(t, h)
	h.Agent("other")
	// The sample of addParticipant adds this user.
	h.Want(201, nil, "POST", "/api/tokens", api.TokenRequest{Name: "carol", User: "carol", Role: reeve.Member})
	posts := map[string]sample{}
	for _, o := range filterSampled(loadOpenAPI(t, h).operations()) {
		if o.method == "POST" {
			posts[o.id] = samples(x)[o.id]
		}
	}
	for _, id := range []string{
		"deliverOperationResult",             // no call waits for a result
		"undoOperation",                      // the tool has no undo
		"lookUpOperation",                    // the tool cannot look up its outcome
		"editApproval",                       // decideApproval decides the same approval
		"playgroundChat",                     // a disconnect cancels it
		"retrySummary",                       // no summary has failed
		"acceptChangeSet", "rejectChangeSet", // each item has its own commit
		"consolidateNotes", // each proposal has its own commit
	} {
		delete(posts, id)
	}
	posts["createTool"] = sample{path: "/api/tools", body: weatherTool(nil)}
	posts["attachTool"] = sample{path: "/api/agents/other/tools", body: object{"tool_id": "file_read",
		"config": object{}}}
	// Sorted, so that stop comes after the requests that it would refuse.
	for _, id := range slices.Sorted(maps.Keys(posts)) {
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
		disconnect := func(after bool) {
			if after {
				cancel()
			}
		}
		watch.Store(&disconnect)
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
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t)
	v := decode[reeve.MailImport](t, h.Want(201, nil, "POST", "/api/mail/imports", object{"source": "box"}))
	var lines strings.Builder
	for i := range 1500 { // more than one transaction deletes
		lines.WriteString(encodeMailLine(object{"message_id": fmt.Sprint(i), "inbox": "box"}))
	}
	h.Want(200, nil, "POST", "/api/mail/imports/"+v.ID+"/batches?position=1", lines.String())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	disconnect := func(after bool) {
		if after {
			cancel()
		}
	}
	watch.Store(&disconnect)
	r := httptest.NewRequestWithContext(ctx, "DELETE", "http://localhost/api/mail/inboxes/box", nil)
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("X-Workspace-Id", "default")
	h.Server.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
	watch.Store(nil)
	left := decode[api.MailboxList](t, h.Want(200, nil, "GET", "/api/mail/inboxes", nil)).Mailboxes
	if ctx.Err() == nil || len(left) > 0 {
		t.Errorf("%v: inboxes left: %+v", ctx.Err(), left)
	}
}

// A client that disconnects just as its turn begins cancels the turn, as a later disconnect does.
func TestW23_ClientDisconnectsAsTurnBegins(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t) // runs no turns
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
		disconnect := func(is bool) {
			if gone || is != after {
				return
			}
			gone = true
			cancel()
			<-(<-began).Done() // wait until the server notices
		}
		watch.Store(&disconnect)
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/chat/completions",
			strings.NewReader(`{"model":"coach","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.Token)
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			t.Fatalf("request got a response: %s", res.Status)
		}
		<-ended
		watch.Store(nil)
	}
	conversations := decode[api.ConversationList](t, h.Want(200, nil, "GET", "/api/conversations", nil)).Conversations
	runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs
	if len(conversations) != 2 || len(runs) != 2 {
		t.Fatalf("%d conversations and %d turns, want 2 of each", len(conversations), len(runs))
	}
	for _, run := range runs {
		if run.State != reeve.RunCancelled || run.Message != "its client disconnected" {
			t.Errorf("turn is %s: %s", run.State, run.Message)
		}
	}
}

// conditionContext is a context that is cancelled as soon as isDone returns true.
type conditionContext struct {
	context.Context
	isDone func() bool
}

func (u conditionContext) Err() error {
	if u.isDone() {
		return context.Canceled
	}
	return nil
}

// A merge is recorded even if the client disconnects after the default branch has moved. If the server crashes before
// it records a merge, the next merge request records it.
func TestW15_MergeIsRecordedAfterDisconnect(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	x := createBranchFixture(t, h)
	if x == missingBranch {
		return
	}
	readMain := func() string {
		b, err := os.ReadFile(filepath.Join(x.path, ".git/refs/heads/main"))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	was := readMain()
	r := httptest.NewRequestWithContext(conditionContext{t.Context(), func() bool { return readMain() != was }}, "POST",
		"/api/branches/"+x.branch+"/merge", strings.NewReader("{}"))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("X-Workspace-Id", "default")
	r.Header.Set("Content-Type", "application/json")
	got := httptest.NewRecorder()
	h.Server.Config.Handler.ServeHTTP(got, r)
	getBranch := func() reeve.Branch {
		return decode[reeve.Branch](t, h.Want(200, nil, "GET", "/api/branches/"+x.branch, nil))
	}
	b := getBranch()
	if got.Code != 200 || b.Merged != strings.TrimSpace(readMain()) || b.MergedBy != "owner" || b.MergedAt == nil {
		t.Errorf("%d %s: %+v", got.Code, got.Body, b)
	}
	h = env.restartAfter(t, h, `UPDATE branches SET merged = '', merged_by = '', merged_at = 0`)
	m := decode[reeve.MergeResult](t, h.Want(200, nil, "POST", "/api/branches/"+x.branch+"/merge", object{}))
	if a := getBranch(); !m.UpToDate || m.Merged != b.Merged || a.Merged != b.Merged || a.MergedBy != "owner" ||
		a.MergedAt == nil || a.MergedAt.After(*b.MergedAt) {
		t.Errorf("%+v, recorded as %+v, want %+v", m, a, b)
	}
}

// waitingRequest is a request whose response comes at the end of a turn. The test server runs no turns, so the client
// waits.
type waitingRequest struct {
	path      string
	body      object
	errorMark string // text in a stream that reports an error; empty if the response is not a stream
}

func waitingRequests() []waitingRequest {
	chat, respond := "/v1/chat/completions", "/v1/responses"
	messages := []any{object{"role": "user", "content": "hi"}}
	return []waitingRequest{{chat, object{"model": "coach", "messages": messages}, ""},
		{chat, object{"model": "coach", "messages": messages, "stream": true}, `data: {"error":`},
		{respond, object{"model": "coach", "input": "hi"}, ""},
		{respond, object{"model": "coach", "input": "hi", "stream": true}, "event: response.failed"},
		{"/api/playground/sessions/s1/chat", object{"agentId": "coach", "message": "hi"}, "event: recoverable-error"}}
}

// send sends the request and returns a channel that receives the response. It returns when the turn is committed or,
// for a stream, when the stream has begun.
func (a waitingRequest) send(t *testing.T, h *reevetest.Host, watch *atomic.Pointer[func(after bool)],
	token string) <-chan *httptest.ResponseRecorder {
	t.Helper()
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	if a.errorMark == "" {
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
		handler.ServeHTTP(flushRecorder{w, begin}, r)
		got <- w
	}()
	<-begun
	return got
}

// flushRecorder is a response recorder that accepts write deadlines and calls onFlush on each flush.
type flushRecorder struct {
	*httptest.ResponseRecorder
	onFlush func()
}

func (flushRecorder) SetWriteDeadline(time.Time) error { return nil }

func (l flushRecorder) Flush() { l.onFlush() }

// A client that waits for a turn receives an error when the server stops. The stop does not count as a disconnect, so
// the turn continues after the next start.
func TestW23_StoppingServerNotifiesWaitingClients(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t) // runs no turns
	h.Agent("coach")
	var got []<-chan *httptest.ResponseRecorder
	for _, a := range waitingRequests() {
		got = append(got, a.send(t, h, watch, h.Token))
	}
	h.Stop()
	for i, a := range waitingRequests() {
		r := <-got[i]
		if want := map[bool]int{true: 503, false: 200}[a.errorMark == ""]; r.Code != want ||
			!strings.Contains(r.Body.String(), a.errorMark) ||
			!strings.Contains(r.Body.String(), "the server is stopping") {
			t.Errorf("%s %v: %d %s", a.path, a.body["stream"], r.Code, r.Body)
		}
	}
	h = env.start(t)
	runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs
	if len(runs) != len(waitingRequests()) {
		t.Errorf("%d turns", len(runs))
	}
	for _, run := range runs {
		if run.State != reeve.RunRunning {
			t.Errorf("turn is %s: %s", run.State, run.Message)
		}
	}
}

// The role of a token changes at once, for its console sessions too. Streams that began with a higher role end.
func TestW23_StreamEndsWhenItsTokenLosesItsRole(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t)
	h.Agent("coach")
	for _, a := range waitingRequests() {
		tok := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "ada", "user": "ada",
			"role": "member"}))
		got := a.send(t, h, watch, tok.Token)
		h.Want(200, nil, "PATCH", "/api/tokens/"+tok.ID, object{"role": "owner"})
		h.Want(200, nil, "GET", "/api/tokens", nil, "Authorization", "Bearer "+tok.Token)
		h.Want(200, nil, "PATCH", "/api/tokens/"+tok.ID, object{"role": "viewer"})
		if r := <-got; !strings.Contains(r.Body.String(), "is now viewer") {
			t.Errorf("%s %v: %d %s", a.path, a.body["stream"], r.Code, r.Body)
		}
		wantProblem(t, h.Do("POST", "/api/agents", object{"name": "x"}, "Authorization", "Bearer "+tok.Token), 403,
			reeve.Forbidden)
	}
}

// A token cannot change its own role, so a workspace keeps an owner. The server's token is always an owner.
func TestC21_NoTokenChangesItsOwnRole(t *testing.T) {
	t.Parallel()
	h := newTestEnv(t).start(t)
	boss := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "boss", "role": "owner"}))
	as := []string{"Authorization", "Bearer " + boss.Token}
	wantProblem(t, h.Do("PATCH", "/api/tokens/"+boss.ID, object{"role": "viewer"}, as...), 409, reeve.Conflict)
	for _, c := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
		if strings.Contains(h.Token, c.ID) {
			wantProblem(t, h.Do("PATCH", "/api/tokens/"+c.ID, object{"role": "viewer"}, as...), 403, reeve.Forbidden)
			wantProblem(t, h.Do("PATCH", "/api/tokens/"+c.ID, object{"role": "viewer"}), 409, reeve.Conflict)
		}
	}
	wantFieldError(t, h.Do("PATCH", "/api/tokens/"+boss.ID, object{"role": "king"}), "/role")
	wantProblem(t, h.Do("PATCH", "/api/tokens/tok_none", object{"role": "viewer"}), 404, reeve.NotFound)
}

// When a token expires or is revoked, its stream reports it, and the turn is cancelled for that reason.
func TestW23_StreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	watch := env.watchCommits()
	h := env.start(t)
	h.Agent("coach")
	for _, a := range waitingRequests() {
		tok := decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", object{"name": "ada", "user": "ada",
			"role": "member"}))
		got := a.send(t, h, watch, tok.Token)
		h.Want(204, nil, "DELETE", "/api/tokens/"+tok.ID, nil)
		if r := <-got; !strings.Contains(r.Body.String(), "no longer valid") || a.errorMark == "" && r.Code != 401 {
			t.Errorf("%s %v: %d %s", a.path, a.body["stream"], r.Code, r.Body)
		}
	}
	for _, run := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs {
		if run.State != reeve.RunCancelled || run.Message != "its client may no longer listen" {
			t.Errorf("turn is %s: %s", run.State, run.Message)
		}
	}
}
