package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"reeve"
)

// Builder makes tools of catalogue rows of kind http.
type Builder struct {
	// Guard is what every request of every tool obeys. Default: public addresses only.
	Guard Guard
	// Secrets gives a workspace's secret by name, an error of code NOT_FOUND for one that is not set. Default: there
	// are none, and a spec that uses one is refused.
	Secrets func(ctx context.Context, workspace, name string) (string, error)
}

// Build checks a row of kind http and returns it with its defaults, Handler, Check and, for effect verifiable, Verify.
// The error lists everything that is wrong, with JSON Pointers from the row's root. Beyond the defaults the row's data
// is left as it is: a built tool has the fingerprint of its row, and holds no secret.
func (b *Builder) Build(t reeve.Tool) (reeve.Tool, error) {
	t, _, err := b.build(t)
	return t, err
}

// Define checks a row that is about to be written as Build does, and that every parameter goes somewhere: one that was
// forgotten in the query would be asked for, given and dropped. A row that was taken before that was asked is built all
// the same.
func (b *Builder) Define(t reeve.Tool) error {
	t, c, err := b.build(t)
	if err != nil {
		return err
	}
	if c.unused(); len(c.fields) > 0 {
		return invalid(t, c.fields)
	}
	return nil
}

func (b *Builder) build(t reeve.Tool) (reeve.Tool, *checker, error) {
	t = t.WithDefaults()
	var f []reeve.Field
	if err := t.Validate(); err != nil {
		f = reeve.AsError(err).Fields
	}
	if t.Kind != reeve.HTTPTool {
		f = append(f, reeve.Field{Path: "/kind", Message: string(t.Kind) + " is not the kind built here",
			Expected: string(reeve.HTTPTool)})
		return t, nil, invalid(t, f)
	}
	e, wrong := parseEndpoint(t.Spec)
	if len(wrong) > 0 {
		return t, nil, invalid(t, append(f, wrong...))
	}
	c := &checker{builder: b, tool: t, spec: e.withDefaults(), fields: f}
	c.parameters()
	c.effect()
	main := c.endpoint()
	look := c.lookup()
	if len(c.fields) > 0 {
		return t, nil, invalid(t, c.fields)
	}
	main.async = t.Async
	t.Handler = main.handle
	t.Check = main.check
	t.Reads = reader(c.spec.Reads)
	t.PassTokens = c.spec.PassTokens
	if look != nil {
		t.Verify = look.verify
	}
	return t, c, nil
}

// reader tells by its arguments whether a call changes nothing: each that is named has one of its values.
func reader(values map[string][]string) reeve.ReadDetector {
	if len(values) == 0 {
		return nil
	}
	return func(args json.RawMessage) bool {
		var given map[string]any
		if json.Unmarshal(args, &given) != nil {
			return false
		}
		for name, reads := range values {
			if v, ok := given[name].(string); !ok || !slices.Contains(reads, v) {
				return false
			}
		}
		return true
	}
}

// handle is the handler of a tool of kind http.
func (r *request) handle(ctx context.Context, inv *reeve.Invocation) (any, error) {
	if r.effect.Mutates() && inv.Operation == "" {
		return nil, reeve.Errorf(reeve.Internal, "a call that changes something has no operation id")
	}
	a, err := r.send(ctx, inv)
	if err != nil {
		return nil, err
	}
	if r.async && a.status == http.StatusAccepted {
		return nil, reeve.Errorf(reeve.InProgress, "the endpoint has taken it, and delivers its outcome later")
	}
	if err := r.outcome(inv, a); err != nil {
		return nil, err
	}
	return r.success(a)
}

// check refuses arguments that do not fit the url or the body, before a person is asked to approve them. It knows no
// secrets, and there may be no operation yet.
func (r *request) check(ctx context.Context, inv *reeve.Invocation) error {
	_, err := r.draft(ctx, &reeve.Invocation{Args: inv.Args, Operation: cmp.Or(inv.Operation, "op")}, nil)
	return err
}

// client gives the guarded client for a request. Only a read follows redirects: the first answer to a request that
// changes something, or to the look-up of one, is the one that says what happened.
func (b *Builder) client(follows bool) *http.Client {
	c := b.Guard.Client()
	if !follows {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

func invalid(t reeve.Tool, f []reeve.Field) error {
	slices.SortStableFunc(f, func(a, b reeve.Field) int { return cmp.Compare(a.Path, b.Path) })
	return &reeve.Error{Code: reeve.Validation, Message: "the tool " + t.ID + " is not declared well: " + f[0].Message,
		Fields: f}
}

// checker gathers what is wrong with a spec while it makes it ready.
type checker struct {
	builder *Builder
	tool    reeve.Tool
	spec    Endpoint
	known   map[string]string // parameter to its type, as far as the schema says
	used    map[string]bool   // those that stand somewhere in the spec
	fields  []reeve.Field
}

func (c *checker) bad(path, expected string, err error) {
	var e *reeve.Error
	m := err.Error()
	if errors.As(err, &e) {
		m = e.Message
	}
	c.fields = append(c.fields, reeve.Field{Path: path, Message: m, Expected: expected})
}

// parameters learns which arguments there can be.
func (c *checker) parameters() {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	c.known, c.used = map[string]string{}, map[string]bool{}
	if len(c.tool.Parameters) == 0 || json.Unmarshal(c.tool.Parameters, &schema) != nil {
		c.bad("/parameters", "a JSON Schema of an object", bad("the arguments' schema cannot be read"))
		return
	}
	for name, raw := range schema.Properties {
		var p struct {
			Type json.RawMessage `json:"type"`
		}
		var typ string
		if json.Unmarshal(raw, &p) == nil && len(p.Type) > 0 && p.Type[0] == '"' {
			_ = json.Unmarshal(p.Type, &typ) // a type that is not one is found when the schema is compiled
		}
		c.known[name] = typ
		c.used[name] = string(raw) == "false" // nobody can give it
	}
	if _, ok := c.known[OperationArg]; ok {
		c.bad("/parameters/properties/"+OperationArg, "another name", bad("%s stands for the operation's own id",
			OperationArg))
	}
	if c.tool.Effect.Mutates() {
		c.known[OperationArg] = "string" // a read has no operation
	}
}

// effect checks that the effect class and the request agree.
func (c *checker) effect() {
	s, effect := c.spec, c.tool.Effect
	switch {
	case effect == reeve.Local:
		c.bad("/effect", "read, keyed, verifiable or unsafe",
			bad("an endpoint's effect is never local: it happens outside Reeve"))
	case effect == reeve.Read && s.Method == http.MethodPost && !s.Read:
		c.bad("/spec/method", `GET, or "read": true beside POST`, bad("a POST is taken to change something"))
	case effect == reeve.Read && isMethod(s.Method) && s.Method != http.MethodGet && s.Method != http.MethodPost:
		c.bad("/spec/method", "GET", bad("%s changes something, but the tool's effect is read", s.Method))
	}
	if s.Read && (effect != reeve.Read || s.Method != http.MethodPost) {
		c.bad("/spec/read", "nothing here", bad("read is for a POST of a tool whose effect is read"))
	}
	if effect == reeve.Verifiable && s.Verify == nil {
		c.bad("/spec/verify", "the look-up", bad("a verifiable tool must be able to look up what happened"))
	}
	if effect != reeve.Verifiable && s.Verify != nil {
		c.bad("/spec/verify", "nothing here", bad("only a verifiable tool looks up what happened"))
	}
}
