package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// v1Rule is the rule for a parameter of OpenAI. A null value is the same as a missing parameter.
type v1Rule struct {
	supported bool
	allowed   []string // accepted values of an unsupported parameter in canonical JSON; empty: all, and ignored
}

var (
	v1Supported = v1Rule{supported: true}
	v1Ignored   = v1Rule{} // does not change the answer
)

// v1AllowOnly is the rule for an unsupported parameter. It accepts the values that mean the same as a missing
// parameter, and refuses all others.
func v1AllowOnly(values ...string) v1Rule { return v1Rule{allowed: values} }

// v1Refused is the rule for an unsupported parameter without such a value. Empty lists and objects are accepted.
var v1Refused = v1AllowOnly("[]", "{}")

// v1Common has the rules for parameters of both APIs.
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

	"prediction": v1Ignored, // affects only the speed

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

// checkV1Parameters returns an error for an unknown parameter, and for an unsupported one that would change the answer.
func checkV1Parameters(sent map[string]json.RawMessage, rules map[string]v1Rule) error {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if string(sent[name]) == "null" {
			continue
		}
		rule, known := rules[name]
		if !known {
			err := reeve.AsError(newV1Invalid(name, "unknown parameter %q", name))
			return &v1CodedError{code: "unknown_parameter", err: err.Hintf("omit it")}
		}
		if rule.supported || len(rule.allowed) == 0 {
			continue
		}
		value, err := canonjson.Canonical(sent[name])
		if err != nil {
			return reeve.InvalidJSON(err)
		}
		if !slices.Contains(rule.allowed, string(value)) {
			return newV1Unsupported(name, "parameter %s is not supported", name)
		}
	}
	return nil
}

// parseV1Stop parses the stop sequences: one text, or a list of up to four.
func parseV1Stop(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) > 4 {
		return nil, newV1Invalid("stop", "stop must be a text or a list of up to four texts")
	}
	if slices.Contains(list, "") {
		return nil, newV1Invalid("stop", "a stop text must not be empty")
	}
	return list, nil
}

// parseV1Effort checks the reasoning effort.
func parseV1Effort(effort, param string) (string, error) {
	if effort == "" || slices.Contains([]string{"low", "medium", "high"}, effort) {
		return effort, nil
	}
	return "", newV1Unsupported(param, "%s must be low, medium or high, not %q", param, effort)
}

// parseV1Metadata checks the metadata, an object of up to 16 texts that the response repeats.
func parseV1Metadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts map[string]string
	if json.Unmarshal(raw, &texts) != nil || len(texts) > 16 {
		return nil, newV1Invalid("metadata", "metadata must be an object of up to 16 texts")
	}
	for name, text := range texts {
		if len(name) > 64 || len(text) > 512 || strings.ContainsRune(name+text, 0) {
			return nil, newV1Invalid("metadata."+reeve.Truncate(name, 64),
				"names have up to 64 bytes, and texts up to 512")
		}
	}
	return raw, nil
}
