package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reeve"
)

// v1Rule says what becomes of a parameter of OpenAI's. Null is the same as leaving a parameter out.
type v1Rule struct {
	supported bool
	allowed   []string // the values, in canonical JSON, that pass; others are refused. Empty: all pass, and are ignored
}

var (
	v1Supported  = v1Rule{supported: true}
	v1Ignored = v1Rule{} // it does not change the answer
)

// v1AllowOnly is for a parameter that cannot be heeded: the values that mean the same as leaving it out pass, and others are
// refused.
func v1AllowOnly(values ...string) v1Rule { return v1Rule{allowed: values} }

// v1Refused is for a parameter that cannot be heeded and has no such value.
var v1Refused = v1AllowOnly("[]", "{}")

// What both APIs know.
var v1Common = map[string]v1Rule{
	"model":               v1Supported,
	"stream":              v1Supported,
	"temperature":         v1Supported,
	"top_p":               v1Supported,
	"tools":               v1Supported,
	"tool_choice":         v1Supported,
	"parallel_tool_calls": v1Supported,
	"metadata":            v1Supported,

	"user":                   v1Ignored,
	"safety_identifier":      v1Ignored,
	"store":                  v1Ignored,
	"service_tier":           v1Ignored,
	"prompt_cache_key":       v1Ignored,
	"prompt_cache_options":   v1Ignored,
	"prompt_cache_retention": v1Ignored,

	"top_logprobs": v1AllowOnly("0"),
	"moderation":   v1Refused,
}

var v1ChatParameters = withCommonRules(map[string]v1Rule{
	"messages":              v1Supported,
	"n":                     v1Supported,
	"max_tokens":            v1Supported,
	"max_completion_tokens": v1Supported,
	"stop":                  v1Supported,
	"response_format":       v1Supported,
	"stream_options":        v1Supported,
	"reasoning_effort":      v1Supported,

	"prediction": v1Ignored, // it makes answers faster, not other ones

	"frequency_penalty":  v1AllowOnly("0"),
	"presence_penalty":   v1AllowOnly("0"),
	"logit_bias":         v1AllowOnly("{}"),
	"logprobs":           v1AllowOnly("false"),
	"modalities":         v1AllowOnly(`["text"]`),
	"verbosity":          v1AllowOnly(`"medium"`),
	"functions":          v1AllowOnly("[]"),
	"function_call":      v1Refused,
	"audio":              v1Refused,
	"seed":               v1Refused,
	"web_search_options": v1Refused,
})

var v1ResponseParameters = withCommonRules(map[string]v1Rule{
	"input":                v1Supported,
	"instructions":         v1Supported,
	"previous_response_id": v1Supported,
	"max_output_tokens":    v1Supported,
	"text":                 v1Supported,
	"reasoning":            v1Supported,
	"include":              v1Supported,

	"stream_options": v1Ignored,
	"truncation":     v1Ignored,

	"background":         v1AllowOnly("false"),
	"context_management": v1Refused,
	"conversation":       v1Refused,
	"max_tool_calls":     v1Refused,
	"prompt":             v1Refused,
})

func withCommonRules(rules map[string]v1Rule) map[string]v1Rule {
	maps.Copy(rules, v1Common)
	return rules
}

// checkV1Parameters refuses what is not known, and what would change the answer and cannot be heeded.
func checkV1Parameters(sent map[string]json.RawMessage, rules map[string]v1Rule) error {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if string(sent[name]) == "null" {
			continue
		}
		rule, known := rules[name]
		if !known {
			err := reeve.AsError(newV1Invalid(name, "there is no parameter %q", name))
			return &v1CodedError{code: "unknown_parameter", err: err.Hintf("leave it out")}
		}
		if rule.supported || len(rule.allowed) == 0 {
			continue
		}
		value, err := reeve.Canonical(sent[name])
		if err != nil {
			return err
		}
		if !slices.Contains(rule.allowed, string(value)) {
			return newV1Unsupported(name, "the parameter %s is not supported", name)
		}
	}
	return nil
}

// parseV1Stop reads the texts that an answer stops at: one, or up to four.
func parseV1Stop(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) > 4 {
		return nil, newV1Invalid("stop", "stop is a text, or a list of up to four")
	}
	if slices.Contains(list, "") {
		return nil, newV1Invalid("stop", "a text to stop at cannot be empty")
	}
	return list, nil
}

// parseV1Effort reads how hard a model is to think.
func parseV1Effort(effort, param string) (string, error) {
	if effort == "" || slices.Contains([]string{"low", "medium", "high"}, effort) {
		return effort, nil
	}
	return "", newV1Unsupported(param, "%s is low, medium or high, and not %q", param, effort)
}

// parseV1Metadata reads what a client wants to be shown again: up to 16 texts by name.
func parseV1Metadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts map[string]string
	if json.Unmarshal(raw, &texts) != nil || len(texts) > 16 {
		return nil, newV1Invalid("metadata", "metadata is an object of up to 16 texts")
	}
	for name, text := range texts {
		if len(name) > 64 || len(text) > 512 || strings.ContainsRune(name+text, 0) {
			return nil, newV1Invalid("metadata."+reeve.Truncate(name, 64),
				"a name has up to 64 characters, and a text up to 512")
		}
	}
	return raw, nil
}
