package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// v1Rule says what becomes of a parameter of OpenAI's. Null is the same as leaving a parameter out.
type v1Rule struct {
	heeded bool
	only   []string // the values, in canonical JSON, that pass; others are refused. Empty: all pass, and are ignored
}

var (
	v1Heeded  = v1Rule{heeded: true}
	v1Ignored = v1Rule{} // it does not change the answer
)

// v1Only is for a parameter that cannot be heeded: the values that mean the same as leaving it out pass, and others are
// refused.
func v1Only(values ...string) v1Rule { return v1Rule{only: values} }

// v1Refused is for a parameter that cannot be heeded and has no such value.
var v1Refused = v1Only("[]", "{}")

// What both APIs know.
var v1Common = map[string]v1Rule{
	"model":               v1Heeded,
	"stream":              v1Heeded,
	"temperature":         v1Heeded,
	"top_p":               v1Heeded,
	"tools":               v1Heeded,
	"tool_choice":         v1Heeded,
	"parallel_tool_calls": v1Heeded,
	"metadata":            v1Heeded,

	"user":                   v1Ignored,
	"safety_identifier":      v1Ignored,
	"store":                  v1Ignored,
	"service_tier":           v1Ignored,
	"prompt_cache_key":       v1Ignored,
	"prompt_cache_options":   v1Ignored,
	"prompt_cache_retention": v1Ignored,

	"top_logprobs": v1Only("0"),
	"moderation":   v1Refused,
}

var v1ChatParameters = v1With(map[string]v1Rule{
	"messages":              v1Heeded,
	"n":                     v1Heeded,
	"max_tokens":            v1Heeded,
	"max_completion_tokens": v1Heeded,
	"stop":                  v1Heeded,
	"response_format":       v1Heeded,
	"stream_options":        v1Heeded,
	"reasoning_effort":      v1Heeded,

	"prediction": v1Ignored, // it makes answers faster, not other ones

	"frequency_penalty":  v1Only("0"),
	"presence_penalty":   v1Only("0"),
	"logit_bias":         v1Only("{}"),
	"logprobs":           v1Only("false"),
	"modalities":         v1Only(`["text"]`),
	"verbosity":          v1Only(`"medium"`),
	"functions":          v1Only("[]"),
	"function_call":      v1Refused,
	"audio":              v1Refused,
	"seed":               v1Refused,
	"web_search_options": v1Refused,
})

var v1ResponseParameters = v1With(map[string]v1Rule{
	"input":                v1Heeded,
	"instructions":         v1Heeded,
	"previous_response_id": v1Heeded,
	"max_output_tokens":    v1Heeded,
	"text":                 v1Heeded,
	"reasoning":            v1Heeded,
	"include":              v1Heeded,

	"stream_options": v1Ignored,
	"truncation":     v1Ignored,

	"background":         v1Only("false"),
	"context_management": v1Refused,
	"conversation":       v1Refused,
	"max_tool_calls":     v1Refused,
	"prompt":             v1Refused,
})

func v1With(rules map[string]v1Rule) map[string]v1Rule {
	maps.Copy(rules, v1Common)
	return rules
}

// v1CheckParameters refuses what is not known, and what would change the answer and cannot be heeded.
func v1CheckParameters(sent map[string]json.RawMessage, rules map[string]v1Rule) error {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if string(sent[name]) == "null" {
			continue
		}
		rule, known := rules[name]
		if !known {
			err := reeve.AsError(wrongV1(name, "there is no parameter %q", name))
			return &v1Fault{code: "unknown_parameter", err: err.Hintf("leave it out")}
		}
		if rule.heeded || len(rule.only) == 0 {
			continue
		}
		value, err := canonjson.Canonical(sent[name])
		if err != nil {
			return reeve.InvalidJSON(err)
		}
		if !slices.Contains(rule.only, string(value)) {
			return v1Unsupported(name, "the parameter %s is not supported", name)
		}
	}
	return nil
}

// v1Stop reads the texts that an answer stops at: one, or up to four.
func v1Stop(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) > 4 {
		return nil, wrongV1("stop", "stop is a text, or a list of up to four")
	}
	if slices.Contains(list, "") {
		return nil, wrongV1("stop", "a text to stop at cannot be empty")
	}
	return list, nil
}

// v1Effort reads how hard a model is to think.
func v1Effort(effort, param string) (string, error) {
	if effort == "" || slices.Contains([]string{"low", "medium", "high"}, effort) {
		return effort, nil
	}
	return "", v1Unsupported(param, "%s is low, medium or high, and not %q", param, effort)
}

// v1Metadata reads what a client wants to be shown again: up to 16 texts by name.
func v1Metadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts map[string]string
	if json.Unmarshal(raw, &texts) != nil || len(texts) > 16 {
		return nil, wrongV1("metadata", "metadata is an object of up to 16 texts")
	}
	for name, text := range texts {
		if len(name) > 64 || len(text) > 512 || strings.ContainsRune(name+text, 0) {
			return nil, wrongV1("metadata."+reeve.Truncate(name, 64),
				"a name has up to 64 characters, and a text up to 512")
		}
	}
	return raw, nil
}
