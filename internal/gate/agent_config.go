package gate

import (
	"encoding/json"
	"sync"

	"reeve"
)

// agentConfigSchema is the schema of an agent's config. One that cannot be made is a slip in this program.
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

// CheckAgentConfig validates an agent's config when it is set, and names every wrong path: a misspelt setting must not
// be found out by a run that does something else.
func CheckAgentConfig(config json.RawMessage) error {
	v, err := reeve.ParseJSON(config)
	if err != nil {
		return err
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return invalidField("/config", "an object", "an agent's config is an object")
	}
	deleteNulls(tree)
	if fields := agentConfigSchema().check(v, "/config"); len(fields) > 0 {
		return &reeve.Error{Code: reeve.Validation, Message: "the agent's config is not valid: " + describeFields(fields),
			Fields: fields,
			Hint:   "what is not Reeve's own goes under extension, by a namespace"}
	}
	_, err = reeve.ReadConfig(config)
	return err
}

// deleteNulls takes out what is null among the settings that are ours: programs write that for what they do not set.
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
