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

// Builder makes tools of kind script: pure computation in a sandbox. A script finds the arguments as its global input,
// and what it comes to is the result. It can call nothing, so it changes nothing.
type Builder struct {
	Pool    *js.Pool
	checked sync.Map // hash of a source: why it cannot be read, nil if it can
}

// scriptSpec is the Spec of a script tool.
type scriptSpec struct {
	Source   string `json:"source"`
	Language string `json:"language,omitempty"`
}

// Build makes the tool's handler.
func (b *Builder) Build(t reeve.Tool) (reeve.Tool, error) {
	var spec scriptSpec
	d := json.NewDecoder(bytes.NewReader(t.Spec))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return t, misfit(err)
	}
	if spec.Language == "" {
		spec.Language = string(js.JavaScript)
	}
	if spec.Language != string(js.JavaScript) && spec.Language != string(js.TypeScript) {
		return t, reeve.InvalidField("/spec/language", "is not a language", "js or ts")
	}
	if t.Effect != reeve.Read {
		return t, reeve.InvalidField("/effect", "a script tool can call nothing, and so changes nothing", "read")
	}
	if err := b.check(spec); err != nil {
		return t, err
	}
	limit := js.Limits{Time: t.Timeout()}
	t.Handler = func(ctx context.Context, inv *reeve.Invocation) (any, error) {
		value, err := b.Pool.Run(ctx, js.Script{Source: spec.Source, Name: t.ID + "." + spec.Language,
			Language: js.Language(spec.Language), Input: inv.Args, Now: reeve.Now()}, limit, nobody{})
		var e *js.Error
		if errors.As(err, &e) {
			return nil, &reeve.Error{Code: reeve.CodeOf(err), Message: e.Error(), Err: err}
		}
		return value, err
	}
	return t, nil
}

// misfit says what is wrong with a spec that is not of the form of one.
func misfit(err error) error {
	var wrong *json.UnmarshalTypeError
	why := strings.TrimPrefix(err.Error(), "json: ")
	if errors.As(err, &wrong) {
		if why = "it is no object"; wrong.Field != "" {
			return reeve.InvalidField("/spec/"+wrong.Field, "is not text", "text")
		}
	}
	return reeve.InvalidField("/spec", "is not the spec of a script: "+why, `{"source": "...", "language": "js"}`)
}

// check reads a source once in the life of this process.
func (b *Builder) check(spec scriptSpec) error {
	key := reeve.Hash([]byte(spec.Language + "\x00" + spec.Source))
	if known, ok := b.checked.Load(key); ok {
		err, _ := known.(error) // nil is none
		return err
	}
	err := readable(context.Background(), b.Pool, spec.Source, spec.Language, "/spec/source")
	if err == nil || reeve.CodeOf(err) == reeve.Validation {
		b.checked.Store(key, err)
	}
	if reeve.CodeOf(err) != reeve.Validation {
		return nil // no worker now; the call will say so
	}
	return err
}
