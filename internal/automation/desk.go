package automation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// Save writes a version of an automation's script: the next major one, which becomes active; with Fix the next minor one of the
// active major version, which does too; with Draft one to be tried. A script that cannot be read is refused.
func (r *Room) Save(ctx context.Context, workspace, id, user string, q reeve.ScriptRequest) (v reeve.ScriptVersion, err error) {
	if err := r.DB.View(ctx, func(s *store.Snap) error {
		_, err := s.GetAutomation(ctx, workspace, id)
		return err
	}); err != nil {
		return v, err
	}
	if err := r.check(ctx, &q); err != nil {
		return v, err
	}
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		v, err = r.save(ctx, tx, workspace, id, user, q)
		return err
	})
	return v, err
}

func (r *Room) save(ctx context.Context, tx *store.Tx, workspace, id, user string, q reeve.ScriptRequest) (v reeve.ScriptVersion, err error) {
	m, err := tx.HoldAutomation(ctx, workspace, id)
	if err != nil {
		return v, err
	}
	major := -1
	switch {
	case q.Draft:
		major = 0
	case q.Fix:
		if m.ScriptID == "" {
			return v, reeve.Errorf(reeve.Conflict, "there is no active version to fix").Hintf("save one first")
		}
		if major, _, err = reeve.ParseVersion(m.Version); err != nil {
			return v, err
		}
	}
	last, err := tx.LastVersion(ctx, m.AgentID, major)
	if err != nil {
		return v, err
	}
	v = reeve.ScriptVersion{ID: tx.NewID(reeve.PrefixScript), WorkspaceID: workspace, AgentID: m.AgentID, Major: last.Major + 1, Source: q.Source, Language: q.Language, Comment: q.Comment,
		CreatedBy: user, CreatedAt: tx.Now()}
	if q.Draft || q.Fix {
		v.Major, v.Minor = major, last.Minor+1
	}
	if err := tx.InsertScript(ctx, v); err != nil || q.Draft {
		return v, err
	}
	m.ScriptID = v.ID
	if err := r.replaced(ctx, tx, m, v); err != nil {
		return v, err
	}
	return v, tx.PutAutomation(ctx, m)
}

// replaced notes that a person chose the version that runs: nobody need repair the one before, and failures count anew. A credential, or
// what else a script cannot help, is no better for it.
func (r *Room) replaced(ctx context.Context, tx *store.Tx, m reeve.Automation, v reeve.ScriptVersion) error {
	if m.Trouble == nil || m.Trouble.Class != reeve.LogicFailure {
		return nil
	}
	return r.wellAgain(ctx, tx, m.AgentID, "a person chose version "+v.Version()+" meanwhile")
}

// check refuses a script that cannot be one, or cannot be read.
func (r *Room) check(ctx context.Context, q *reeve.ScriptRequest) error {
	if q.Language == "" {
		q.Language = string(js.JavaScript)
	}
	if q.Fix && q.Draft {
		return reeve.Wrong("/fix", "cannot be said of a draft", "fix or draft")
	}
	return readable(ctx, r.Pool, q.Source, q.Language, "/source")
}

// readable refuses a source that cannot be read as a script.
func readable(ctx context.Context, pool *js.Pool, source, language, at string) error {
	switch {
	case strings.TrimSpace(source) == "":
		return reeve.Wrong(at, "is empty", "a script")
	case len(source) > reeve.MaxSource:
		return reeve.Wrong(at, "is too long", "at most 1 MiB")
	}
	const before = "(async()=>{" // inside a function that nobody calls, it is read and not run
	_, err := pool.Run(ctx, js.Script{Source: before + source + "\n});0", Name: "script." + language, Language: js.Language(language)}, js.Limits{}, nobody{})
	var e *js.Error
	if errors.As(err, &e) && e.Kind == js.Syntax {
		if e.Line == 1 {
			e.Column = max(1, e.Column-len(before))
		}
		return &reeve.Error{Code: reeve.Validation, Message: e.Error(), Fields: []reeve.Field{{Path: at, Message: e.Error(), Expected: "JavaScript (ES2022) or TypeScript"}}}
	}
	return err
}

// nobody answers no calls.
type nobody struct{}

func (nobody) Call(context.Context, string, []js.Arg) (json.RawMessage, error) {
	return nil, reeve.Errorf(reeve.Unsupported, "nothing can be called here")
}
func (nobody) Log(string, string) {}

// thinks tells whether an agent is somebody's already: it was told what to do, or has run.
func thinks(ctx context.Context, tx *store.Tx, a reeve.Agent) (bool, error) {
	var set struct{ Instructions string }
	if len(a.Config) > 0 {
		if err := json.Unmarshal(a.Config, &set); err != nil {
			return false, err
		}
	}
	if set.Instructions != "" {
		return true, nil
	}
	runs, err := tx.ListRuns(ctx, a.WorkspaceID, store.RunFilter{Agent: a.ID, Limit: 1})
	return len(runs) > 0, err
}

// Create makes an automation: of the agent of that name, or of a new one. With a script, that becomes its first version.
func (r *Room) Create(ctx context.Context, workspace, user string, agent reeve.Agent, q reeve.AutomationRequest) (m reeve.Automation, err error) {
	if q.Source != "" {
		if err := r.check(ctx, &q.ScriptRequest); err != nil {
			return m, err
		}
	}
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.GetAgent(ctx, workspace, q.Name)
		if reeve.CodeOf(err) == reeve.NotFound {
			if err := reeve.CheckName(q.Name); err != nil {
				return err
			}
			a = agent
			a.ID, a.CreatedAt = tx.NewID(reeve.PrefixAgent), tx.Now()
			if err = tx.InsertAgent(ctx, a); err == nil {
				err = tx.StampAgent(ctx, a.ID)
			}
		}
		if err != nil {
			return err
		}
		if is, err := tx.IsAutomation(ctx, a.ID); err != nil {
			return err
		} else if is {
			return reeve.Errorf(reeve.AlreadyExists, "the automation %q is there already", a.Name).Hintf("save a new version of it")
		}
		if taken, err := thinks(ctx, tx, a); err != nil {
			return err
		} else if taken {
			return reeve.Errorf(reeve.AlreadyExists, "%q is an agent that a model drives", a.Name).Hintf("give the automation a name of its own; nothing was changed")
		}
		for _, id := range q.Tools {
			t, err := tx.GetTool(ctx, workspace, id)
			if err != nil {
				return err
			}
			if err := tx.Attach(ctx, a, t, nil); err != nil {
				return err
			}
		}
		if err := tx.PutAutomation(ctx, reeve.Automation{AgentID: a.ID, WorkspaceID: workspace, Owner: user}); err != nil {
			return err
		}
		if q.Source != "" {
			if _, err := r.save(ctx, tx, workspace, a.ID, user, q.ScriptRequest); err != nil {
				return err
			}
		}
		m, err = tx.GetAutomation(ctx, workspace, a.ID)
		return err
	})
	return m, err
}

// change changes an automation in one transaction, and gives it as it is then.
func (r *Room) change(ctx context.Context, workspace, id string, f func(tx *store.Tx, m *reeve.Automation) error) (m reeve.Automation, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		if m, err = tx.HoldAutomation(ctx, workspace, id); err != nil {
			return err
		}
		if err := f(tx, &m); err != nil {
			return err
		}
		if err := tx.PutAutomation(ctx, m); err != nil {
			return err
		}
		m, err = tx.GetAutomation(ctx, workspace, m.AgentID)
		return err
	})
	return m, err
}

// Activate makes a version the one that runs: an older one too. The items stay as they are.
func (r *Room) Activate(ctx context.Context, workspace, id, version string) (reeve.Automation, error) {
	major, minor, err := reeve.ParseVersion(version)
	if err != nil {
		return reeve.Automation{}, err
	}
	return r.change(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		if major == 0 {
			return reeve.Errorf(reeve.Conflict, "version %s is a draft, which never becomes active", version).Hintf("save it")
		}
		v, err := tx.GetVersion(ctx, m.AgentID, major, minor)
		if err != nil {
			return err
		}
		if v.ErrandID != "" && v.ID != m.ScriptID {
			if err := r.started(ctx, tx, *m, v); err != nil {
				return err
			}
		}
		m.ScriptID = v.ID
		return r.replaced(ctx, tx, *m, v)
	})
}

// started activates what the planner wrote: it must have been tried, and its schedule begins. A schedule of an earlier plan ends.
func (r *Room) started(ctx context.Context, tx *store.Tx, m reeve.Automation, v reeve.ScriptVersion) error {
	k, err := tx.GetErrand(ctx, m.WorkspaceID, v.ErrandID)
	if err != nil || k.Kind != reeve.PlanErrand {
		return err
	}
	if ok, err := tx.Tried(ctx, m.AgentID, v.ID); err != nil {
		return err
	} else if !ok {
		return reeve.Errorf(reeve.Conflict, "version %s was written by the planner, and nobody has tried it", v.Version()).
			Hintf("see what it would do: reeve automations run %s --plan --version %s", m.Name, v.Version())
	}
	if k.TimerID == "" {
		return nil
	}
	list, err := tx.ListErrands(ctx, m.AgentID, 200)
	if err != nil {
		return err
	}
	var changed []reeve.Token
	for _, other := range list {
		if other.TimerID == "" || other.TimerID == k.TimerID {
			continue
		}
		t, err := tx.GetTimer(ctx, m.WorkspaceID, "", other.TimerID)
		if reeve.CodeOf(err) == reeve.NotFound {
			continue // it ended with an earlier one
		}
		if err != nil {
			return err
		}
		if err := tx.DeleteTimer(ctx, m.WorkspaceID, t.ID); err != nil {
			return err
		}
		changed = append(changed, t.Tokens()...)
	}
	t, err := tx.GetTimer(ctx, m.WorkspaceID, "", k.TimerID)
	if err != nil && reeve.CodeOf(err) != reeve.NotFound { // a person may have deleted it
		return err
	}
	if err == nil && t.State == reeve.TimerPaused && t.LastAt == nil {
		if t, _, err = r.Timers.Plan(t, tx.Now()); err != nil {
			return err
		}
		t.State = reeve.TimerActive
		if err := tx.PutTimer(ctx, t); err != nil {
			return err
		}
		changed = append(changed, t.Tokens()...)
	}
	return tx.Tell(ctx, m.WorkspaceID, changed, store.Window)
}

// Pause keeps an automation from making calls: a run under way ends at its next.
func (r *Room) Pause(ctx context.Context, workspace, id string) (reeve.Automation, error) {
	return r.change(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		if m.PausedAt == nil {
			now := tx.Now()
			m.PausedAt, m.PausedRun = &now, ""
		}
		return nil
	})
}

// Resume lets an automation go on. If a run was ended by the pause, another carries on with the same version, type and input.
func (r *Room) Resume(ctx context.Context, workspace, id, user string) (reeve.Automation, error) {
	m, err := r.change(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		if m.PausedRun != "" {
			if err := r.carryOn(ctx, tx, *m, user); err != nil {
				return err
			}
		}
		m.PausedAt, m.PausedRun = nil, ""
		if m.Trouble == nil || m.Trouble.StoppedAt == nil {
			return nil
		}
		return r.goOn(ctx, tx, *m, user)
	})
	if err == nil {
		r.Waker.Nudge()
	}
	return m, err
}

// carryOn begins a run that carries on with the one that a pause ended.
func (r *Room) carryOn(ctx context.Context, tx *store.Tx, m reeve.Automation, user string) error {
	run, err := tx.GetRun(ctx, m.WorkspaceID, m.PausedRun)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	note, _, err := tx.FindScriptRunOf(ctx, m.WorkspaceID, run.ID)
	if err != nil {
		return err
	}
	w, fresh, err := r.Waker.WakeIn(ctx, tx, m.WorkspaceID, m.AgentID, user, "resume:"+run.ID, run.Input)
	if err != nil || !fresh {
		return err
	}
	_, err = tx.InsertScriptRun(ctx, reeve.ScriptRun{RunKey: w.RunKey, WorkspaceID: w.WorkspaceID, AgentID: w.AgentID, ScriptID: note.ScriptID, Type: note.Type, PlanOf: note.PlanOf})
	return err
}

// goOn ends the trouble of an automation that was stopped, by a person's word, and begins a run that carries on with the one that failed.
func (r *Room) goOn(ctx context.Context, tx *store.Tx, m reeve.Automation, user string) error {
	if err := r.wellAgain(ctx, tx, m.AgentID, "a person resumed the automation"); err != nil || m.ScriptID == "" {
		return err
	}
	run, err := tx.GetRun(ctx, m.WorkspaceID, m.Trouble.RunID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if run.UserID == "" {
		run.UserID = user
	}
	return r.repeat(ctx, tx, run, reeve.Key("wake", string(reeve.ReasonRetry), "resumed", run.ID), tx.Now())
}

// Start asks for a run by hand.
func (r *Room) Start(ctx context.Context, workspace, id, user, key string, q reeve.AutomationRunRequest) (reeve.AutomationRun, error) {
	note := reeve.ScriptRun{Type: q.Type}
	if q.Type == "" {
		note.Type = reeve.ProductionRun
	}
	var m reeve.Automation
	err := r.DB.View(ctx, func(s *store.Snap) (err error) {
		if m, err = s.GetAutomation(ctx, workspace, id); err != nil {
			return err
		}
		note.ScriptID = m.ScriptID
		if q.Version != "" {
			major, minor, err := reeve.ParseVersion(q.Version)
			if err != nil {
				return err
			}
			v, err := s.GetVersion(ctx, m.AgentID, major, minor)
			if err != nil {
				return err
			}
			if note.ScriptID = v.ID; major == 0 && note.Type == reeve.ProductionRun {
				return reeve.Errorf(reeve.Conflict, "version %s is a draft", q.Version).Hintf("run it with type test or dry, or save it")
			}
		}
		switch {
		case note.ScriptID == "":
			return reeve.Errorf(reeve.Conflict, "the automation has no active version").Hintf("save one, or name a draft")
		case m.PausedAt != nil:
			return reeve.Errorf(reeve.Conflict, "the automation is paused").Hintf("resume it first")
		}
		return nil
	})
	if err != nil {
		return reeve.AutomationRun{}, err
	}
	return r.wake(ctx, workspace, m.AgentID, user, key, string(q.Input), note)
}

// Apply asks for a run that performs the plan of a dry run. A plan is applied once: whoever asks again, or at the same moment and is not the first, is shown the run that did.
func (r *Room) Apply(ctx context.Context, workspace, run, user string) (out reeve.AutomationRun, err error) {
	var note reeve.ScriptRun
	look := func(s *store.Snap) (err error) {
		note, out, err = applied(ctx, s, workspace, run)
		return err
	}
	if err := r.DB.View(ctx, look); err != nil || out.Again {
		return out, err
	}
	note.Type, note.PlanOf = reeve.ApplyRun, run
	if out, err = r.wake(ctx, workspace, note.AgentID, user, "apply:"+run, "", note); errors.Is(err, errApplied) {
		err = r.DB.Update(ctx, func(tx *store.Tx) error { return look(&tx.Snap) }) // which returns when what it has read is committed
	}
	return out, err
}

// errApplied is that another has applied a plan meanwhile.
var errApplied = errors.New("somebody else has just applied the plan")

// applied reads a plan that can be applied, and the run that has done so, if one has.
func applied(ctx context.Context, s *store.Snap, workspace, run string) (note reeve.ScriptRun, out reeve.AutomationRun, err error) {
	note, ok, err := s.FindScriptRunOf(ctx, workspace, run)
	if err == nil && (!ok || note.Type != reeve.DryRun) {
		err = reeve.Errorf(reeve.NotFound, "plan %q not found", run)
	}
	if err != nil {
		return note, out, err
	}
	if out.Script, out.Again, err = s.FindApplied(ctx, workspace, run); err != nil {
		return note, out, err
	}
	if out.Again {
		w, err := s.GetWake(ctx, out.Script.RunKey)
		out.Wake = &w
		return note, out, err
	}
	v, err := s.GetRun(ctx, workspace, run)
	if err == nil && v.State != reeve.RunCompleted {
		err = reeve.Errorf(reeve.Conflict, "the plan is not whole: its run is %s", v.State).Hintf("a plan is applied only if its dry run completed")
	}
	return note, out, err
}

// wake asks for a run, and notes what it is to be in the same transaction. Of one that applies a plan it tells whether it was asked for before.
func (r *Room) wake(ctx context.Context, workspace, agent, user, key, input string, note reeve.ScriptRun) (out reeve.AutomationRun, err error) {
	w, fresh, err := r.Waker.WakeWith(ctx, workspace, agent, user, key, input, func(tx *store.Tx, w reeve.Wake) error {
		if note.PlanOf != "" {
			if err := tx.HoldScriptRun(ctx, note.RunKey); err != nil { // where transactions overlap, another that applies it waits
				return err
			}
			if _, faster, err := tx.FindApplied(ctx, workspace, note.PlanOf); err != nil || faster {
				return cmp.Or(err, errApplied)
			}
		}
		_, err := tx.InsertScriptRun(ctx, reeve.ScriptRun{RunKey: w.RunKey, WorkspaceID: workspace, AgentID: agent, ScriptID: note.ScriptID, Type: note.Type, PlanOf: note.PlanOf})
		return err
	})
	if err != nil {
		return out, err
	}
	out.Wake, out.Again = &w, note.PlanOf != "" && !fresh
	err = r.DB.View(ctx, func(s *store.Snap) error {
		out.Script, _, err = s.FindScriptRun(ctx, w.RunKey)
		return err
	})
	return out, err
}
