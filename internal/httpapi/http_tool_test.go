package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// remoteServer is a server that tools call. It records its requests.
type remoteServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newRemoteServer(t *testing.T) *remoteServer {
	remote := &remoteServer{}
	remote.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		remote.mu.Lock()
		remote.requests, remote.bodies = append(remote.requests, r), append(remote.bodies, string(b))
		remote.mu.Unlock()
		switch r.URL.Path {
		case "/large":
			io.WriteString(w, strings.Repeat("x", 5000))
		case "/broken":
			http.Error(w, "no, not with "+r.Header.Get("Authorization"), http.StatusUnprocessableEntity)
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"ok":true,"path":%q,"auth":%q,"data":{"value":42}}`, r.URL.Path,
				r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(remote.Close)
	return remote
}

func (remote *remoteServer) lastRequest(t *testing.T) (*http.Request, string) {
	t.Helper()
	remote.mu.Lock()
	defer remote.mu.Unlock()
	if len(remote.requests) == 0 {
		t.Fatal("no request was sent")
	}
	return remote.requests[len(remote.requests)-1], remote.bodies[len(remote.bodies)-1]
}

func (remote *remoteServer) countRequests() int {
	remote.mu.Lock()
	defer remote.mu.Unlock()
	return len(remote.requests)
}

// startWithRemote starts a server whose tools may call a remote server.
func startWithRemote(t *testing.T, remote *remoteServer) (testEnv, *reevetest.Host) {
	env := newTestEnv(t)
	env.cfg.HTTPAllow = []string{strings.TrimPrefix(remote.URL, "http://")}
	return env, env.start(t)
}

// orderTool returns the definition of a tool that changes something on a remote server, with the given changes.
func orderTool(remote *remoteServer, change object) object {
	t := object{"id": "order", "description": "Orders an item from a remote server.", "effect": "keyed",
		"tier": "side_effecting", "category": "shop",
		"parameters": object{"type": "object", "required": []string{"item"}, "additionalProperties": false,
			"properties": object{"item": object{"type": "string"}, "count": object{"type": "integer", "minimum": 1}}},
		"spec": object{"method": "POST", "url": remote.URL + "/orders/{item}",
			"headers": object{"Authorization": "Bearer ${secret:SHOP}"}, "result": "/data"}}
	for k, v := range change {
		t[k] = v
	}
	return t
}

func TestI10_HTTPToolEndToEnd(t *testing.T) {
	t.Parallel()
	remote := newRemoteServer(t)
	env, h := startWithRemote(t, remote)
	const secret = "shop-key-0123456789"
	v := decode[api.ToolView](t, h.Want(201, nil, "POST", "/api/tools", orderTool(remote, nil)))
	if v.Version != 1 || v.Kind != reeve.HTTPTool || v.Effect != reeve.Keyed || v.Tier != reeve.SideEffecting ||
		v.Category != "shop" || v.TimeoutMS == 0 || v.ParametersSchema == "" {
		t.Errorf("made %+v", v.Tool)
	}
	wantProblem(t, h.Do("POST", "/api/tools", orderTool(remote, nil)), 409, reeve.AlreadyExists)
	h.Agent("coach", "order")

	// Without its secret the tool fails and sends nothing.
	if r := h.Call("coach", "order", object{"item": "tea"}); !r.IsError || !strings.Contains(r.Message+r.Content,
		"SHOP") || remote.countRequests() != 0 {
		t.Errorf("without its secret: %+v, sent %d", r, remote.countRequests())
	}
	for _, unusable := range []string{"abc", "abc\r\n", "\n\n\n\n\n", "pässword", "two\nlines"} {
		wantFieldError(t, h.Do("PUT", "/api/secrets/SHOP", object{"value": unusable}), "/value")
	}
	if l := decode[api.SecretList](t, h.Want(200, nil, "GET", "/api/secrets", nil)); len(l.Secrets) != 0 {
		t.Errorf("a refused secret was stored: %+v", l.Secrets)
	}
	h.Want(204, nil, "PUT", "/api/secrets/SHOP", object{"value": secret})

	res := h.Call("coach", "order", object{"item": "green tea/x", "count": 2}, idempotencyKey, "k")
	if res.IsError || res.State != reeve.Committed || strings.TrimSpace(res.Content) != `{"value":42}` {
		t.Errorf("got %+v", res)
	}
	req, body := remote.lastRequest(t)
	if req.Method != "POST" || req.URL.EscapedPath() != "/orders/green%20tea%2Fx" ||
		req.Header.Get("Authorization") != "Bearer "+secret || body != `{"count":2}` {
		t.Errorf("sent %s %s %v %s", req.Method, req.URL.EscapedPath(), req.Header, body)
	}
	if req.Header.Get(idempotencyKey) != res.OperationID || res.OperationID == "" {
		t.Errorf("idempotency key %q, want operation id %q", req.Header.Get(idempotencyKey), res.OperationID)
	}
	n := remote.countRequests()
	if again := h.Call("coach", "order", object{"item": "green tea/x", "count": 2}, idempotencyKey, "k"); !again.Replayed ||
		remote.countRequests() != n {
		t.Errorf("a repeated key sent another request: %+v", again)
	}

	// Arguments are checked before a request is sent.
	wantFieldError(t, h.Do("POST", "/api/agents/coach/calls",
		object{"tool": "order", "args": object{"item": "tea", "count": 0}}), "/count")
	wantFieldError(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "order", "args": object{"count": 1}}),
		"/item")
	if remote.countRequests() != n {
		t.Error("a refused call was sent")
	}

	// An update creates a new version, which is used at once and after a restart. The id cannot change.
	up := decode[api.ToolView](t, h.Want(200, nil, "PUT", "/api/tools/order",
		orderTool(remote, object{"description": "Orders an item and returns the full response.",
			"spec": object{"method": "POST", "url": remote.URL + "/v2/{item}",
				"headers": object{"X-Key": "${secret:SHOP}"}}})))
	if up.Version != 2 || up.CreatedAt != v.CreatedAt {
		t.Errorf("version %d, created %s", up.Version, up.CreatedAt)
	}
	h.Stop()
	h = env.start(t)
	if r := h.Call("coach", "order", object{"item": "milk"}); r.IsError {
		t.Errorf("after the change: %+v", r)
	}
	if req, _ := remote.lastRequest(t); req.URL.Path != "/v2/milk" || req.Header.Get("X-Key") != secret {
		t.Errorf("sent %s %v", req.URL.Path, req.Header)
	}
	wantFieldError(t, h.Do("PUT", "/api/tools/order", orderTool(remote, object{"id": "other"})), "/id")
	wantProblem(t, h.Do("PUT", "/api/tools/nothing", orderTool(remote, object{"id": "nothing"})), 404, reeve.NotFound)
	wantProblem(t, h.Do("PUT", "/api/tools/file_read", orderTool(remote, object{"id": "file_read"})), 409,
		reeve.Conflict)

	// A secret in the response of the remote server is redacted.
	h.Want(200, nil, "PUT", "/api/tools/order",
		orderTool(remote, object{"spec": object{"method": "POST", "url": remote.URL + "/echo",
			"headers": object{"Authorization": "Bearer ${secret:SHOP}"}}}))
	if r := h.Call("coach", "order", object{"item": "tea"}); r.IsError || strings.Contains(r.Content, secret) {
		t.Errorf("the response contains the secret: %+v", r)
	}
	h.Want(200, nil, "PUT", "/api/tools/order",
		orderTool(remote, object{"spec": object{"method": "POST", "url": remote.URL + "/broken",
			"headers": object{"Authorization": "Bearer ${secret:SHOP}"}}}))
	if r := h.Call("coach", "order", object{"item": "tea"}); !r.IsError || r.Code != reeve.ToolFailed {
		t.Errorf("a refusal: %+v", r)
	}
	if all := takeSnapshot(t, h); strings.Contains(all, secret) {
		t.Error("a response contains the secret")
	}
	h.Want(204, nil, "DELETE", "/api/tools/order", nil)
	if got := listAttached(t, h, "coach"); len(got) > 0 {
		t.Errorf("after the tool was deleted, the agent has %v", got)
	}
	wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "order", "args": object{"item": "tea"}}), 404,
		reeve.NotFound)
}

// A tool that refers to a secret can send it anywhere. Only an owner may create such a tool, or update a tool that
// refers or referred to a secret.
func TestI10_OnlyOwnersChooseSecretTargets(t *testing.T) {
	t.Parallel()
	remote := newRemoteServer(t)
	_, h := startWithRemote(t, remote)
	const secret = "shop-key-0123456789"
	h.Want(204, nil, "PUT", "/api/secrets/SHOP", object{"value": secret})
	member := withToken(createToken(t, h, reeve.Member))
	plain := object{"method": "POST", "url": remote.URL + "/mine"}
	defineTool(t, h, object{"id": "plain"}, member...) // a member may create tools without a secret
	h.Want(200, nil, "PUT", "/api/tools/plain",
		weatherTool(object{"id": "plain", "description": "Returns the weather of a place, version 2."}), member...)
	h.Want(201, nil, "POST", "/api/tools", orderTool(remote, nil))
	before := takeSnapshot(t, h)
	wantForbidden := func(method, path string, body any) {
		t.Helper()
		p := wantProblem(t, h.Do(method, path, body, member...), 403, reeve.Forbidden)
		if !strings.Contains(p.Detail, "secret") || !strings.Contains(p.Hint, "owner") ||
			strings.Contains(p.Detail, secret) {
			t.Errorf("%s %s: %+v", method, path, p)
		}
	}
	for name, spec := range map[string]any{
		"header": object{"method": "GET", "url": remote.URL + "/{place}", "headers": object{"X-Key": "${secret:SHOP}"}},
		"query":  object{"method": "GET", "url": remote.URL + "/{place}?k=${secret:SHOP}"},
		"escaped": json.RawMessage(`{"method": "GET", "url": "` + remote.URL +
			`/{place}", "headers": {"X-Key": "\u0024{s\u0065cret:SHOP}"}}`),
	} {
		wantForbidden("POST", "/api/tools", weatherTool(object{"id": name, "spec": spec}))
		wantForbidden("PUT", "/api/tools/plain", weatherTool(object{"id": "plain", "spec": spec}))
	}
	wantForbidden("POST", "/api/tools",
		orderTool(remote, object{"id": "look", "effect": "verifiable",
			"spec": object{"method": "POST", "url": remote.URL + "/mine",
				"verify": object{"url": remote.URL + "/{operation_id}", "headers": object{"X-Key": "${secret:SHOP}"}}}}))
	wantForbidden("PUT", "/api/tools/order",
		orderTool(remote, object{"spec": object{"method": "POST", "url": remote.URL + "/elsewhere",
			"headers": object{"X-Key": "${secret:SHOP}"}}}))
	// A member cannot remove the secret from an owner's tool either.
	wantForbidden("PUT", "/api/tools/order", orderTool(remote, object{"spec": plain}))
	wantUnchanged(t, before, takeSnapshot(t, h))
	if remote.countRequests() != 0 {
		t.Errorf("%d requests were sent", remote.countRequests())
	}
	// Members may attach, call and delete a tool that an owner created. They cannot create it again.
	h.Want(201, nil, "POST", "/api/agents", object{"name": "coach"}, member...)
	h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "order"}, member...)
	if res := h.Call("coach", "order", object{"item": "tea"}, member...); res.IsError {
		t.Errorf("called by a member: %+v", res)
	}
	h.Want(204, nil, "DELETE", "/api/tools/order", nil, member...)
	wantForbidden("POST", "/api/tools", orderTool(remote, nil))
	// An owner may add a secret to a tool.
	h.Want(200, nil, "PUT", "/api/tools/plain",
		weatherTool(object{"id": "plain", "spec": object{"method": "GET", "url": remote.URL + "/{place}",
			"headers": object{"X-Key": "${secret:SHOP}"}}}))
}

func TestI10_PrivateAddressesAreRefused(t *testing.T) {
	t.Parallel()
	remote := newRemoteServer(t)
	h := startServer(t) // private addresses are not allowed
	defineTool(t, h, object{"id": "local", "spec": object{"method": "GET", "url": remote.URL + "/{place}"}})
	_, allowed := startWithRemote(t, remote)
	defineTool(t, allowed, object{"id": "away", "spec": object{"method": "GET", "url": remote.URL + "/away?q={place}"}})
	h.Agent("coach", "local")
	if r := h.Call("coach", "local", object{"place": "x"}); !r.IsError || remote.countRequests() != 0 {
		t.Errorf("a private address was reached: %+v", r)
	}
	allowed.Agent("coach", "away")
	if r := allowed.Call("coach", "away", object{"place": "x"}); !r.IsError {
		t.Errorf("a redirect to a private address was followed: %+v", r)
	}
	for i, url := range []string{"http://localhost/x", "http://[::1]/x", "http://169.254.169.254/latest/meta-data",
		"http://10.0.0.1/", "http://0.0.0.0/", "http://2130706433/", "http://[::ffff:127.0.0.1]/"} {
		id := fmt.Sprintf("guess%d", i)
		r := h.Do("POST", "/api/tools",
			weatherTool(object{"id": id, "spec": object{"method": "GET", "url": url, "query": object{"q": "place"}}}))
		if r.Status == 400 {
			continue // refused when the tool is defined
		}
		if r.Status != 201 {
			t.Errorf("%s: %d %s", url, r.Status, r.Body)
			continue
		}
		h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": id})
		if res := h.Call("coach", id, object{"place": "x"}); !res.IsError {
			t.Errorf("%s was reached: %+v", url, res)
		}
	}
}

func TestI10_BadDefinitions(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	before := takeSnapshot(t, h)
	for _, kind := range []string{"mcp"} {
		p := wantProblem(t, h.Do("POST", "/api/tools", weatherTool(object{"kind": kind})), 501, reeve.Unsupported)
		if !strings.Contains(p.Detail, kind) || p.Hint == "" {
			t.Errorf("%s: %+v", kind, p)
		}
	}
	for at, change := range map[string]object{
		"/kind":            {"kind": "go"},
		"/id":              {"id": "no spaces"},
		"/description":     {"description": ""},
		"/effect":          {"effect": "local"},
		"/tier":            {"tier": "royal"},
		"/parameters":      {"parameters": object{"type": "thing"}},
		"/parameters/type": {"parameters": object{"type": "array"}},
		"/config_schema":   {"config_schema": object{"type": 7}},
		"/timeout_ms":      {"timeout_ms": -5},
		"/retry/attempts":  {"retry": object{"attempts": 99, "delay_ms": 0, "max_ms": 0}},
		"/category":        {"category": "No Good"},
		"/colour":          {"colour": "blue"},
	} {
		wantFieldError(t, h.Do("POST", "/api/tools", weatherTool(change)), at)
	}
	place := object{"type": "string"}
	for _, schema := range []object{{"$ref": "#"}, {"type": "object", "allOf": []object{{"$ref": "#"}}},
		{"$ref": "#/$defs/a", "$defs": object{"a": object{"$ref": "#/$defs/a"}}},
		{"type": "object", "properties": object{"place": object{"$ref": "#/properties/place"}}},
		{"type": "object", "dependentSchemas": object{"a": object{"$ref": "#"}}}} {
		if p := wantProblem(t, h.Do("POST", "/api/tools", weatherTool(object{"parameters": schema})), 400,
			reeve.Validation); !strings.Contains(p.Detail, "cycle") {
			t.Errorf("%v: %+v", schema, p)
		}
	}
	wantFieldError(t, h.Do("POST", "/api/tools",
		weatherTool(object{"parameters": object{"type": "object", "properties": object{"place": place, "units": place}}})),
		"/parameters/properties/units")
	wantFieldError(t, h.Do("POST", "/api/tools", weatherTool(object{"identity": []string{"place", "nope"}})),
		"/identity/1")
	wantFieldError(t, h.Do("POST", "/api/tools",
		weatherTool(object{"identity": []string{"nope"}, "parameters": object{"type": "object",
			"properties": object{"place": place}}})), "/identity/0")
	for _, spec := range []any{nil, object{}, "x", 7, object{"method": "GET"},
		object{"method": "TRACE", "url": "https://a.example/"}, object{"method": "GET", "url": "file:///etc/passwd"},
		object{"method": "GET", "url": "https://{place}.example/"},
		object{"method": "GET", "url": "https://a.example/{missing}"},
		object{"method": "GET", "url": "https://a.example/${secret:X}"},
		object{"method": "GET", "url": "https://u:p@a.example/"}, object{"method": "GET", "url": "https://a.example/",
			"headers": object{"Bad\r\nName": "x"}},
		object{"method": "GET", "url": "https://a.example/", "headers": object{"X": "a\r\nb"}},
		object{"method": "GET", "url": "https://a.example/", "colour": 1},
		object{"method": "GET", "url": "https://a.example/", "headers": object{"Host": "b.example"}},
		object{"method": "POST", "url": "https://a.example/"}} {
		wantProblem(t, h.Do("POST", "/api/tools", weatherTool(object{"spec": spec})), 400, reeve.Validation)
	}
	wantProblem(t, h.Do("POST", "/api/tools", weatherTool(object{"id": "file_read"})), 409, reeve.AlreadyExists)
	wantFieldError(t, h.Do("POST", "/api/tools", weatherTool(object{"id": "reeve_own"})), "/id")
	wantUnchanged(t, before, takeSnapshot(t, h))
	for id, schema := range map[string]object{ // valid: a reference to itself below a property, or properties in allOf
		"tree": {"type": "object", "properties": object{"place": place, "inner": object{"$ref": "#"}}},
		"way": {"type": "object", "properties": object{"place": place,
			"inner": object{"anyOf": []object{{"$ref": "#/properties/inner"}, {"type": "string"}}}}},
		"apart": {"type": "object", "allOf": []object{{"properties": object{"nope": place}}},
			"properties": object{"place": place}}} {
		defineTool(t, h, object{"id": id, "parameters": schema, "identity": map[string][]string{"tree": {"inner"},
			"way": {"inner"}, "apart": {"nope"}}[id]})
	}
	if b, _ := json.Marshal(listTools(t, h, "")); strings.Contains(string(b), `"id":"weather"`) {
		t.Error("a bad definition is in the catalogue")
	}
}

// An argument that is not in the schema is reported as unknown, whichever keyword of the schema excludes it.
func TestG05_UnknownArguments(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Agent("coach")
	text := object{"type": "string"}
	for id, schema := range map[string]object{
		"additional": {"type": "object", "properties": object{"place": text}, "additionalProperties": false},
		"unevaluated": {"type": "object", "allOf": []object{{"properties": object{"place": text}}},
			"properties": object{"place": text}, "unevaluatedProperties": false},
		"forbidden": {"type": "object", "properties": object{"place": text, "nope": false}},
	} {
		defineTool(t, h, object{"id": id, "parameters": schema})
		h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": id})
		p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls",
			object{"tool": id, "args": object{"place": "x", "nope": 1}}), 400, reeve.Validation)
		if len(p.Errors) != 1 || p.Errors[0].Path != "/nope" || p.Errors[0].Message != "is unknown" ||
			p.Errors[0].Expected != "no such property" {
			t.Errorf("%s: %+v", id, p)
		}
	}
}

// A length or count bound in a schema that exceeds the largest integer is refused when the tool is defined. The largest
// accepted bound is exact.
func TestG17_LengthBoundsOutOfRange(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	words := []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
		"maxContains"}
	at := map[string]func(bound object) object{
		"property": func(b object) object { return b },
		"item":     func(b object) object { return object{"items": b} },
		"choice":   func(b object) object { return object{"anyOf": []any{object{"type": "string"}, b}} },
		"elsewhere": func(b object) object {
			return object{"allOf": []any{object{"$ref": "#/properties/place/x-own"}}, "x-own": b}
		},
	}
	tool := func(id, word, bound string, where func(object) object) object {
		part := where(object{word: json.RawMessage(bound)})
		shape := object{"type": "object", "properties": object{"place": part}, "required": []string{"place"}}
		return weatherTool(object{"id": id, "parameters": shape})
	}
	for _, word := range words {
		for _, bound := range []string{"9007199254740994", "9223372036854775808", "18446744073709551616", "1e20",
			"1" + strings.Repeat("0", 40)} {
			for name, where := range at {
				p := wantProblem(t, h.Do("POST", "/api/tools", tool("big", word, bound, where)), 400, reeve.Validation)
				if !strings.Contains(p.Detail+fmt.Sprint(p.Errors), "/"+word) ||
					!strings.Contains(p.Detail+fmt.Sprint(p.Errors), "9007199254740992") {
					t.Errorf("%s %s, %s: %s %v", word, bound, name, p.Detail, p.Errors)
				}
			}
		}
	}
	named := object{"type": "object", "properties": object{"maxLength": object{"const": json.RawMessage("1e20")}}}
	h.Want(201, nil, "POST", "/api/tools",
		weatherTool(object{"id": "named", "parameters": named,
			"spec": object{"method": "GET", "url": "https://weather.example/{maxLength}"}}))
	h.Agent("aide")
	for word, fits := range map[string]bool{"maxLength": true, "minLength": false} {
		h.Want(201, nil, "POST", "/api/tools", tool(word, word, "9007199254740992", at["property"]))
		h.Want(201, nil, "POST", "/api/agents/aide/tools", object{"tool_id": word})
		r := h.Do("POST", "/api/agents/aide/calls/explain", object{"tool": word, "args": object{"place": "xxx"}})
		if tooShort := strings.Contains(string(r.Body), "9007199254740992"); tooShort == fits {
			t.Errorf("%s: %s", word, r.Body)
		}
	}
}
