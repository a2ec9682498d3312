package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reeve"
)

// readClientFrame decodes what a client sent. It is strict: what is not understood is refused and not guessed at.
func readClientFrame(b []byte) (f reeve.ClientFrame, err error) {
	wrong := func(path, message, expected string) (reeve.ClientFrame, error) {
		return f, &reeve.Error{Code: reeve.Validation, Message: "the frame is not valid: " + strings.TrimSpace(path+" "+message),
			Hint: "docs/conversations.md says what frames look like", Fields: []reeve.Field{{Path: path, Message: message, Expected: expected}}}
	}
	v, err := reeve.ParseJSON(b)
	if err != nil {
		return wrong("", reeve.AsError(err).Message, "a JSON object with a type")
	}
	fields, _ := v.(map[string]any)
	for name := range fields { // which encoding/json would take in any case
		if strings.ToLower(name) != name {
			return wrong("/"+name, "is not known", "a field whose name is in small letters")
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			at := strings.TrimPrefix(strings.TrimPrefix(t.Field, "TurnRequest"), ".") // which a client knows nothing of
			return wrong("/"+strings.ReplaceAll(at, ".", "/"), "cannot be of type "+t.Value, "a "+t.Type.Kind().String())
		}
		return wrong("", strings.TrimPrefix(err.Error(), "json: "), "an object with the fields of its type")
	}
	if err := checkText(&f); err != nil {
		return f, err
	}
	need := func(path, value string) (reeve.ClientFrame, error) {
		if value == "" {
			return wrong(path, "is missing", "which one is meant")
		}
		return f, nil
	}
	switch f.Type {
	case reeve.ClientMessage:
		if strings.TrimSpace(f.Content) == "" && len(f.Attachments) == 0 {
			return wrong("/content", "is missing", "what you want to say, or an attachment")
		}
		if len(f.ID) > maxKey {
			return wrong("/id", "is too long", fmt.Sprintf("at most %d bytes", maxKey))
		}
	case reeve.ClientPing:
	case reeve.ClientCancel:
		return need("/turn_id", f.TurnID)
	case reeve.ClientApprove, reeve.ClientDeny:
		return need("/approval_id", f.ApprovalID)
	case "":
		return wrong("/type", "is missing", "message, ping, cancel, approve or deny")
	default:
		return wrong("/type", fmt.Sprintf("%q is not known", f.Type), "message, ping, cancel, approve or deny")
	}
	return f, nil
}
