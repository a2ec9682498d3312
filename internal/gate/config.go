package gate

import (
	"encoding/json"
	"sync"

	"reeve"
	"reeve/internal/canonjson"
)

// agentConfig is the schema of an agent's config. One that cannot be made is a slip in this program.
var agentConfig = sync.OnceValue(func() *schema {
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
	v, err := canonjson.Parse(config)
	if err != nil {
		return reeve.InvalidJSON(err)
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return wrongField("/config", "an object", "an agent's config is an object")
	}
	forgetNulls(tree)
	if fields := agentConfig().check(v, "/config"); len(fields) > 0 {
		return &reeve.Error{Code: reeve.Validation, Message: "the agent's config is not valid: " + describe(fields),
			Fields: fields,
			Hint:   "what is not Reeve's own goes under extension, by a namespace"}
	}
	_, err = reeve.ReadConfig(config)
	return err
}

// forgetNulls takes out what is null among the settings that are ours: programs write that for what they do not set.
func forgetNulls(tree map[string]any) {
	for k, v := range tree {
		switch v := v.(type) {
		case nil:
			delete(tree, k)
		case map[string]any:
			if k == "rehearsal" {
				forgetNulls(v)
			}
		case []any:
			for _, step := range v {
				if m, ok := step.(map[string]any); ok && k == "steps" {
					forgetNulls(m)
				}
			}
		}
	}
}
