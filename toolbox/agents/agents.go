// Package agents lets an agent call another: hand it a task of its own, or call it into the conversation.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reeve"
)

// Asker asks agents. It gives InProgress once the other has been asked: its answer is delivered when it has one.
type Asker interface {
	Delegate(ctx context.Context, inv *reeve.Invocation, to, input string, within time.Duration) error
	LoopIn(ctx context.Context, inv *reeve.Invocation, to, input string, within time.Duration) error
	// whether it is the name or id of an agent
	Exists(ctx context.Context, workspace, agent string) (bool, error)
	// whether it is one of a list of names and ids
	IsListed(ctx context.Context, workspace, agent string, list []string) (bool, error)
}

// Pack is the pack.
type Pack struct{ Asker Asker }

// asked is what both tools take.
type asked struct {
	Agent string `json:"agent" minLength:"1" maxLength:"128" doc:"Name or id of the agent"`
	Input string `json:"input" minLength:"1" maxLength:"200000" doc:"What it is to do, complete: of a task that is handed over it knows nothing else but what was attached to this turn"`
}

// settings is what an agent's attachment says.
type settings struct {
	Agents   []string `json:"agents,omitempty" maxItems:"200" doc:"The agents that may be called, by name or id; left out means any of the workspace"`
	TimeoutS int      `json:"timeout_s,omitempty" minimum:"1" maximum:"86400" doc:"How long an answer may take, in seconds. Default: 600"`
}

// defaultTimeout is how long an answer may take when the attachment does not say.
const defaultTimeout = 10 * time.Minute

// Tools gives delegate and loop_in.
func (p *Pack) Tools() []reeve.Tool {
	config, err := reeve.SchemaFor[settings]()
	if err != nil {
		panic(err) // a slip in this file
	}
	tool := func(id, name, what string, ask func(context.Context, *reeve.Invocation, string, string,
		time.Duration) error) reeve.Tool {
		return reeve.MustTool(reeve.Tool{ID: id, Name: name, Description: what, Category: "agents", Pack: "agents",
			Effect: reeve.Local, Risk: reeve.MediumRisk, ConfigSchema: config,
			Check: p.check, Settings: p.checkSettings, Awaits: true, TimeoutMS: 10_000},
			func(ctx context.Context, in asked) (string, error) {
				inv := reeve.InvocationFrom(ctx)
				set, err := read(inv.Config)
				if err != nil {
					return "", err
				}
				return "", ask(ctx, inv, in.Agent, in.Input, set.within())
			})
	}
	return []reeve.Tool{
		tool("delegate", "Delegate",
			"Hand a task to another agent. It works on it in a conversation of its own, knows nothing but the input "+
				"and what was attached to this turn, and its answer is the result.", p.Asker.Delegate),
		tool("loop_in", "Loop In",
			"Call another agent into this conversation. It sees what was said, answers everybody, and what it said "+
				"is the result.", p.Asker.LoopIn),
	}
}

func read(config json.RawMessage) (s settings, err error) {
	err = reeve.Settings("calls of other agents", config, &s)
	return s, err
}

func (s settings) within() time.Duration {
	if s.TimeoutS == 0 {
		return defaultTimeout
	}
	return time.Duration(s.TimeoutS) * time.Second
}

// checkSettings refuses a list with an agent that there is not.
func (p *Pack) checkSettings(ctx context.Context, inv *reeve.Invocation) error {
	set, err := read(inv.Config)
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
				fmt.Sprintf("is %q, and there is no such agent", agent), "the name or id of an agent")
		}
	}
	return nil
}

// check refuses agents that are not on the list of the one who calls. Whom those may call who led to the call is their
// affair: the rights of all of them bound the other's anyway.
func (p *Pack) check(ctx context.Context, inv *reeve.Invocation) error {
	if inv.CheckFor != "" {
		return nil
	}
	set, err := read(inv.Config)
	if err != nil {
		return err
	}
	var in asked
	if err := json.Unmarshal(inv.Args, &in); err != nil {
		return err
	}
	if set.Agents == nil {
		return nil
	}
	among, err := p.Asker.IsListed(ctx, inv.Workspace, in.Agent, set.Agents)
	if err == nil && !among {
		err = reeve.Errorf(reeve.Denied, "the agent %q may not be called from here", in.Agent).
			Hintf("these may: %s", strings.Join(set.Agents, ", "))
	}
	return err
}
