package automation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// Service performs what people ask for: it creates automations, saves and activates versions, starts, pauses and
// resumes runs, and resolves items.
type Service struct {
	Config
}

// NewService returns a service.
func NewService(cfg Config) *Service { return &Service{Config: cfg} }

// Save writes a version of an automation's script: the next major version, which becomes active. With Fix it is the
// next minor version of the active major version, which becomes active too. With Draft it is a draft, which does not.
// Save fails if the source has a syntax error.
func (s *Service) Save(ctx context.Context, workspace, id, user string,
	q reeve.ScriptRequest) (v reeve.ScriptVersion, err error) {
	if err := s.DB.View(ctx, func(snap *store.Snap) error {
		_, err := snap.Automations().GetAutomation(ctx, workspace, id)
		return err
	}); err != nil {
		return v, err
	}
	if err := s.checkRequest(ctx, &q); err != nil {
		return v, err
	}
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if v, err = s.insertVersion(ctx, tx, workspace, id, user, q); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, v)
	})
	return v, err
}

func (s *Service) insertVersion(ctx context.Context, tx *store.Tx, workspace, id, user string,
	q reeve.ScriptRequest) (v reeve.ScriptVersion, err error) {
	m, err := tx.Automations().LockAutomation(ctx, workspace, id)
	if err != nil {
		return v, err
	}
	if q.BaseVersion != "" && q.BaseVersion != m.Version {
		return v, newStaleScript(ctx, tx, m, q.BaseVersion)
	}
	major := -1
	switch {
	case q.Draft:
		major = 0
	case q.Fix:
		if m.ScriptID == "" {
			return v, reeve.Errorf(reeve.Conflict, "the automation has no active version to fix").
				Hintf("save a version first")
		}
		if major, _, err = reeve.ParseVersion(m.Version); err != nil {
			return v, err
		}
	}
	last, err := tx.Automations().LastVersion(ctx, m.AgentID, major)
	if err != nil {
		return v, err
	}
	v = reeve.ScriptVersion{ID: tx.NewID(reeve.PrefixScript), WorkspaceID: workspace, AgentID: m.AgentID,
		Major: last.Major + 1, Source: q.Source, Language: q.Language, Comment: q.Comment,
		CreatedBy: user, CreatedAt: tx.Now()}
	if q.Draft || q.Fix {
		v.Major, v.Minor = major, last.Minor+1
	}
	if err := tx.Automations().InsertScript(ctx, v); err != nil || q.Draft {
		return v, err
	}
	m.ScriptID = v.ID
	if err := s.clearScriptFailure(ctx, tx, m, v); err != nil {
		return v, err
	}
	return v, tx.Automations().PutAutomation(ctx, m)
}

// newStaleScript returns the error for a script that is based on a version which is no longer active.
func newStaleScript(ctx context.Context, tx *store.Tx, m reeve.Automation, base string) error {
	if m.Version == "" {
		return reeve.Errorf(reeve.Stale, "the script is based on version %s, but no version is active", base).
			Hintf("save it without base_version")
	}
	major, minor, err := reeve.ParseVersion(m.Version)
	if err != nil {
		return err
	}
	v, err := tx.Automations().GetVersion(ctx, m.AgentID, major, minor)
	if err != nil {
		return err
	}
	by := ""
	if v.CreatedBy != "" {
		by = " by " + v.CreatedBy
	}
	return reeve.Errorf(reeve.Stale, "the script is based on version %s, but version %s%s is active", base, m.Version,
		by).Hintf("compare it with version %s, then save it with base_version %s", m.Version, m.Version)
}

// clearScriptFailure ends a logic failure, because a person chose another version. Failures that a script cannot cause,
// such as a missing credential, remain.
func (s *Service) clearScriptFailure(ctx context.Context, tx *store.Tx, m reeve.Automation,
	v reeve.ScriptVersion) error {
	if m.Failure == nil || m.Failure.Class != reeve.LogicFailure {
		return nil
	}
	return clearFailure(ctx, tx, m.AgentID, "a person activated version "+v.Version())
}

// checkRequest fills the language and fails if the request is inconsistent or its source has a syntax error.
func (s *Service) checkRequest(ctx context.Context, q *reeve.ScriptRequest) error {
	if q.Language == "" {
		q.Language = string(js.JavaScript)
	}
	if q.Fix && q.Draft {
		return reeve.InvalidField("/fix", "cannot be combined with draft", "fix or draft")
	}
	return checkSyntax(ctx, s.Pool, q.Source, q.Language, "/source")
}

// checkSyntax fails if a source is empty, too long or has a syntax error. The error names the field at.
func checkSyntax(ctx context.Context, pool *js.Pool, source, language, at string) error {
	switch {
	case strings.TrimSpace(source) == "":
		return reeve.InvalidField(at, "is empty", "a script")
	case len(source) > reeve.MaxScriptSource:
		return reeve.InvalidField(at, "is too long", "at most 1 MiB")
	}
	const before = "(async()=>{" // a function that is never called: the source is parsed and not run
	_, err := pool.Run(ctx, js.Script{Source: before + source + "\n});0", Name: "script." + language,
		Language: js.Language(language)}, js.Limits{}, noFunctions{})
	var e *js.Error
	if errors.As(err, &e) && e.Kind == js.Syntax {
		if e.Line == 1 {
			e.Column = max(1, e.Column-len(before))
		}
		return &reeve.Error{Code: reeve.Validation, Message: e.Error(),
			Fields: []reeve.Field{{Path: at, Message: e.Error(), Expected: "JavaScript (ES2022) or TypeScript"}}}
	}
	return err
}

// noFunctions is the host of a script that can call nothing.
type noFunctions struct{}

func (noFunctions) Call(context.Context, string, []js.Arg) (json.RawMessage, error) {
	return nil, reeve.Errorf(reeve.Unsupported, "this script cannot call functions")
}
func (noFunctions) Log(string, string) {}

// isModelAgent reports whether an agent has instructions or runs, and so cannot become an automation.
func isModelAgent(ctx context.Context, tx *store.Tx, a reeve.Agent) (bool, error) {
	var set struct{ Instructions string }
	if len(a.Config) > 0 {
		if err := json.Unmarshal(a.Config, &set); err != nil {
			return false, err
		}
	}
	if set.Instructions != "" {
		return true, nil
	}
	runs, err := tx.Runs().ListRuns(ctx, a.WorkspaceID, store.RunFilter{Agent: a.ID, Limit: 1})
	return len(runs) > 0, err
}

// Create makes an automation of the agent with that name, or of a new agent. A given script becomes its first version.
func (s *Service) Create(ctx context.Context, workspace, user string, agent reeve.Agent,
	q reeve.AutomationRequest) (m reeve.Automation, err error) {
	if q.Source != "" {
		if err := s.checkRequest(ctx, &q.ScriptRequest); err != nil {
			return m, err
		}
	}
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.BeginRevision(ctx, workspace); err != nil { // serializes concurrent requests for the same name
			return err
		}
		a, err := tx.Agents().GetAgent(ctx, workspace, q.Name)
		if reeve.CodeOf(err) == reeve.NotFound {
			if err := reeve.CheckName(q.Name); err != nil {
				return err
			}
			a = agent
			a.ID, a.CreatedAt = tx.NewID(reeve.PrefixAgent), tx.Now()
			if err = tx.Agents().InsertAgent(ctx, a); err == nil {
				err = tx.Agents().StampAgent(ctx, a.ID)
			}
			if err == nil {
				err = tx.Queue().RecordPersonChange(ctx, workspace, a.ChangeTokens(reeve.EntityCreated),
					store.ChangeWindow)
			}
		}
		if err != nil {
			return err
		}
		if is, err := tx.Automations().IsAutomation(ctx, a.ID); err != nil {
			return err
		} else if is {
			return reeve.Errorf(reeve.AlreadyExists, "automation %q already exists", a.Name).
				Hintf("save a new version of its script")
		}
		if taken, err := isModelAgent(ctx, tx, a); err != nil {
			return err
		} else if taken {
			return reeve.Errorf(reeve.AlreadyExists, "%q is an agent with a model brain", a.Name).
				Hintf("choose another name for the automation; nothing was changed")
		}
		for _, id := range q.Tools {
			t, err := tx.Agents().GetTool(ctx, workspace, id)
			if err != nil {
				return err
			}
			// fails for a tool that requires settings
			if _, err := s.Settings.CheckConfig(t, nil); err != nil {
				return err
			}
			if err := tx.Agents().Attach(ctx, a, t, nil); err != nil {
				return err
			}
		}
		if err := tx.Automations().PutAutomation(ctx, reeve.Automation{AgentID: a.ID, WorkspaceID: workspace,
			Owner: user}); err != nil {
			return err
		}
		if q.Source != "" {
			if _, err := s.insertVersion(ctx, tx, workspace, a.ID, user, q.ScriptRequest); err != nil {
				return err
			}
		}
		if m, err = tx.Automations().GetAutomation(ctx, workspace, a.ID); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, m)
	})
	return m, err
}

// update changes an automation in one transaction and returns it.
func (s *Service) update(ctx context.Context, workspace, id string,
	f func(tx *store.Tx, m *reeve.Automation) error) (m reeve.Automation, err error) {
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		if m, err = tx.Automations().LockAutomation(ctx, workspace, id); err != nil {
			return err
		}
		if err := f(tx, &m); err != nil {
			return err
		}
		if err := tx.Automations().PutAutomation(ctx, m); err != nil {
			return err
		}
		if m, err = tx.Automations().GetAutomation(ctx, workspace, m.AgentID); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, m)
	})
	return m, err
}

// Activate makes a version the active one. It may be older than the active version. Items do not change.
func (s *Service) Activate(ctx context.Context, workspace, id, version string) (reeve.Automation, error) {
	major, minor, err := reeve.ParseVersion(version)
	if err != nil {
		return reeve.Automation{}, err
	}
	return s.update(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		if major == 0 {
			return reeve.Errorf(reeve.Conflict, "version %s is a draft and cannot become active", version).
				Hintf("save it as a version")
		}
		v, err := tx.Automations().GetVersion(ctx, m.AgentID, major, minor)
		if err != nil {
			return err
		}
		if v.ScriptJobID != "" && v.ID != m.ScriptID {
			if err := s.activatePlan(ctx, tx, *m, v); err != nil {
				return err
			}
		}
		m.ScriptID = v.ID
		return s.clearScriptFailure(ctx, tx, *m, v)
	})
}

// activatePlan checks that a version of the planner has been tried, starts its schedule and completes the schedules of
// other plans.
func (s *Service) activatePlan(ctx context.Context, tx *store.Tx, m reeve.Automation, v reeve.ScriptVersion) error {
	k, err := tx.Automations().GetScriptJob(ctx, m.WorkspaceID, v.ScriptJobID)
	if err != nil || k.Kind != reeve.PlanJob {
		return err
	}
	if ok, err := tx.Runs().IsTested(ctx, m.AgentID, v.ID); err != nil {
		return err
	} else if !ok {
		return reeve.Errorf(reeve.Conflict, "version %s was written by the planner and has not been tried",
			v.Version()).
			Hintf("preview it with: reeve automations run %s --plan --version %s", m.Name, v.Version())
	}
	if k.TimerID == "" {
		return nil
	}
	ended, err := completeOtherSchedules(ctx, tx, m, k.TimerID)
	if err != nil {
		return err
	}
	begun, err := s.activateSchedule(ctx, tx, m, k.TimerID)
	if err != nil {
		return err
	}
	return tx.Queue().RecordPersonChange(ctx, m.WorkspaceID, append(ended, begun...), store.ChangeWindow)
}

// completeOtherSchedules ends the active schedules of an automation's other plans. Each starts again when its version
// is activated.
func completeOtherSchedules(ctx context.Context, tx *store.Tx, m reeve.Automation,
	id string) (changed []reeve.Token, err error) {
	list, err := tx.Automations().PlannedTimers(ctx, m.AgentID)
	if err != nil {
		return nil, err
	}
	for _, other := range list {
		t, err := tx.Queue().GetTimer(ctx, m.WorkspaceID, "", other)
		if reeve.CodeOf(err) == reeve.NotFound || err == nil && t.State != reeve.TimerActive || other == id {
			continue // deleted, not active, or the schedule of this plan
		}
		if err != nil {
			return nil, err
		}
		t.State, t.NextAt = reeve.TimerCompleted, nil
		if err := tx.Queue().PutTimer(ctx, t); err != nil {
			return nil, err
		}
		if err := tx.Queue().SkipFirings(ctx, t.ID, "another plan was activated"); err != nil {
			return nil, err
		}
		changed = append(changed, t.Tokens()...)
	}
	return changed, nil
}

// activateSchedule starts the schedule of a plan, or restarts it after the activation of another plan completed it. A
// schedule that a person deleted, or paused after it began, stays so.
func (s *Service) activateSchedule(ctx context.Context, tx *store.Tx, m reeve.Automation,
	id string) ([]reeve.Token, error) {
	t, err := tx.Queue().GetTimer(ctx, m.WorkspaceID, "", id)
	over := t.State == reeve.TimerCompleted
	switch {
	case reeve.CodeOf(err) == reeve.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !over && (t.State != reeve.TimerPaused || t.LastAt != nil):
		return nil, nil
	}
	if t, _, err = s.Timers.Plan(t, tx.Now()); err != nil {
		if over && reeve.CodeOf(err) == reeve.Validation {
			return nil, nil // its only time has passed
		}
		return nil, err
	}
	if over {
		if err := s.Timers.CheckScheduleCount(ctx, tx, t); err != nil {
			return nil, err
		}
	}
	t.State = reeve.TimerActive
	return t.Tokens(), tx.Queue().PutTimer(ctx, t)
}
