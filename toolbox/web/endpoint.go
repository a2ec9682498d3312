package web

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

const (
	defaultResponseBytes = 1 << 20
	mostResponseBytes    = 5 << 20
)

// The ways a body is written.
const (
	jsonBody = "json"
	formBody = "form"
	noBody   = "none"
)

// OperationArg is the name under which url, query and body may use the operation id, as if it were an argument. No
// parameter may have it.
const OperationArg = "operation_id"

// Endpoint is the Spec of a tool of kind http: the request to make of the arguments, and what to return of the answer.
type Endpoint struct {
	Method           string              `json:"method" enum:"GET,POST,PUT,PATCH,DELETE" doc:"The request's method"`
	URL              string              `json:"url" minLength:"8" maxLength:"4096" doc:"Scheme and host as they are; {arg} in path segments and query values is replaced by the argument, escaped; query values may hold ${secret:NAME}"`
	Headers          map[string]string   `json:"headers,omitempty" doc:"Sent as they are; values may hold ${secret:NAME}"`
	Query            map[string]string   `json:"query,omitempty" doc:"Query parameter to argument; a missing argument leaves the parameter out, a list repeats it"`
	Body             map[string]string   `json:"body,omitempty" doc:"Key or JSON Pointer in the body to argument. None means every argument that url and query do not use"`
	BodyType         string              `json:"body_type,omitempty" enum:"json,form,none" doc:"How the body is written; without it json for POST, PUT and PATCH, and for DELETE with a body"`
	Read             bool                `json:"read,omitempty" doc:"Says that a POST changes nothing, as a search or a query does; needed for effect read with POST"`
	Reads            map[string][]string `json:"reads,omitempty" doc:"Of an endpoint with methods: argument to the values with which a call changes nothing. A script may make such a call outside an item, and a dry run makes it"`
	Result           string              `json:"result,omitempty" doc:"JSON Pointer to the part of the answer to return; empty means all"`
	MaxResponseBytes int64               `json:"max_response_bytes,omitempty" minimum:"1" maximum:"5242880" default:"1048576" doc:"How much of the answer's body is read at the most"`
	PassTokens       bool                `json:"pass_tokens,omitempty" doc:"JSON Web Tokens in the answer keep their signature, as confirm links and page tokens need"`
	Verify           *Lookup             `json:"verify,omitempty" doc:"Of effect verifiable: the request that finds out what became of an earlier attempt"`
}

// Lookup is the request that tells whether an earlier attempt had its effect, by its status alone. A status in neither
// list cannot tell.
type Lookup struct {
	Method     string            `json:"method,omitempty" enum:"GET,HEAD" default:"GET" doc:"The request's method"`
	URL        string            `json:"url" minLength:"8" maxLength:"4096" doc:"As the endpoint's url; it must use {operation_id} or an argument, to say which attempt is meant"`
	Headers    map[string]string `json:"headers,omitempty" doc:"As the endpoint's headers, which are not sent here"`
	Applied    []int             `json:"applied,omitempty" doc:"Statuses that say it happened; none means 200"`
	NotApplied []int             `json:"not_applied,omitempty" doc:"Statuses that say it did not happen; none means 404"`
}

// withDefaults fills what a spec left unsaid.
func (e Endpoint) withDefaults() Endpoint {
	if e.MaxResponseBytes == 0 {
		e.MaxResponseBytes = defaultResponseBytes
	}
	if e.BodyType == "" {
		e.BodyType = noBody
		if len(e.Body) > 0 || e.Method == "POST" || e.Method == "PUT" || e.Method == "PATCH" {
			e.BodyType = jsonBody
		}
	}
	if e.Verify != nil {
		v := *e.Verify
		if v.Method == "" {
			v.Method = "GET"
		}
		if len(v.Applied) == 0 {
			v.Applied = []int{200}
		}
		if len(v.NotApplied) == 0 {
			v.NotApplied = []int{404}
		}
		e.Verify = &v
	}
	return e
}

// parseEndpoint reads a spec, strictly: a key that is not known is an error, also one in other case, which
// encoding/json lets pass.
func parseEndpoint(raw json.RawMessage) (Endpoint, []reeve.Field) {
	var e Endpoint
	v, err := canonjson.Parse(raw)
	if err != nil {
		return e, []reeve.Field{{Path: "/spec", Message: err.Error(), Expected: "a JSON object"}}
	}
	top, ok := v.(map[string]any)
	if !ok {
		return e, []reeve.Field{{Path: "/spec", Message: "the spec is not an object", Expected: "a JSON object"}}
	}
	f := unknownKeys("/spec", top, reflect.TypeFor[Endpoint]())
	if lookup, ok := top["verify"].(map[string]any); ok {
		f = append(f, unknownKeys("/spec/verify", lookup, reflect.TypeFor[Lookup]())...)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		var wrong *json.UnmarshalTypeError
		if !errors.As(err, &wrong) {
			return e, append(f, reeve.Field{Path: "/spec", Message: "the spec cannot be read"})
		}
		path := "/spec"
		if wrong.Field != "" {
			path += "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		f = append(f, reeve.Field{Path: path, Message: "a " + wrong.Value + " does not fit here",
			Expected: wrong.Type.String()})
	}
	return e, f
}

func unknownKeys(path string, object map[string]any, t reflect.Type) []reeve.Field {
	known := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known = append(known, name)
	}
	var f []reeve.Field
	for key := range object {
		if !slices.Contains(known, key) {
			f = append(f, reeve.Field{Path: path + "/" + canonjson.EscapePointer(key), Message: "there is no such setting",
				Expected: "one of " + strings.Join(known, ", ")})
		}
	}
	return f
}
