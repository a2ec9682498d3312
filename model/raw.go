package model

import "encoding/json"

// A part's Raw is an object with one field: the name of the provider that wrote it. Only that provider reads it.

// encodeRaw returns the Raw of a part.
func encodeRaw(provider string, v any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{provider: v})
	if err != nil {
		return nil // not reached: v was decoded from JSON
	}
	return raw
}

// decodeRaw returns the value that a provider wrote into a Raw, if that provider wrote it.
func decodeRaw(provider string, raw json.RawMessage) (json.RawMessage, bool) {
	var by map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &by) != nil {
		return nil, false
	}
	v, ok := by[provider]
	return v, ok
}

// argumentsObject returns the arguments of a call as a JSON object, which some providers require. It wraps any other
// value.
func argumentsObject(args json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(args, &o) == nil && o != nil {
		return args
	}
	raw, err := json.Marshal(map[string]string{"invalid_arguments": argumentsText(args)})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// argumentsText returns the arguments of a call as the model wrote them.
func argumentsText(args json.RawMessage) string {
	var text string
	if json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

// encodeArguments returns a model's arguments as JSON. Text that is not valid JSON becomes a JSON string, because
// answers are stored as JSON.
func encodeArguments(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}
