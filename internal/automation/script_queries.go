package automation

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

func listAutomations(ctx context.Context, s *store.Snap, workspace string) (any, error) {
	type row struct {
		Name    string                 `json:"name"`
		Version string                 `json:"version,omitempty"`
		Status  reeve.AutomationStatus `json:"status"`
	}
	list := []row{}
	all, err := s.Automations().ListAutomations(ctx, workspace, "", 500)
	for _, m := range all {
		list = append(list, row{m.Name, m.Version, m.Status})
	}
	return list, err
}

// describeVersion returns a version with its source and the tools it may call.
func describeVersion(ctx context.Context, s *store.Snap, m reeve.Automation, version string) (out any, err error) {
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
			err = reeve.Errorf(reeve.NotFound, "automation %q has no script yet", m.Name)
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

func listVersions(ctx context.Context, s *store.Snap, m reeve.Automation) (any, error) {
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

func listRuns(ctx context.Context, s *store.Snap, m reeve.Automation, one string) (any, error) {
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

// queryScripts implements the Scripts functions.
func (w *execution) queryScripts(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	var in struct{ Automation, Version, Run string }
	if input != nil && json.Unmarshal(input, &in) != nil {
		return nil, reeve.Errorf(reeve.Validation, "%s accepts {automation, version, run}", name)
	}
	if in.Automation == "" {
		in.Automation = w.run.AgentID
	}
	var out any
	err := w.DB.View(ctx, func(s *store.Snap) error {
		if name == listScripts {
			var err error
			out, err = listAutomations(ctx, s, w.run.WorkspaceID)
			return err
		}
		m, err := s.Automations().GetAutomation(ctx, w.run.WorkspaceID, in.Automation)
		switch {
		case err != nil:
		case name == getScript:
			out, err = describeVersion(ctx, s, m, in.Version)
		case name == scriptHistory:
			out, err = listVersions(ctx, s, m)
		default:
			out, err = listRuns(ctx, s, m, in.Run)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}
