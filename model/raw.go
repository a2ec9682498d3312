package model

import "encoding/json"

// A part's Raw is an object with one field, named after the provider that wrote it: nobody else reads it.

// seal makes a part's Raw.
func seal(provider string, v any) json.RawMessage {
	raw, err := json.Marshal(map[string]any{provider: v})
	if err != nil {
		return nil // only what a provider sent as JSON is sealed
	}
	return raw
}

// unseal gives what a provider wrote, if it was this one.
func unseal(provider string, raw json.RawMessage) (json.RawMessage, bool) {
	var by map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &by) != nil {
		return nil, false
	}
	v, ok := by[provider]
	return v, ok
}

// object gives a call's arguments as the object that some providers insist on.
func object(args json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(args, &o) == nil && o != nil {
		return args
	}
	raw, err := json.Marshal(map[string]string{"invalid_arguments": written(args)})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return raw
}

// written gives a call's arguments as the text that the model wrote.
func written(args json.RawMessage) string {
	var text string
	if json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

// arguments keeps what a model wrote: JSON as it is, anything else as a string, because an answer is stored as JSON.
func arguments(text string) json.RawMessage {
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
