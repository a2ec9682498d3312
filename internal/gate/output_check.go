package gate

import (
	"encoding/json"

	"reeve"
	"reeve/internal/canonjson"
)

// checkOutput returns what does not match the tool's output schema in a result. Text that is not JSON is a string.
func (e *entry) checkOutput(text string) []reeve.Field {
	if e.output == nil {
		return nil
	}
	v, err := canonjson.Parse(json.RawMessage(text))
	if err != nil {
		v = text
	}
	return e.output.check(v, "")
}

// withInvalidOutput returns the outcome of a call whose result does not match the tool's output schema. A read fails. A
// change has happened, so it stays a success and carries a warning.
func (a *Attempt) withInvalidOutput(o outcome, fields []reeve.Field) outcome {
	message := "the result does not match the tool's output_schema: " + fields[0].Path + " " + fields[0].Message
	if a.tool().Effect.Mutates() {
		o.warnings = append(o.warnings, reeve.Warning{Code: reeve.OutputInvalid, Message: message, Fields: fields})
		return o
	}
	return a.newFailure(refused, &reeve.Error{Code: reeve.ToolFailed, Message: message, Fields: fields,
		Hint: "correct the tool or its output_schema"})
}
