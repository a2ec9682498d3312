// Package agents is the pack of tools with which an agent calls another agent.
//
// delegate gives a task to another agent in a new conversation. loop_in adds an agent to the current conversation. A
// waiting call is a row, not a goroutine: package internal/agent delivers the answer when the other run ends.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reeve"
)

// Asker starts runs of other agents. Delegate and LoopIn return an error of code InProgress once the run is started.
// The answer is delivered to the waiting call when that run ends.
type Asker interface {
	Delegate(ctx context.Context, inv *reeve.Invocation, to, input string, within time.Duration) error
	LoopIn(ctx context.Context, inv *reeve.Invocation, to, input string, within time.Duration) error
	// Exists reports whether agent is the name or id of an agent.
	Exists(ctx context.Context, workspace, agent string) (bool, error)
	// IsListed reports whether agent is in a list of names and ids.
	IsListed(ctx context.Context, workspace, agent string, list []string) (bool, error)
}

// Pack is the pack of tools that call agents.
type Pack struct{ Asker Asker }

// callArgs are the arguments of both tools.
type callArgs struct {
	Agent string `json:"agent" minLength:"1" maxLength:"128" doc:"Name or id of the agent"`
	Input string `json:"input" minLength:"1" maxLength:"200000" doc:"Complete instructions. The agent called by delegate sees nothing else, except the attachments of this turn"`
}

// settings are what an operator sets when attaching the tool.
type settings struct {
	Agents   []string `json:"agents,omitempty" maxItems:"200" doc:"Agents that may be called, by name or id. Default: any"`
	TimeoutS int      `json:"timeout_s,omitempty" minimum:"1" maximum:"86400" doc:"Seconds to wait for an answer. Default: 600"`
}

// defaultTimeout is how long a call waits for an answer unless timeout_s is set.
const defaultTimeout = 10 * time.Minute

// Tools returns delegate and loop_in.
func (p *Pack) Tools() []reeve.Tool {
	config, err := reeve.SchemaFor[settings]()
	if err != nil {
		panic(err) // cannot happen: settings is a valid struct
	}
	tool := func(id, name, what string, ask func(context.Context, *reeve.Invocation, string, string,
		time.Duration) error) reeve.Tool {
		return reeve.MustTool(reeve.Tool{ID: id, Name: name, Description: what, Category: "agents", Pack: "agents",
			Effect: reeve.Local, Risk: reeve.MediumRisk, ConfigSchema: config,
			Check: p.check, CheckSettings: p.checkSettings, AwaitsOutcome: true, TimeoutMS: 10_000},
			func(ctx context.Context, in callArgs) (string, error) {
				inv := reeve.InvocationFrom(ctx)
				set, err := readSettings(inv.Config)
				if err != nil {
					return "", err
				}
				return "", ask(ctx, inv, in.Agent, in.Input, set.timeout())
			})
	}
	return []reeve.Tool{
		tool("delegate", "Delegate",
			"Hand a task to another agent and wait for its answer. The other agent works in a new conversation. It "+
				"sees only the input and the files attached to this turn, so put everything it needs into the input. "+
				"Returns its answer.", p.Asker.Delegate),
		tool("loop_in", "Loop In",
			"Bring another agent into this conversation and wait for its answer. It sees the conversation so far, "+
				"and all participants see its answer. Returns its answer.", p.Asker.LoopIn),
	}
}

// readSettings decodes the settings of an attachment.
func readSettings(config json.RawMessage) (s settings, err error) {
	err = reeve.DecodeSettings("calls of other agents", config, &s)
	return s, err
}

// timeout returns how long a call waits for an answer.
func (s settings) timeout() time.Duration {
	if s.TimeoutS == 0 {
		return defaultTimeout
	}
	return time.Duration(s.TimeoutS) * time.Second
}

// checkSettings refuses a list that names an unknown agent.
func (p *Pack) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	set, err := readSettings(inv.Config)
	if err != nil {
		return err
	}
	for i, agent := range set.Agents {
		known, err := p.Asker.Exists(ctx, inv.Workspace, agent)
		if err != nil {
			return err
		}
		if !known {
			return reeve.InvalidField(fmt.Sprintf("/config/agents/%d", i),
				fmt.Sprintf("names the unknown agent %q", agent), "the name or id of an agent")
		}
	}
	return nil
}

// check refuses to call an agent that is not in the caller's list. It ignores the lists of the agents on whose behalf
// the caller acts, because their rights limit the other agent in any case.
func (p *Pack) check(ctx context.Context, inv *reeve.Invocation) error {
	if inv.CheckFor != "" {
		return nil
	}
	set, err := readSettings(inv.Config)
	if err != nil {
		return err
	}
	var in callArgs
	if err := json.Unmarshal(inv.Args, &in); err != nil {
		return err
	}
	if set.Agents == nil {
		return nil
	}
	listed, err := p.Asker.IsListed(ctx, inv.Workspace, in.Agent, set.Agents)
	if err == nil && !listed {
		err = reeve.Errorf(reeve.Denied, "agent %q is not in the list of agents that this agent may call", in.Agent).
			Hintf("call one of: %s", strings.Join(set.Agents, ", "))
	}
	return err
}
