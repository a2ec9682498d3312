package automation

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// scriptsPack is the pack of the tools that read and write scripts. Agents that plan and mend have them; scripts never
// do.
const scriptsPack = "scripts"

// The capabilities that the tools need. Only the kinds planner and maintainer have them, unless somebody says
// otherwise.
const (
	seeScripts  = "scripts.see"
	planScripts = "scripts.plan"
	fixScripts  = "scripts.fix"
)

var (
	lookTools    = []string{"scripts_list", "scripts_get", "scripts_history", "scripts_runs", "scripts_eval"}
	plannerTools = append(lookTools[:len(lookTools):len(lookTools)], "scripts_save", "scripts_schedule",
		"scripts_ask")
	maintainerTools = append(lookTools[:len(lookTools):len(lookTools)], "scripts_fix")
)

type nothing struct{}

type which struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Name or id; the one that the script job is about if left out"`
	Version    string `json:"version,omitempty" maxLength:"20" doc:"Such as 1.0; the active one if left out, and the newest if none is active"`
}

type whichRun struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Name or id; the one that the script job is about if left out"`
	Run        string `json:"run,omitempty" maxLength:"64" doc:"One run, with its log; the last ones if left out"`
}

type evalArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"Whose tools it has; the one that the script job is about if left out"`
	Source     string `json:"source" minLength:"1" maxLength:"1048576" doc:"JavaScript; its last expression is the value"`
	Language   string `json:"language,omitempty" enum:"js,ts"`
	Input      string `json:"input,omitempty" maxLength:"100000" doc:"JSON that the script finds as input; of a repair, what the failed run had if left out"`
}

type saveArgs struct {
	Automation string `json:"automation,omitempty" maxLength:"128" doc:"The one that the script job is about if left out"`
	Source     string `json:"source" minLength:"1" maxLength:"1048576"`
	Language   string `json:"language,omitempty" enum:"js,ts"`
	Comment    string `json:"comment" minLength:"1" maxLength:"4000" doc:"What it does, in a sentence a person understands"`
}

type scheduleArgs struct {
	Automation   string `json:"automation,omitempty" maxLength:"128" doc:"The one that the script job is about if left out"`
	CadenceType  string `json:"cadence_type" enum:"cron,once,interval"`
	CadenceValue string `json:"cadence_value" minLength:"1" maxLength:"200" doc:"cron: five fields, such as 0 7 * * 1-5; once: a time, such as 2026-03-01T07:00; interval: a span, such as 2h"`
	Timezone     string `json:"timezone,omitempty" maxLength:"64" doc:"IANA zone, such as Europe/Berlin; UTC if left out"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never" doc:"When to tell the person what a run came to; only when it came to something if left out"`
}

type askArgs struct {
	Question string `json:"question" minLength:"1" maxLength:"4000" doc:"All that you need to know, in one go"`
}

type fixArgs struct {
	Source  string `json:"source" minLength:"1" maxLength:"1048576" doc:"The whole script, mended"`
	Comment string `json:"comment" minLength:"1" maxLength:"4000" doc:"What was wrong, and what was changed"`
}

const inTask = " Only for planning and mending; a script cannot call it."

// Tools gives the pack.
func (r *Runner) Tools() []reeve.Tool {
	tool := func(id, name, what, capability string, effect reeve.Effect) reeve.Tool {
		note := " " + notMutation
		if effect.Mutates() {
			note = " Mutation."
		}
		return reeve.Tool{ID: id, Name: name, Description: what + inTask + note, Category: "scripts", Pack: scriptsPack,
			Capability: capability, Effect: effect, Risk: reeve.LowRisk, TimeoutMS: 10_000}
	}
	eval := tool("scripts_eval", "Try Script",
		"Run JavaScript with an automation's tools, without changing anything: reads are real, every change is "+
			"previewed and listed. Gives its value, log, items and changes.",
		seeScripts, reeve.Read)
	eval.TimeoutMS = 2 * trialTime.Milliseconds()
	save := tool("scripts_save", "Save Script",
		"Save an automation's script as its next major version. A person activates it.", planScripts, reeve.Local)
	save.Check = r.checkSaved
	fix := tool("scripts_fix", "Fix Script",
		"Save the mended script as the next minor version, which becomes active. Refused if it names items in "+
			"another way.", fixScripts, reeve.Local)
	fix.Check, fix.TimeoutMS = r.checkFix, 5*trialTime.Milliseconds()
	return []reeve.Tool{
		reeve.MustTool(tool("scripts_list", "List Scripts", "List the workspace's automations.", seeScripts,
			reeve.Read), r.toolList),
		reeve.MustTool(tool("scripts_get", "Get Script", "Read a version of an automation's script.", seeScripts,
			reeve.Read), r.toolGet),
		reeve.MustTool(tool("scripts_history", "Script History",
			"List the versions of an automation's script and what changed, newest first.", seeScripts, reeve.Read),
			r.toolHistory),
		reeve.MustTool(tool("scripts_runs", "Script Runs",
			"List an automation's last runs and how they ended, or show one with its log.", seeScripts, reeve.Read),
			r.toolRuns),
		reeve.MustTool(eval, r.toolEval),
		reeve.MustTool(save, r.toolSave),
		reeve.MustTool(tool("scripts_schedule", "Schedule Script",
			"Say when the automation runs by itself. It begins when a person activates the version, or at once if "+
				"that is active.", planScripts, reeve.Local), r.toolSchedule),
		reeve.MustTool(tool("scripts_ask", "Ask the Person",
			"Ask the person who wants the automation. End your answer after it: you are called again with the reply.",
			planScripts, reeve.Local), r.toolAsk),
		reeve.MustTool(fix, r.toolFix),
	}
}

// target is the automation that a call is about: the one it names, else the one of its script job.
func target(ctx context.Context, s *store.Snap, inv *reeve.Invocation,
	name string) (m reeve.Automation, k reeve.ScriptJob, err error) {
	k, ok, err := s.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run)
	if err != nil {
		return m, k, err
	}
	if name == "" && !ok {
		return m, k, reeve.InvalidField("/automation", "is missing", "an automation's name: this is no script job")
	}
	if name == "" {
		name = k.AgentID
	}
	if m, err = s.Automations().GetAutomation(ctx, inv.Workspace, name); reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "automation %q not found", name).
			Hintf("scripts_list lists them; a person makes one: reeve automations create NAME --tool TOOL")
	}
	return m, k, err
}

func (r *Runner) toolList(ctx context.Context, _ nothing) (out any, err error) {
	return r.listAll(ctx, reeve.InvocationFrom(ctx).Workspace)
}

func (r *Runner) listAll(ctx context.Context, workspace string) (any, error) {
	type row struct {
		Name    string                 `json:"name"`
		Version string                 `json:"version,omitempty"`
		Status  reeve.AutomationStatus `json:"status"`
	}
	list := []row{}
	err := r.DB.View(ctx, func(s *store.Snap) error {
		all, err := s.Automations().ListAutomations(ctx, workspace, "", 500)
		for _, m := range all {
			list = append(list, row{m.Name, m.Version, m.Status})
		}
		return err
	})
	return list, err
}

func (r *Runner) toolGet(ctx context.Context, in which) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = r.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := target(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = r.getVersion(ctx, s, m, in.Version)
		}
		return err
	})
	return out, err
}

// getVersion gives a version with what it may call.
func (r *Runner) getVersion(ctx context.Context, s *store.Snap, m reeve.Automation,
	version string) (out any, err error) {
	var v reeve.ScriptVersion
	switch {
	case version != "":
		var major, minor int
		if major, minor, err = reeve.ParseVersion(version); err == nil {
			v, err = s.Automations().GetVersion(ctx, m.AgentID, major, minor)
		}
	case m.ScriptID != "":
		v, err = s.Automations().GetScript(ctx, m.WorkspaceID, m.ScriptID)
	default:
		if v, err = s.Automations().LastVersion(ctx, m.AgentID, -1); err == nil && v.ID == "" {
			err = reeve.Errorf(reeve.NotFound, "the automation %q has no script yet", m.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	tools, err := s.Agents().ListAttachments(ctx, m.AgentID)
	ids := []string{}
	for _, t := range tools {
		ids = append(ids, t.Tool.ID)
	}
	return map[string]any{"automation": m.Name, "version": v.Version(), "active": v.ID == m.ScriptID,
		"language": v.Language, "comment": v.Comment, "tools": ids, "source": v.Source}, err
}

func (r *Runner) toolHistory(ctx context.Context, in which) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = r.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := target(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = r.history(ctx, s, m)
		}
		return err
	})
	return out, err
}

func (r *Runner) history(ctx context.Context, s *store.Snap, m reeve.Automation) (any, error) {
	type row struct {
		Version string `json:"version"`
		Active  bool   `json:"active,omitempty"`
		By      string `json:"by,omitempty"`
		Comment string `json:"comment,omitempty"`
		Created string `json:"created"`
	}
	list := []row{}
	all, err := s.Automations().ListVersions(ctx, m.AgentID, 50)
	for _, v := range all {
		list = append(list, row{v.Version(), v.ID == m.ScriptID, v.CreatedBy, v.Comment,
			v.CreatedAt.Format("2006-01-02 15:04")})
	}
	return map[string]any{"automation": m.Name, "status": m.Status, "versions": list, "failure": m.Failure}, err
}

func (r *Runner) toolRuns(ctx context.Context, in whichRun) (out any, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = r.DB.View(ctx, func(s *store.Snap) error {
		m, _, err := target(ctx, s, inv, in.Automation)
		if err == nil {
			out, err = r.runs(ctx, s, m, in.Run)
		}
		return err
	})
	return out, err
}

func (r *Runner) runs(ctx context.Context, s *store.Snap, m reeve.Automation, one string) (any, error) {
	type row struct {
		Run      string             `json:"run"`
		Type     reeve.RunType      `json:"type,omitempty"`
		Version  string             `json:"version,omitempty"`
		State    reeve.RunState     `json:"state"`
		Class    reeve.FailureClass `json:"class,omitempty"`
		Code     reeve.Code         `json:"code,omitempty"`
		Message  string             `json:"message,omitempty"`
		Output   string             `json:"output,omitempty"`
		Started  string             `json:"started"`
		Progress reeve.Progress     `json:"progress"`
		Log      string             `json:"log,omitempty"`
	}
	list := []row{}
	add := func(v reeve.Run, whole bool) error {
		note, _, err := s.Automations().FindScriptRunOf(ctx, m.WorkspaceID, v.ID)
		x := row{Run: v.ID, Type: note.Type, Version: note.Version, State: v.State, Class: note.Class, Code: v.Code,
			Message: reeve.Truncate(v.Message, 1000), Started: v.StartedAt.Format("2006-01-02 15:04:05"),
			Progress: note.Progress}
		if whole {
			x.Log, x.Output = note.Log, v.Output
		}
		list = append(list, x)
		return err
	}
	if one != "" {
		v, err := s.Runs().GetRun(ctx, m.WorkspaceID, one)
		if err == nil && v.AgentID != m.AgentID {
			err = reeve.Errorf(reeve.NotFound, "run %q not found", one)
		}
		if err != nil {
			return nil, err
		}
		err = add(v, true)
		return list, err
	}
	all, err := s.Runs().ListRuns(ctx, m.WorkspaceID, store.RunFilter{Agent: m.AgentID, Limit: 10})
	for i := 0; i < len(all) && err == nil; i++ {
		err = add(all[i], false)
	}
	return list, err
}

// consult answers the functions that a script has only while it is tried.
func (w *work) consult(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	var in struct{ Automation, Version, Run string }
	if input != nil && json.Unmarshal(input, &in) != nil {
		return nil, reeve.Errorf(reeve.Validation, "%s takes {automation, version, run}", name)
	}
	if in.Automation == "" {
		in.Automation = w.run.AgentID
	}
	var out any
	var err error
	if name == listScripts {
		out, err = w.listAll(ctx, w.run.WorkspaceID)
	} else {
		err = w.DB.View(ctx, func(s *store.Snap) error {
			m, err := s.Automations().GetAutomation(ctx, w.run.WorkspaceID, in.Automation)
			switch {
			case err != nil:
			case name == getScript:
				out, err = w.getVersion(ctx, s, m, in.Version)
			case name == scriptHistory:
				out, err = w.history(ctx, s, m)
			default:
				out, err = w.runs(ctx, s, m, in.Run)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
