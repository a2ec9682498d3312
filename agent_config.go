package reeve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"reeve/internal/canonjson"
)

// AgentConfig is an agent's config: the settings of its brain, and extensions of other programs by namespace.
type AgentConfig struct {
	SchemaVersion    int                        `json:"schema_version,omitempty" minimum:"1"`
	Rehearsal        *Rehearsal                 `json:"rehearsal,omitempty" doc:"Fixed plan of calls to follow instead of a model"`
	Model            string                     `json:"model,omitempty" maxLength:"200" doc:"Default: the server's model"`
	Instructions     string                     `json:"instructions,omitempty" doc:"System prompt; {{name}} inserts a variable"`
	Variables        map[string]string          `json:"variables,omitempty" doc:"Default values of variables"`
	MaxModelRequests int                        `json:"max_model_requests,omitempty" minimum:"0" maximum:"200" doc:"Model requests per turn. Default: 25"`
	MaxTokens        int                        `json:"max_tokens,omitempty" minimum:"0" maximum:"1000000" doc:"Tokens per answer. Default: 4096"`
	Temperature      *float64                   `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	Effort           string                     `json:"effort,omitempty" enum:"low,medium,high"`
	RecentTurns      *int                       `json:"recent_turns,omitempty" minimum:"0" maximum:"200" doc:"Earlier turns to send. Default: 20"`
	ContextTokens    int                        `json:"context_tokens,omitempty" minimum:"0" maximum:"2000000" doc:"Tokens of notes, the agent's state, a summary and earlier turns. All but turns take at most a quarter each. Default: 32000"`
	Summaries        *bool                      `json:"summaries,omitempty" doc:"Summarize turns and runs that are no longer sent. Default: true"`
	ShowState        *bool                      `json:"show_state,omitempty" doc:"Show the agent its state slots. Default: true"`
	RecentRuns       *int                       `json:"recent_runs,omitempty" minimum:"0" maximum:"50" doc:"Outcomes of earlier runs to send to a run that is no turn. Default: 5"`
	RunMemoryTokens  int                        `json:"run_memory_tokens,omitempty" minimum:"0" maximum:"100000" doc:"Tokens of the outcomes of earlier runs. Default: 2000"`
	Notes            bool                       `json:"notes,omitempty" doc:"Take notes of each turn and recall relevant ones later. Default: false"`
	Assembly         string                     `json:"assembly,omitempty" maxLength:"128" doc:"Automation that assembles the prompt. Default: built in"`
	Extraction       string                     `json:"extraction,omitempty" maxLength:"128" doc:"Automation that takes notes. Default: the model"`
	Extension        map[string]json.RawMessage `json:"extension,omitempty" doc:"Objects of other programs by namespace, such as org.example.gym"`
}

// MaxRehearsalSteps is the maximum number of steps of a rehearsal.
const MaxRehearsalSteps = 1000

// Rehearsal is a fixed plan of calls that a run follows instead of a model.
type Rehearsal struct {
	Steps  []RehearsalStep `json:"steps,omitempty" maxItems:"1000" doc:"Steps in order"`
	Output string          `json:"output,omitempty" doc:"Output of the run"`
	Notify bool            `json:"notify,omitempty" doc:"Notify the user, if the policy is conditional"`
}

// RehearsalStep is one step of a rehearsal: a delay, then a call or a failure.
type RehearsalStep struct {
	Tool    string          `json:"tool,omitempty" maxLength:"128"`
	Args    json.RawMessage `json:"args,omitempty"`
	DelayMS int64           `json:"delay_ms,omitempty" minimum:"0" maximum:"86400000" doc:"Delay before the step"`
	Fail    string          `json:"fail,omitempty" doc:"Fail the run with this message"`
	Must    bool            `json:"must,omitempty" doc:"Fail the run if the call does not succeed"`
}

// ParseAgentConfig parses an agent's config and checks the rules that its JSON Schema cannot express.
func ParseAgentConfig(raw json.RawMessage) (c AgentConfig, err error) {
	if len(raw) == 0 {
		return c, nil
	}
	err = json.Unmarshal(raw, &c)
	if err != nil {
		if plain, bad := canonjson.Canonical(raw); bad == nil {
			err = json.Unmarshal(plain, &c) // canonical JSON writes 3.0 as 3
		}
	}
	if err != nil {
		return c, InvalidField("/config", "cannot be read: "+err.Error(), "a config that matches /openapi.json")
	}
	if c.MaxModelRequests == 0 { // schema version 100 stored the name max_moves
		var old struct {
			MaxMoves float64 `json:"max_moves"`
		}
		if json.Unmarshal(raw, &old) == nil {
			c.MaxModelRequests = int(old.MaxMoves)
		}
	}
	return c, c.validate()
}

func (c AgentConfig) validate() error {
	if err := checkVersion("/config", c.SchemaVersion); err != nil {
		return err
	}
	if c.Rehearsal != nil {
		if n := len(c.Rehearsal.Steps); n > MaxRehearsalSteps {
			return InvalidField("/config/rehearsal/steps", fmt.Sprintf("has %d steps", n),
				fmt.Sprintf("at most %d", MaxRehearsalSteps))
		}
		for i, s := range c.Rehearsal.Steps {
			at := "/config/rehearsal/steps/" + strconv.Itoa(i)
			switch args := bytes.TrimSpace(s.Args); {
			case s.Tool == "" && s.Fail == "":
				return InvalidField(at, "has neither a tool nor a failure", `either "tool" or "fail"`)
			case s.Tool != "" && s.Fail != "":
				return InvalidField(at, "has both a tool and a failure", `either "tool" or "fail"`)
			case len(args) > 0 && args[0] != '{' && string(args) != "null":
				return InvalidField(at+"/args", "is not an object", "an object with the tool's arguments")
			}
		}
	}
	return checkExtension("/config", c.Extension)
}

// RehearsalPlan returns the rehearsal with its default output. It has no steps if the config has no rehearsal.
func (c AgentConfig) RehearsalPlan() Rehearsal {
	var p Rehearsal
	if c.Rehearsal != nil {
		p = *c.Rehearsal
	}
	if p.Output == "" {
		p.Output = fmt.Sprintf("Rehearsed %d steps.", len(p.Steps))
	}
	return p
}
