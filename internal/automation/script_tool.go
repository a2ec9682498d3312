package automation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"reeve"
	"reeve/internal/sandbox/js"
)

// ScriptToolBuilder builds tools of kind script: pure computation in a sandbox. The script finds the arguments in the
// global input, the agent's settings in the global config if the tool has a config schema, and its value is the result.
// It has no functions, so it cannot change anything.
type ScriptToolBuilder struct {
	Pool    *js.Pool
	checked sync.Map // by hash of a source: its syntax error, or nil
}

// scriptSpec is the Spec of a script tool.
type scriptSpec struct {
	Source   string `json:"source"`
	Language string `json:"language,omitempty"`
}

// Build sets the tool's handler. It fails if the spec, the effect or the source is invalid.
func (b *ScriptToolBuilder) Build(t reeve.Tool) (reeve.Tool, error) {
	var spec scriptSpec
	d := json.NewDecoder(bytes.NewReader(t.Spec))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return t, invalidSpec(err)
	}
	if spec.Language == "" {
		spec.Language = string(js.JavaScript)
	}
	if spec.Language != string(js.JavaScript) && spec.Language != string(js.TypeScript) {
		return t, reeve.InvalidField("/spec/language", "is not a supported language", "js or ts")
	}
	if t.Effect != reeve.Read {
		return t, reeve.InvalidField("/effect", "a script tool changes nothing, so its effect must be read", "read")
	}
	if err := b.check(spec); err != nil {
		return t, err
	}
	limit := js.Limits{Time: t.Timeout(), Compute: t.Timeout()}
	t.Handler = func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		value, err := b.Pool.Run(ctx, js.Script{Source: defineConfig(t, inv.Config) + spec.Source,
			Name: t.ID + "." + spec.Language, Language: js.Language(spec.Language), Input: inv.Args,
			Now: reeve.Now()}, limit, noFunctions{})
		var e *js.Error
		if errors.As(err, &e) {
			return nil, &reeve.Error{Code: reeve.CodeOf(err), Message: e.Error(), Err: err}
		}
		return value, err
	}
	return t, nil
}

// defineConfig returns a statement, on one line so that errors keep their lines, that sets the global config.
func defineConfig(t reeve.Tool, config json.RawMessage) string {
	if len(t.ConfigSchema) == 0 {
		return ""
	}
	if len(config) == 0 || string(config) == "null" {
		config = json.RawMessage(`{}`)
	}
	text, err := json.Marshal(string(config)) // escapes everything that could end the string
	if err != nil {
		return ""
	}
	return "globalThis.config = JSON.parse(" + string(text) + "); "
}

// invalidSpec returns the error for a spec that cannot be decoded.
func invalidSpec(err error) error {
	var wrong *json.UnmarshalTypeError
	why := strings.TrimPrefix(err.Error(), "json: ")
	if errors.As(err, &wrong) {
		if why = "it is not an object"; wrong.Field != "" {
			return reeve.InvalidField("/spec/"+wrong.Field, "is not text", "text")
		}
	}
	return reeve.InvalidField("/spec", "is not a script spec: "+why, `{"source": "...", "language": "js"}`)
}

// check checks the syntax of a source and caches the result for the life of the process. It accepts the source if no
// sandbox is available now; the call will then fail.
func (b *ScriptToolBuilder) check(spec scriptSpec) error {
	key := reeve.Hash([]byte(spec.Language + "\x00" + spec.Source))
	if known, ok := b.checked.Load(key); ok {
		err, _ := known.(error) // a nil error is stored as nil
		return err
	}
	err := checkSyntax(context.Background(), b.Pool, spec.Source, spec.Language, "/spec/source")
	if err == nil || reeve.CodeOf(err) == reeve.Validation {
		b.checked.Store(key, err)
	}
	if reeve.CodeOf(err) != reeve.Validation {
		return nil // no sandbox is available
	}
	return err
}
