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

// Builder builds tools from catalogue rows of kind http.
type Builder struct {
	// Guard applies to every request of every tool. Default: public addresses only.
	Guard Guard
	// Secrets returns a workspace's secret by name, or an error of code NOT_FOUND if the secret is not set. Default:
	// none, and a spec that uses a secret is refused.
	Secrets func(ctx context.Context, workspace, name string) (string, error)
}

// Build checks a row of kind http and returns it with its defaults, Handler, Check and, for effect verifiable, Verify.
// The error lists everything that is wrong, with JSON Pointers from the row's root. Apart from the defaults, Build does
// not change the row's data, so a built tool has the fingerprint of its row and holds no secret.
func (b *Builder) Build(t reeve.Tool) (reeve.Tool, error) {
	t, _, err := b.build(t)
	return t, err
}

// Define checks a row before it is stored. It makes the checks of Build and also refuses a parameter that the request
// does not use. Build accepts such a row, because it may have been stored before this check existed.
func (b *Builder) Define(t reeve.Tool) error {
	t, c, err := b.build(t)
	if err != nil {
		return err
	}
	if c.reportUnused(); len(c.fields) > 0 {
		return invalidTool(t, c.fields)
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
		f = append(f, reeve.Field{Path: "/kind", Message: string(t.Kind) + " is not a kind that this builder supports",
			Expected: string(reeve.HTTPTool)})
		return t, nil, invalidTool(t, f)
	}
	e, wrong := parseEndpoint(t.Spec)
	if len(wrong) > 0 {
		return t, nil, invalidTool(t, append(f, wrong...))
	}
	c := &checker{builder: b, tool: t, spec: e.withDefaults(), fields: f}
	c.collectParameters()
	c.checkEffect()
	main := c.buildRequest()
	look := c.buildLookup()
	if len(c.fields) > 0 {
		return t, nil, invalidTool(t, c.fields)
	}
	main.async = t.Async
	t.Handler = main.handle
	t.Check = main.check
	t.IsRead = newReadDetector(c.spec.Reads)
	t.KeepTokenSignatures = c.spec.PassTokens
	if look != nil {
		t.Verify = look.verify
	}
	return t, c, nil
}

// newReadDetector returns a function that reports whether a call changes nothing: every argument in values must have
// one of the values listed for it.
func newReadDetector(values map[string][]string) reeve.ReadDetector {
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
		return nil, reeve.Errorf(reeve.Internal, "call that changes something has no operation id")
	}
	a, err := r.send(ctx, inv)
	if err != nil {
		return nil, err
	}
	if r.async && a.status == http.StatusAccepted {
		return nil, reeve.Errorf(reeve.InProgress,
			"the endpoint accepted the request and will deliver the outcome later")
	}
	if err := r.statusError(inv, a); err != nil {
		return nil, err
	}
	return r.buildResult(a)
}

// check refuses arguments that do not fit the URL or the body, before a person is asked for approval. It uses no
// secrets, and the operation may not exist yet.
func (r *request) check(ctx context.Context, inv *reeve.Invocation) error {
	_, err := r.newRequest(ctx, &reeve.Invocation{Args: inv.Args, Config: inv.Config,
		Operation: cmp.Or(inv.Operation, "op")}, nil)
	return err
}

// newClient returns a guarded client. Only reads follow redirects. For a request that changes something, and for the
// look-up of one, the first response decides the outcome.
func (b *Builder) newClient(follows bool) *http.Client {
	c := b.Guard.Client()
	if !follows {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

func invalidTool(t reeve.Tool, f []reeve.Field) error {
	slices.SortStableFunc(f, func(a, b reeve.Field) int { return cmp.Compare(a.Path, b.Path) })
	return &reeve.Error{Code: reeve.Validation, Message: "tool " + t.ID + " is invalid: " + f[0].Message, Fields: f}
}

// checker collects the errors in a spec while it builds the request.
type checker struct {
	builder    *Builder
	tool       reeve.Tool
	spec       Endpoint
	paramTypes map[string]string // parameter to its type; empty if the schema does not say
	usedParams map[string]bool   // parameters that the spec uses
	fields     []reeve.Field
}

func (c *checker) report(path, expected string, err error) {
	var e *reeve.Error
	m := err.Error()
	if errors.As(err, &e) {
		m = e.Message
	}
	c.fields = append(c.fields, reeve.Field{Path: path, Message: m, Expected: expected})
}

// collectParameters records the parameters that the schema defines.
func (c *checker) collectParameters() {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	c.paramTypes, c.usedParams = map[string]string{}, map[string]bool{}
	if len(c.tool.Parameters) == 0 || json.Unmarshal(c.tool.Parameters, &schema) != nil {
		c.report("/parameters", "a JSON Schema of an object",
			invalidf("the parameter schema is not a valid JSON Schema object"))
		return
	}
	for name, raw := range schema.Properties {
		var p struct {
			Type json.RawMessage `json:"type"`
		}
		var typ string
		if json.Unmarshal(raw, &p) == nil && len(p.Type) > 0 && p.Type[0] == '"' {
			_ = json.Unmarshal(p.Type, &typ) // an invalid type is reported when the schema is compiled
		}
		c.paramTypes[name] = typ
		c.usedParams[name] = string(raw) == "false" // a false schema accepts no value
	}
	if _, ok := c.paramTypes[OperationArg]; ok {
		c.report("/parameters/properties/"+OperationArg, "another name", invalidf("%s is reserved for the operation id",
			OperationArg))
	}
	c.collectSettings()
	if c.tool.Effect.Mutates() {
		c.paramTypes[OperationArg] = "string" // a read has no operation
	}
}

// collectSettings records the settings that the config schema defines, as arguments.
func (c *checker) collectSettings() {
	for name, p := range settingsOf(c.tool) {
		if _, ok := c.paramTypes[configPrefix+name]; ok {
			c.report("/parameters/properties/"+configPrefix+name, "another name",
				invalidf("%s%s is reserved for a setting", configPrefix, name))
		}
		typ, _ := p.Type.(string)
		c.paramTypes[configPrefix+name] = typ
	}
}

// setting is a property of a config schema.
type setting struct {
	Type      any  `json:"type"`
	WriteOnly bool `json:"writeOnly"`
}

// settingsOf returns the settings that a tool's config schema defines.
func settingsOf(t reeve.Tool) map[string]setting {
	var schema struct {
		Properties map[string]setting `json:"properties"`
	}
	_ = json.Unmarshal(t.ConfigSchema, &schema) // an invalid schema is reported when it is compiled
	return schema.Properties
}
