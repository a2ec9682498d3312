package text

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/model"
)

type classifyArgs struct {
	Text         string   `json:"text" minLength:"1" maxLength:"1000000" doc:"Text to classify"`
	Labels       []string `json:"labels" minItems:"2" maxItems:"100" doc:"Labels to choose from, each different"`
	Multiple     bool     `json:"multiple,omitempty" doc:"True to choose all labels that fit, even none"`
	Instructions string   `json:"instructions,omitempty" maxLength:"8000" doc:"What the labels mean"`
}

type classifyResult struct {
	Label  string    `json:"label,omitempty" doc:"The label, unless multiple is set"`
	Labels *[]string `json:"labels,omitempty" doc:"With multiple: the labels, in the order of the arguments"`
}

const maxLabelBytes = 200

const classifyTask = "You classify a text. Answer with JSON of the form {\"labels\": [...]}, and with nothing else. "

// classify chooses labels for a text.
func (p *Pack) classify(ctx context.Context, in classifyArgs) (out classifyResult, err error) {
	seen := map[string]bool{}
	for _, l := range in.Labels {
		if strings.TrimSpace(l) == "" || len(l) > maxLabelBytes || seen[l] {
			return out, reeve.InvalidField("/labels", "has a label that is empty, too long or repeated",
				"different labels of 1 to 200 bytes")
		}
		seen[l] = true
	}
	votes := map[string]int{}
	for _, part := range splitText(in.Text, partBytes) {
		chosen, err := p.classifyPart(ctx, in, part)
		if err != nil {
			return out, err
		}
		for _, l := range chosen {
			votes[l]++
		}
	}
	all := []string{}
	for _, l := range in.Labels { // the first label wins a tie
		if votes[l] > votes[out.Label] {
			out.Label = l
		}
		if votes[l] > 0 {
			all = append(all, l)
		}
	}
	if in.Multiple {
		out = classifyResult{Labels: &all}
	}
	return out, nil
}

// classifyPart chooses labels for one part of a text.
func (p *Pack) classifyPart(ctx context.Context, in classifyArgs, part string) (chosen []string, err error) {
	labels, err := json.Marshal(in.Labels)
	if err != nil {
		return nil, err
	}
	rule, most := "Choose exactly one label.", 1
	if in.Multiple {
		rule, most = "Choose all labels that fit, or none.", len(in.Labels)
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "required": []string{"labels"},
		"additionalProperties": false, "properties": map[string]any{"labels": map[string]any{"type": "array",
			"items": map[string]any{"type": "string", "enum": in.Labels}}}})
	if err != nil {
		return nil, err
	}
	q := question{task: addInstructions(classifyTask+rule+"\n\nLabels:\n"+string(labels), in.Instructions),
		text: part, tokens: classifyTokens, format: &model.Format{Name: "labels", Schema: schema}}
	err = p.askChecked(ctx, q, func(text string) (string, error) {
		raw, ok := parseJSON(text)
		if !ok {
			return "it is not JSON", nil
		}
		fields, err := p.Schemas.CheckValue(schema, raw)
		if err != nil || len(fields) > 0 {
			return describeFields(fields), err
		}
		var a struct{ Labels []string }
		if err := json.Unmarshal(raw, &a); err != nil {
			return "it is not JSON of the form {\"labels\": [...]}", nil //nolint:nilerr // the model corrects it
		}
		if len(a.Labels) > most || len(a.Labels) == 0 && !in.Multiple {
			return "it must have exactly one label", nil
		}
		chosen = a.Labels
		return "", nil
	})
	return chosen, err
}
