package reeve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"reeve/internal/canonjson"
)

// AgentConfig is an agent's config: what is known of its brain, and what belongs to others, by namespace.
type AgentConfig struct {
	SchemaVersion int                        `json:"schema_version,omitempty" minimum:"1"`
	Rehearsal     *Rehearsal                 `json:"rehearsal,omitempty" doc:"A fixed plan of calls, instead of a model"`
	Model         string                     `json:"model,omitempty" maxLength:"200" doc:"Such as anthropic/claude-sonnet-4-5; the server's default if left out"`
	Instructions  string                     `json:"instructions,omitempty" doc:"Who the agent is and what it does; {{name}} is replaced by a variable"`
	Variables     map[string]string          `json:"variables,omitempty" doc:"Defaults of the variables"`
	MaxMoves      int                        `json:"max_moves,omitempty" minimum:"0" maximum:"200" doc:"How often the model is asked in one turn. Default: 25"`
	MaxTokens     int                        `json:"max_tokens,omitempty" minimum:"0" maximum:"1000000" doc:"Tokens of one answer. Default: 4096"`
	Temperature   *float64                   `json:"temperature,omitempty" minimum:"0" maximum:"2"`
	Effort        string                     `json:"effort,omitempty" enum:"low,medium,high"`
	RecentTurns   *int                       `json:"recent_turns,omitempty" minimum:"0" maximum:"200" doc:"Turns before this one that the model sees. Default: 20"`
	ContextTokens int                        `json:"context_tokens,omitempty" minimum:"0" maximum:"2000000" doc:"Tokens of earlier turns that the model sees. Default: 32000"`
	Summaries     bool                       `json:"summaries,omitempty" doc:"Have turns that the model no longer sees put into a few words by it, in the background, which it then sees instead. Default: no"`
	Notes         bool                       `json:"notes,omitempty" doc:"Remember the person: take notes of each turn that is over, and tell the model in later ones of those that may matter. Default: no"`
	Assembly      string                     `json:"assembly,omitempty" maxLength:"128" doc:"Name or id of the automation that makes what the model is asked at the beginning of a turn; the built-in way if left out"`
	Extraction    string                     `json:"extraction,omitempty" maxLength:"128" doc:"Name or id of the automation that takes notes of a turn that is over; if left out the model does, provided notes is true"`
	Extension     map[string]json.RawMessage `json:"extension,omitempty" doc:"By namespace, such as org.example.gym: an object that is kept as it is"`
}

// MaxSteps is how many steps a rehearsal may have.
const MaxSteps = 1000

// Rehearsal is a plan of calls that a run follows.
type Rehearsal struct {
	Steps  []RehearsalStep `json:"steps,omitempty" maxItems:"1000" doc:"In order"`
	Output string          `json:"output,omitempty" doc:"What the run says at the end"`
	Notify bool            `json:"notify,omitempty" doc:"Under a conditional policy: whether the person is told"`
}

// RehearsalStep is one step of a plan: a wait, then a call or a failure.
type RehearsalStep struct {
	Tool    string          `json:"tool,omitempty" maxLength:"128"`
	Args    json.RawMessage `json:"args,omitempty"`
	DelayMS int64           `json:"delay_ms,omitempty" minimum:"0" maximum:"86400000" doc:"Wait first"`
	Fail    string          `json:"fail,omitempty" doc:"End the run as failed, with these words"`
	Must    bool            `json:"must,omitempty" doc:"End the run as failed when the call does not succeed"`
}

// ReadConfig reads an agent's config and checks what its schema cannot say, by the path below /config.
func ReadConfig(raw json.RawMessage) (c AgentConfig, err error) {
	if len(raw) == 0 {
		return c, nil
	}
	err = json.Unmarshal(raw, &c)
	if err != nil {
		if plain, bad := canonjson.Canonical(raw); bad == nil {
			err = json.Unmarshal(plain, &c) // in which 3.0 is 3
		}
	}
	if err != nil {
		return c, InvalidField("/config", "cannot be read: "+err.Error(), "a config as /openapi.json has it")
	}
	return c, c.validate()
}

func (c AgentConfig) validate() error {
	if err := checkVersion("/config", c.SchemaVersion); err != nil {
		return err
	}
	if c.Rehearsal != nil {
		if n := len(c.Rehearsal.Steps); n > MaxSteps {
			return InvalidField("/config/rehearsal/steps", fmt.Sprintf("has %d steps", n),
				fmt.Sprintf("at most %d", MaxSteps))
		}
		for i, s := range c.Rehearsal.Steps {
			at := "/config/rehearsal/steps/" + strconv.Itoa(i)
			switch args := bytes.TrimSpace(s.Args); {
			case s.Tool == "" && s.Fail == "":
				return InvalidField(at, "is neither a call nor a failure", `a tool to call, or words in "fail"`)
			case s.Tool != "" && s.Fail != "":
				return InvalidField(at, "is a call and a failure", `a tool to call, or words in "fail"`)
			case len(args) > 0 && args[0] != '{' && string(args) != "null":
				return InvalidField(at+"/args", "is not an object", "an object with the tool's arguments")
			}
		}
	}
	return checkExtension("/config", c.Extension)
}

// Plan is the rehearsal with what it says at the end; an agent without one has no steps.
func (c AgentConfig) Plan() Rehearsal {
	var p Rehearsal
	if c.Rehearsal != nil {
		p = *c.Rehearsal
	}
	if p.Output == "" {
		p.Output = fmt.Sprintf("Rehearsed %d steps.", len(p.Steps))
	}
	return p
}
