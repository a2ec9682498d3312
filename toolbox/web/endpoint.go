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
	maxResponseBytes     = 5 << 20
)

// The ways a body is written.
const (
	// Body types.
	jsonBody = "json"
	formBody = "form"
	noBody   = "none"
)

// OperationArg is the name under which url, query and body can use the operation id like an argument. No parameter may
// have this name.
const OperationArg = "operation_id"

// Endpoint is the Spec of a tool of kind http. It describes the request to build from the arguments and the part of the
// response to return.
type Endpoint struct {
	Method string `json:"method" enum:"GET,POST,PUT,PATCH,DELETE" doc:"Request method"`
	URL    string `json:"url" minLength:"8" maxLength:"4096" doc:"Absolute URL. {arg} in path segments and query values is replaced by the escaped argument, and {{config.NAME}} by the agent's setting; query values may contain ${secret:NAME}"`

	Headers  map[string]string `json:"headers,omitempty" doc:"Headers to send. Values may contain ${secret:NAME} and {{config.NAME}}"`
	Query    map[string]string `json:"query,omitempty" doc:"Maps query parameters to arguments, or to settings as config.NAME. A parameter whose argument is missing is omitted; a list repeats the parameter"`
	Body     map[string]string `json:"body,omitempty" doc:"Maps keys or JSON Pointers of the body to arguments, or to settings as config.NAME. Default: all arguments that url and query do not use"`
	BodyType string            `json:"body_type,omitempty" enum:"json,form,none" doc:"Format of the body. Default: json for POST, PUT and PATCH, and for DELETE with body"`

	Read  bool                `json:"read,omitempty" doc:"True if the POST changes nothing, such as a search; required for effect read with POST"`
	Reads map[string][]string `json:"reads,omitempty" doc:"Maps an argument to the values with which a call changes nothing. Scripts may make such calls outside items, and dry runs make them"`

	Result           string `json:"result,omitempty" doc:"JSON Pointer to the part to return. Default: the whole body"`
	MaxResponseBytes int64  `json:"max_response_bytes,omitempty" minimum:"1" maximum:"5242880" default:"1048576"`
	PassTokens       bool   `json:"pass_tokens,omitempty" doc:"True to return JSON Web Tokens with their signature, which confirmation links and page tokens need"`

	Verify *Lookup `json:"verify,omitempty" doc:"For effect verifiable: request that finds the outcome of an attempt"`
}

// Lookup is the request that finds out whether an earlier attempt had its effect. Only the status of the response
// counts. A status in neither list leaves the outcome unknown.
type Lookup struct {
	Method     string            `json:"method,omitempty" enum:"GET,HEAD" default:"GET" doc:"Request method"`
	URL        string            `json:"url" minLength:"8" maxLength:"4096" doc:"Like the url of the endpoint; must use {operation_id} or an argument to identify the attempt"`
	Headers    map[string]string `json:"headers,omitempty" doc:"Headers of this request. The headers of the endpoint are not sent"`
	Applied    []int             `json:"applied,omitempty" doc:"Statuses that prove the effect. Default: 200"`
	NotApplied []int             `json:"not_applied,omitempty" doc:"Statuses that disprove the effect. Default: 404"`
}

// withDefaults fills in unset fields.
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

// parseEndpoint decodes a spec. Unknown keys are errors, including keys that differ only in case, which encoding/json
// accepts.
func parseEndpoint(raw json.RawMessage) (Endpoint, []reeve.Field) {
	var e Endpoint
	v, err := canonjson.Parse(raw)
	if err != nil {
		return e, []reeve.Field{{Path: "/spec", Message: err.Error(), Expected: "a JSON object"}}
	}
	top, ok := v.(map[string]any)
	if !ok {
		return e, []reeve.Field{{Path: "/spec", Message: "spec is not an object", Expected: "a JSON object"}}
	}
	f := unknownKeys("/spec", top, reflect.TypeFor[Endpoint]())
	if lookup, ok := top["verify"].(map[string]any); ok {
		f = append(f, unknownKeys("/spec/verify", lookup, reflect.TypeFor[Lookup]())...)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		var wrong *json.UnmarshalTypeError
		if !errors.As(err, &wrong) {
			return e, append(f, reeve.Field{Path: "/spec", Message: "spec cannot be decoded"})
		}
		path := "/spec"
		if wrong.Field != "" {
			path += "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		f = append(f, reeve.Field{Path: path, Message: "a " + wrong.Value + " is not allowed here",
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
			f = append(f, reeve.Field{Path: path + "/" + canonjson.EscapePointer(key), Message: "unknown setting",
				Expected: "one of " + strings.Join(known, ", ")})
		}
	}
	return f
}
