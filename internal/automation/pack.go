package automation

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// scriptsPack is the pack of the tools that read and write scripts. Only the planner and the maintainer have them;
// scripts never do.
const scriptsPack = "scripts"

// The capabilities that the tools need. By default only agents of the kinds planner and maintainer have them.
const (
	readCapability = "scripts.see"
	planCapability = "scripts.plan"
	fixCapability  = "scripts.fix"
)

var (
	readTools    = []string{"scripts_list", "scripts_get", "scripts_history", "scripts_runs", "scripts_eval"}
	plannerTools = append(readTools[:len(readTools):len(readTools)], "scripts_save", "scripts_schedule",
		"scripts_ask")
	maintainerTools = append(readTools[:len(readTools):len(readTools)], "scripts_fix")
)

// Pack holds the scripts_* tools, with which the planner and the maintainer read, try and write scripts.
type Pack struct {
	Config
	runner  *Runner // tries scripts
	stopper stopper
}

// NewPack returns the tools. They try scripts with the runner.
func NewPack(cfg Config, runner *Runner) *Pack {
	return &Pack{Config: cfg, runner: runner, stopper: stopper{webhook: cfg.Webhook}}
}

type noArgs struct{}

type versionArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Name or id. Default: the script job's automation"`
	Version    string `json:"version,omitempty" maxLength:"20" doc:"For example 1.0. Default: the active version, or else the newest"`
}

type runArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Name or id. Default: the script job's automation"`
	Run        string `json:"run,omitempty" maxLength:"64" doc:"Id of one run to show with its log. Default: the last 10 runs without logs"`
}

type evalArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Automation whose tools the script gets: name or id. Default: the script job's"`
	Source     string `json:"source" minLength:"1" maxLength:"1048576" doc:"Script to run. Its last expression is the value"`
	Language   string `json:"language,omitempty" enum:"js,ts"`
	Input      string `json:"input,omitempty" maxLength:"100000" doc:"JSON for the global input. Default in a repair: the failed run's input"`
}

type saveArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Name or id. Default: the script job's automation"`
	Source     string `json:"source" minLength:"1" maxLength:"1048576"`
	Language   string `json:"language,omitempty" enum:"js,ts"`
	Comment    string `json:"comment" minLength:"1" maxLength:"4000" doc:"One plain sentence for people: what the script does"`
}

type scheduleArgs struct {
	Automation   string `json:"automation,omitempty" maxLength:"128" doc:"Name or id. Default: the script job's automation"`
	CadenceType  string `json:"cadence_type" enum:"cron,once,interval"`
	CadenceValue string `json:"cadence_value" minLength:"1" maxLength:"200" doc:"cron: five fields, for example 0 7 * * 1-5. once: a time, for example 2026-03-01T07:00. interval: a duration, for example 2h"`
	Timezone     string `json:"timezone,omitempty" maxLength:"64" doc:"IANA zone, for example Europe/Berlin. Default: UTC"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never" doc:"When to notify the user of a run's result. Default: conditional, only if it has a result"`
}

type askArgs struct {
	Question string `json:"question" minLength:"1" maxLength:"4000" doc:"All your questions in one text"`
}

type fixArgs struct {
	Source  string `json:"source" minLength:"1" maxLength:"1048576" doc:"The whole repaired script"`
	Comment string `json:"comment" minLength:"1" maxLength:"4000" doc:"What was wrong and what you changed"`
}

const scriptJobOnly = " Only for script jobs; scripts cannot call it."

// Tools returns the tools of the pack.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what, capability string, effect reeve.Effect) reeve.Tool {
		note := " " + readText
		if effect.Mutates() {
			note = " Mutation."
		}
		return reeve.Tool{ID: id, Name: name, Description: what + scriptJobOnly + note, Category: "scripts",
			Pack:       scriptsPack,
			Capability: capability, Effect: effect, Risk: reeve.LowRisk, TimeoutMS: 10_000}
	}
	eval := tool("scripts_eval", "Try Script",
		"Run a script with an automation's tools, without changes. Use it to explore data and to test a script. "+
			"Reads are real; changes are previewed. Returns value or error, log, items and changes; time limit 1 "+
			"minute.",
		readCapability, reeve.Read)
	eval.TimeoutMS = 2 * trialTimeout.Milliseconds()
	save := tool("scripts_save", "Save Script",
		"Save an automation's script as its next major version. It runs only after a person activates it.",
		planCapability, reeve.Local)
	save.Check = p.checkSave
	fix := tool("scripts_fix", "Fix Script",
		"Save the repaired script as the next minor version and activate it. Fails if the script changes item "+
			"ids.", fixCapability, reeve.Local)
	fix.Check, fix.TimeoutMS = p.checkFix, 5*trialTimeout.Milliseconds()
	return []reeve.Tool{
		reeve.MustTool(tool("scripts_list", "List Scripts", "List the workspace's automations with version and status.",
			readCapability,
			reeve.Read), p.handleList),
		reeve.MustTool(tool("scripts_get", "Get Script",
			"Read a version of an automation's script, with its source and tools.", readCapability,
			reeve.Read), p.handleGet),
		reeve.MustTool(tool("scripts_history", "Script History",
			"List the versions of an automation's script with their comments, newest first.", readCapability,
			reeve.Read),
			p.handleHistory),
		reeve.MustTool(tool("scripts_runs", "Script Runs",
			"List an automation's last 10 runs with their results, or show one run with its log.", readCapability,
			reeve.Read),
			p.handleRuns),
		reeve.MustTool(eval, p.handleEval),
		reeve.MustTool(save, p.handleSave),
		reeve.MustTool(tool("scripts_schedule", "Schedule Script",
			"Set when the automation runs. The schedule starts when a person activates the version, or at once if "+
				"it is active.", planCapability, reeve.Local), p.handleSchedule),
		reeve.MustTool(tool("scripts_ask", "Ask the Person",
			"Ask the user who requested the automation. End your answer afterwards; you are called again with the "+
				"reply.",
			planCapability, reeve.Local), p.handleAsk),
		reeve.MustTool(fix, p.handleFix),
	}
}

// jobTarget returns the automation that a call names, or else the automation of its script job.
func jobTarget(ctx context.Context, s *store.Snap, inv *reeve.Invocation,
	name string) (m reeve.Automation, k reeve.ScriptJob, err error) {
	k, ok, err := s.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run)
	if err != nil {
		return m, k, err
	}
	if name == "" && !ok {
		return m, k, reeve.InvalidField("/automation", "is missing",
			"an automation's name, because this run has no script job")
	}
	if name == "" {
		name = k.AgentID
	}
	if m, err = s.Automations().GetAutomation(ctx, inv.Workspace, name); reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "automation %q not found", name).
			Hintf("list automations with scripts_list; a person creates one: reeve automations create NAME --tool TOOL")
	}
	return m, k, err
}

func (p *Pack) handleList(ctx context.Context, _ noArgs) (out any, err error) {
	err = p.DB.View(ctx, func(s *store.Snap) error {
		out, err = listAutomations(ctx, s, reeve.InvocationFrom(ctx).Workspace)
		return err
	})
	return out, err
}

func (p *Pack) handleGet(ctx context.Context, in versionArgs) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = p.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := jobTarget(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = describeVersion(ctx, s, m, in.Version)
		}
		return err
	})
	return out, err
}

func (p *Pack) handleHistory(ctx context.Context, in versionArgs) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = p.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := jobTarget(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = listVersions(ctx, s, m)
		}
		return err
	})
	return out, err
}

func (p *Pack) handleRuns(ctx context.Context, in runArgs) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = p.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := jobTarget(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = listRuns(ctx, s, m, in.Run)
		}
		return err
	})
	return out, err
}
