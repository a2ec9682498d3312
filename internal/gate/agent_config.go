package gate

import (
	"encoding/json"
	"sync"

	"reeve"
	"reeve/internal/canonjson"
)

// agentConfigSchema is the schema of an agent's config. It panics if the schema is not valid, which is a programming
// error.
var agentConfigSchema = sync.OnceValue(func() *schema {
	text, err := reeve.SchemaFor[reeve.AgentConfig]()
	if err != nil {
		panic(err)
	}
	s, err := compile(text)
	if err != nil {
		panic(err)
	}
	return s
})

// CheckAgentConfig validates an agent's config. The error names every wrong path, so that a misspelt setting is found
// when the config is set and not during a run.
func CheckAgentConfig(config json.RawMessage) error {
	v, err := canonjson.Parse(config)
	if err != nil {
		return reeve.InvalidJSON(err)
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return invalidField("/config", "an object", "an agent's config must be an object")
	}
	deleteNulls(tree)
	if fields := agentConfigSchema().check(v, "/config"); len(fields) > 0 {
		return &reeve.Error{Code: reeve.Validation,
			Message: "the agent's config is not valid: " + describeFields(fields), Fields: fields,
			Hint: "put settings of your own under extension, in a namespace"}
	}
	_, err = reeve.ParseAgentConfig(config)
	return err
}

// deleteNulls removes null values from Reeve's own settings. Programs write null for settings that are not set.
func deleteNulls(tree map[string]any) {
	for k, v := range tree {
		switch v := v.(type) {
		case nil:
			delete(tree, k)
		case map[string]any:
			if k == "rehearsal" {
				deleteNulls(v)
			}
		case []any:
			for _, step := range v {
				if m, ok := step.(map[string]any); ok && k == "steps" {
					deleteNulls(m)
				}
			}
		}
	}
}
