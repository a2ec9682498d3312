package automation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// What the maintainer does: fix.

// mending is a repair and what it is about.
type mending struct {
	job    reeve.ScriptJob
	m      reeve.Automation
	base   reeve.ScriptVersion
	run    reeve.Run // that failed
	behalf []reeve.Delegator
}

// checkFix refuses a fix that cannot be read, or that names items in another way than the version it mends. It compares
// what the two do, on the same data; nobody's word counts.
func (r *Runner) checkFix(ctx context.Context, inv *reeve.Invocation) error {
	in, err := reeve.Args[fixArgs](inv)
	if err != nil {
		return err
	}
	x := mending{behalf: inv.OnBehalfOf(false)}
	open := false
	err = r.DB.View(ctx, func(s *store.Snap) (err error) {
		if x.job, open, err = s.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run); err != nil || !open {
			return err
		}
		if open = x.job.Kind == reeve.RepairJob && x.job.State == reeve.ScriptJobOpen; !open {
			return nil // the handler says what is wrong
		}
		if x.m, err = s.Automations().GetAutomation(ctx, inv.Workspace, x.job.AgentID); err != nil {
			return err
		}
		if x.base, err = s.Automations().GetScript(ctx, inv.Workspace, x.job.ScriptID); err != nil {
			return err
		}
		x.run, err = s.Runs().GetRun(ctx, inv.Workspace, x.job.RunID)
		return err
	})
	if err != nil || !open {
		return err
	}
	if err := readable(ctx, r.Pool, in.Source, x.base.Language, "/source"); err != nil {
		return err
	}
	return r.compare(ctx, x, in.Source)
}

// compare runs the version that failed and its fix on the same data, under the same clock, without changing anything,
// and refuses the fix unless it works on every item that the old one worked on, by the same id. Where the old one came
// to its end, the fix may have no other items either. Where it failed before its first item, it is compared with the
// ledger: the fix is run on what the last run that worked on items had read, and must work on those.
func (r *Runner) compare(ctx context.Context, x mending, source string) error {
	heard := newTape()
	t := trial{automation: x.m, source: x.base.Source, language: x.base.Language, input: x.run.Input,
		user: x.run.UserID, like: &x.run, tape: heard, behalf: x.behalf}
	old, err := r.try(ctx, t)
	if err != nil {
		return err
	}
	t.source = source
	is, err := r.try(ctx, t)
	if err != nil {
		return err
	}
	if len(old.ids) == 0 && old.err != nil {
		return r.compareRecorded(ctx, x, t, is)
	}
	if err := covers(old.ids, is); err != nil {
		return err
	}
	for _, id := range is.ids {
		if old.err == nil && !slices.Contains(old.ids, id) {
			return identity("the script that it mends does not work on %q on the same data", id)
		}
	}
	return nil
}

// identity is the refusal of a fix that names items in another way.
func identity(format string, args ...any) error {
	return reeve.Errorf(reeve.Conflict, "Cannot repair: it would change item identity: "+format, args...).
		Hintf("leave the first argument of Items.withItem as it is; if that cannot be, save nothing and say so")
}

// covers refuses a fix that leaves out an item.
func covers(ids []string, is tried) error {
	for _, id := range ids {
		if slices.Contains(is.ids, id) {
			continue
		}
		has := "none"
		if n := len(is.ids); n > 0 {
			has = `"` + strings.Join(is.ids[:min(n, 5)], `", "`) + `"`
		}
		if is.err != nil {
			return identity("item %q is not reached; the fix works on %s and then fails: %s", id, has, is.err.Message)
		}
		return identity("item %q is gone; the fix works on %s", id, has)
	}
	return nil
}

// compareRecorded compares a fix with the ledger: with the items of the last run that worked on some.
func (r *Runner) compareRecorded(ctx context.Context, x mending, t trial, is tried) error {
	var past reeve.Run
	var ids []string
	var list []reeve.Message
	err := r.DB.View(ctx, func(s *store.Snap) error {
		l, err := s.Automations().ListItems(ctx, x.m.AgentID, reeve.ItemFilter{Limit: reeve.MaxItemLimit})
		if err != nil {
			return err
		}
		for _, v := range l.Items {
			if past.ID == "" && v.LastRun != "" {
				if past, err = s.Runs().GetRun(ctx, x.m.WorkspaceID, v.LastRun); err != nil &&
					reeve.CodeOf(err) != reeve.NotFound {
					return err
				}
			}
			if past.ID != "" && (v.LastRun == past.ID || v.FirstRun == past.ID) {
				ids = append(ids, v.ID)
			}
		}
		if past.ID != "" {
			list, err = s.Ledger().RunMessages(ctx, x.m.WorkspaceID, past.ID, "", mostHeard)
		}
		return err
	})
	if err != nil || len(ids) == 0 || covers(ids, is) == nil {
		return err // nothing has been done that could be done again, or all of it is found as it is now
	}
	if t.tape, err = r.recorded(ctx, x.m, list); err != nil {
		return err
	}
	t.like, t.input = &past, past.Input
	if is, err = r.try(ctx, t); err != nil {
		return err
	}
	return covers(ids, is)
}

// mostHeard is how many messages of a run are looked at for what it read.
const mostHeard = 5000

// recorded makes a tape of what a run read.
func (r *Runner) recorded(ctx context.Context, m reeve.Automation, list []reeve.Message) (*tape, error) {
	t := newTape()
	calls := map[string]string{}
	tools, err := r.Gate.CallableTools(ctx, reeve.Call{Workspace: m.WorkspaceID, Agent: m.AgentID})
	if err != nil {
		return nil, err
	}
	reads := map[string]bool{}
	for _, v := range tools {
		reads[v.ID] = !v.Effect.Mutates()
	}
	for _, v := range list {
		switch v.Kind {
		case reeve.Action:
			var info reeve.ActionInfo
			if err := json.Unmarshal(v.Metadata, &info); err != nil {
				return nil, err
			}
			if reads[info.Tool] && !info.Preview {
				calls[v.ID] = tapeKey(info.Tool, json.RawMessage(v.Content))
			}
		case reeve.ToolResult:
			var info reeve.ResultInfo
			if err := json.Unmarshal(v.Metadata, &info); err != nil {
				return nil, err
			}
			key, ok := calls[v.ActionID]
			if !ok || info.Status == "error" {
				continue
			}
			content := v.Content
			if info.Truncated {
				w := work{Runner: r, run: reeve.Run{WorkspaceID: m.WorkspaceID}}
				if content, err = w.whole(ctx, info.Hash); err != nil {
					return nil, err
				}
			}
			t.record(key, asJSON(content))
		case reeve.Observation, reeve.UserMessage, reeve.Thought, reeve.Summary, reeve.SystemNote:
		}
	}
	return t, nil
}

// fixed is what became of a fix.
type fixed struct {
	Applied bool   `json:"applied"`
	Version string `json:"version,omitempty"`
	Message string `json:"message"`
}

// toolFix saves a fix, if the version that it mends is still the one that counts: otherwise the fix is discarded. The
// automation goes on with it at once, where it had failed.
func (r *Runner) toolFix(ctx context.Context, in fixArgs) (out fixed, err error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return out, err
	}
	k, ok, err := tx.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run)
	if err == nil && (!ok || k.Kind != reeve.RepairJob) {
		err = reeve.Errorf(reeve.Denied, "there is no repair under way here")
	}
	if err != nil {
		return out, err
	}
	m, err := tx.Automations().LockAutomation(ctx, k.WorkspaceID, k.AgentID)
	if err != nil {
		return out, err
	}
	// as it is, now that nobody else changes it
	if k, err = tx.Automations().GetScriptJob(ctx, k.WorkspaceID, k.ID); err != nil {
		return out, err
	}
	base, err := tx.Automations().GetScript(ctx, k.WorkspaceID, k.ScriptID)
	if err != nil {
		return out, err
	}
	last, err := tx.Automations().LastVersion(ctx, m.AgentID, -1)
	if err != nil {
		return out, err
	}
	switch {
	case k.State != reeve.ScriptJobOpen:
		return fixed{Message: "Discarded: the repair is over: " + k.Message}, nil
	case last.Major > base.Major:
		return r.discard(ctx, tx, m, k, inv, "version "+last.Version()+" was saved meanwhile")
	case m.ScriptID != base.ID:
		return r.discard(ctx, tx, m, k, inv, "version "+m.Version+" is active by now")
	}
	return r.applyFix(ctx, tx, m, k, base, in, inv.OnBehalfOf(false))
}

// discard ends a repair that was overtaken. If the version that fails is still the active one, a person must choose.
func (r *Runner) discard(ctx context.Context, tx *store.Tx, m reeve.Automation, k reeve.ScriptJob,
	inv *reeve.Invocation, why string) (fixed, error) {
	k.State, k.Message = reeve.ScriptJobStale, why
	if _, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobOpen, k); err != nil {
		return fixed{}, err
	}
	out := fixed{Message: "Discarded: " + why + ". Stop here."}
	return out, r.unmended(ctx, tx, m, reeve.Run{ID: inv.Run, UserID: k.UserID}, k, "its script failed, and "+why, "")
}

func (r *Runner) applyFix(ctx context.Context, tx *store.Tx, m reeve.Automation, k reeve.ScriptJob,
	base reeve.ScriptVersion, in fixArgs,
	behalf []reeve.Delegator) (out fixed, err error) {
	last, err := tx.Automations().LastVersion(ctx, m.AgentID, base.Major)
	if err != nil {
		return out, err
	}
	v := reeve.ScriptVersion{ID: tx.NewID(reeve.PrefixScript), WorkspaceID: m.WorkspaceID, AgentID: m.AgentID,
		Major: base.Major, Minor: last.Minor + 1, Source: in.Source, Language: base.Language,
		Comment: in.Comment, CreatedBy: MaintainerKind, ScriptJobID: k.ID,
		OnBehalfOf: reeve.JoinDelegators(base.OnBehalfOf, behalf)}
	if err := tx.Automations().InsertScript(ctx, v); err != nil {
		return out, err
	}
	m.ScriptID = v.ID
	if err := tx.Automations().PutAutomation(ctx, m); err != nil {
		return out, err
	}
	k.State, k.ResultID, k.Message = reeve.ScriptJobDone, v.ID, in.Comment
	if moved, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobOpen, k); err != nil || !moved {
		return out, overtaken(err)
	}
	again := reeve.Key("wake", string(reeve.ReasonRetry), k.ID)
	if t := m.Failure; t != nil && t.ScriptJobID == k.ID {
		t.ScriptJobID, t.RetryKey = "", again
		if err := tx.Runs().PutFailure(ctx, *t); err != nil {
			return out, err
		}
	}
	run, err := tx.Runs().GetRun(ctx, k.WorkspaceID, k.RunID)
	if err != nil {
		return out, err
	}
	return fixed{Applied: true, Version: v.Version(), Message: "Saved and active. The automation goes on with it."},
		r.repeat(ctx, tx, run, again, tx.Now())
}
