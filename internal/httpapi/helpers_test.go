package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/model"
	"reeve/reevetest"
)

// testEnv is a data directory and a database in which a test starts one server after another.
type testEnv struct{ cfg host.Config }

func newTestEnv(t *testing.T) testEnv { return testEnv{host.Config{Dir: t.TempDir()}} }

// onBothEngines runs a test on SQLite and on PostgreSQL. It fails without PostgreSQL, which scripts/postgres starts.
func onBothEngines(t *testing.T, f func(t *testing.T, env testEnv)) {
	t.Run("sqlite", func(t *testing.T) { f(t, newTestEnv(t)) })
	t.Run("postgres", func(t *testing.T) {
		f(t, testEnv{host.Config{Dir: t.TempDir(), Database: storetest.PostgresURL(t)}})
	})
}

// start starts a server. Its model makes the calls that it is told to make, also for the planner. Every response is
// checked against the server's OpenAPI document.
func (env testEnv) start(t *testing.T, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	if env.cfg.Model == nil {
		env.cfg.Model = model.Rehearsal(model.Script{})
	}
	h := reevetest.StartWith(t, env.cfg, tools...)
	c := h.Server.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Transport = &checkingTransport{t: t, next: c.Transport, doc: loadOpenAPI(t, h)}
	return h
}

func startServer(t *testing.T, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	return newTestEnv(t).start(t, tools...)
}

// openAPIDoc is a server's OpenAPI document.
type openAPIDoc struct {
	tree     map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

func loadOpenAPI(t *testing.T, h *reevetest.Host) *openAPIDoc {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(h.Want(200, nil, "GET", "/openapi.json", nil).Body))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:///openapi.json", v); err != nil {
		t.Fatal(err)
	}
	return &openAPIDoc{tree: v.(map[string]any), compiler: c, compiled: map[string]*jsonschema.Schema{}}
}

// compileSchema compiles the schema at a JSON pointer in the document.
func (d *openAPIDoc) compileSchema(pointer ...string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := "mem:///openapi.json#"
	for _, p := range pointer {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(p)
	}
	if s := d.compiled[at]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(at)
	d.compiled[at] = s
	return s, err
}

// operation is one operation of the document.
type operation struct {
	method, path, id string
	tree             map[string]any
}

func (d *openAPIDoc) operations() []operation {
	var out []operation
	for p, item := range d.tree["paths"].(map[string]any) {
		for m, op := range item.(map[string]any) {
			o := op.(map[string]any)
			id, _ := o["operationId"].(string)
			out = append(out, operation{strings.ToUpper(m), p, id, o})
		}
	}
	return out
}

// findOperation returns the operation that handles a request. An exact path wins over one with parameters.
func (d *openAPIDoc) findOperation(r *http.Request) (found operation, ok bool) {
	for _, o := range d.operations() {
		if o.matches(r.Method, r.URL.EscapedPath()) && (!ok || !strings.Contains(o.path, "{")) {
			found, ok = o, true
		}
	}
	return found, ok
}

// matches reports whether the operation handles requests with a method and path.
func (o operation) matches(method, path string) bool {
	have, want := strings.Split(path, "/"), strings.Split(o.path, "/")
	match := o.method == method && len(have) == len(want)
	for i := 0; match && i < len(want); i++ {
		match = want[i] == have[i] || strings.HasPrefix(want[i], "{") && have[i] != ""
	}
	return match
}

// checkingTransport is a transport that checks every response against the OpenAPI document.
type checkingTransport struct {
	t    *testing.T
	next http.RoundTripper
	doc  *openAPIDoc
}

func (c *checkingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil {
		return res, nil // the caller gets the error when it reads the body
	}
	if why := c.doc.describeMismatch(r, res, body); why != "" {
		c.t.Errorf("%s %s: status %d: %s: %.400s", r.Method, r.URL.Path, res.StatusCode, why, body)
	}
	return res, nil
}

// describeMismatch returns how a response differs from the document, or an empty string.
func (d *openAPIDoc) describeMismatch(r *http.Request, res *http.Response, body []byte) string {
	o, ok := d.findOperation(r)
	if !ok {
		return ""
	}
	status := fmt.Sprint(res.StatusCode)
	responses := o.tree["responses"].(map[string]any)
	if responses[status] == nil {
		status = "default"
	}
	response, ok := responses[status].(map[string]any)
	if !ok || status == "default" && res.StatusCode < 400 {
		return "the status is not documented"
	}
	content, _ := response["content"].(map[string]any)
	kind := res.Header.Get("Content-Type")
	if len(body) == 0 && len(content) == 0 || kind == "application/octet-stream" {
		return ""
	}
	if content[kind] == nil {
		return "the content type " + kind + " is not documented"
	}
	if kind == "text/event-stream" {
		return ""
	}
	s, err := d.compileSchema("paths", o.path, strings.ToLower(o.method), "responses", status, "content", kind,
		"schema")
	if err != nil {
		return err.Error()
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	if err := s.Validate(v); err != nil {
		return err.Error()
	}
	return ""
}

// wantProblem checks that a response is a complete problem document with a status and code, and returns it.
func wantProblem(t *testing.T, r reevetest.Reply, status int, code reeve.Code) api.Problem {
	t.Helper()
	var p api.Problem
	if r.Status != status {
		t.Errorf("status %d, want %d: %.500s", r.Status, status, r.Body)
	}
	if ct := r.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q: %.500s", ct, r.Body)
		return p
	}
	r.Decode(t, &p)
	switch {
	case p.Code != code:
		t.Errorf("code %s, want %s: %.500s", p.Code, code, r.Body)
	case p.Status != r.Status || p.Title == "" || p.Detail == "" || p.Type == "":
		t.Errorf("incomplete problem: %.500s", r.Body)
	case p.Hint == "":
		t.Errorf("no hint: %.500s", r.Body)
	case p.RequestID == "" || p.RequestID != r.Header.Get("X-Request-Id"):
		t.Errorf("request id %q, header %q", p.RequestID, r.Header.Get("X-Request-Id"))
	case code == reeve.Validation && len(p.Errors) == 0:
		t.Errorf("no field error: %.500s", r.Body)
	}
	return p
}

// wantFieldError checks that a response is a validation problem with an error at a path.
func wantFieldError(t *testing.T, r reevetest.Reply, path string) {
	t.Helper()
	for _, f := range wantProblem(t, r, 400, reeve.Validation).Errors {
		if f.Path == path {
			return
		}
	}
	t.Errorf("no error at %q: %s", path, r.Body)
}

// createToken creates a bearer token and returns its text.
func createToken(t *testing.T, h *reevetest.Host, role reeve.Role, workspaces ...string) string {
	t.Helper()
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: string(role), Role: role, Workspaces: workspaces})
	return made.Token
}

// withToken returns the headers of a request with a token, optionally in another workspace.
func withToken(token string, workspace ...string) []string {
	out := []string{"Authorization", "Bearer " + token}
	if len(workspace) > 0 {
		out = append(out, "X-Workspace-Id", workspace[0])
	}
	return out
}

// writeSharedFiles writes files to the shared directory of a workspace.
func writeSharedFiles(t *testing.T, h *reevetest.Host, workspace string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(h.Dir(), "workspaces", workspace, "shared", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshotPaths are the routes that together list the entries of a workspace.
var snapshotPaths = []string{"/api/tools", "/api/agents?limit=500", "/api/operations?limit=500",
	"/api/approvals?limit=500",
	"/api/proposals?limit=500", "/api/inbox", "/api/profiles", "/api/budgets",
	"/api/tokens", "/api/secrets", "/api/workspaces"}

// takeSnapshot returns the responses of snapshotPaths and the tools and messages of each agent, to compare with a later
// snapshot.
func takeSnapshot(t *testing.T, h *reevetest.Host, headers ...string) string {
	t.Helper()
	var b strings.Builder
	var agents api.AgentList
	for _, p := range snapshotPaths {
		r := h.Want(200, nil, "GET", p, nil, headers...)
		fmt.Fprintf(&b, "%s\n%s", p, r.Body)
		if strings.HasPrefix(p, "/api/agents") {
			r.Decode(t, &agents)
		}
	}
	for _, a := range agents.Agents {
		for _, p := range []string{"/tools", "/messages?limit=500"} {
			fmt.Fprintf(&b, "%s%s\n%s", a.ID, p, h.Want(200, nil, "GET", "/api/agents/"+a.ID+p, nil, headers...).Body)
		}
	}
	return b.String()
}

// wantUnchanged checks that two snapshots are equal, and reports the first difference.
func wantUnchanged(t *testing.T, before, after string) {
	t.Helper()
	i := 0
	for i < len(before) && i < len(after) && before[i] == after[i] {
		i++
	}
	if i < len(before) || i < len(after) {
		from := max(0, i-200)
		t.Errorf("snapshot changed from\n%s\nto\n%s", before[from:min(len(before), i+200)],
			after[from:min(len(after), i+200)])
	}
}

type object = map[string]any

func decode[T any](t *testing.T, r reevetest.Reply) (v T) {
	t.Helper()
	r.Decode(t, &v)
	return v
}

// newTool returns a tool that accepts any arguments.
func newTool(id string, effect reeve.Effect, tier reeve.Tier, f reeve.Handler) reeve.Tool {
	return reeve.Tool{ID: id, Description: "Test tool " + id,
		Parameters: json.RawMessage(`{"type":"object"}`), Effect: effect, Tier: tier, Handler: f}
}

func alwaysReturn(v any, err error) reeve.Handler {
	return func(context.Context, *reeve.Invocation) (any, error) { return v, err }
}

func testTools() []reeve.Tool {
	return []reeve.Tool{
		newTool("send", reeve.Keyed, reeve.SideEffecting, alwaysReturn("sent", nil)),
		newTool("erase", reeve.Unsafe, reeve.Privileged, alwaysReturn("done", nil)),
		newTool("lose_outcome", reeve.Unsafe, reeve.SideEffecting,
			alwaysReturn(nil, reeve.Errorf(reeve.UnknownOutcome, "the connection was lost"))),
		newTool("fail", reeve.Keyed, reeve.SideEffecting,
			alwaysReturn(nil, reeve.Errorf(reeve.ToolFailed, "no such recipient"))),
		newTool("look", reeve.Read, reeve.ReadOnly, alwaysReturn("seen", nil)),
		newTool("long_output", reeve.Read, reeve.ReadOnly, alwaysReturn(strings.Repeat("all that alpha knows ", 2000),
			nil)),
	}
}
