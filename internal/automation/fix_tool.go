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

// repair is a repair job with the version and the run that failed.
type repair struct {
	job           reeve.ScriptJob
	automation    reeve.Automation
	failedVersion reeve.ScriptVersion
	failedRun     reeve.Run
	delegators    []reeve.Delegator
}

// checkFix fails if a fix has a syntax error or does not work on the same items as the version it repairs. It runs both
// scripts on the same data.
func (p *Pack) checkFix(ctx context.Context, inv *reeve.Invocation) error {
	in, err := reeve.Args[fixArgs](inv)
	if err != nil {
		return err
	}
	x := repair{delegators: inv.OnBehalfOf(false)}
	open := false
	err = p.DB.View(ctx, func(s *store.Snap) (err error) {
		if x.job, open, err = s.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run); err != nil || !open {
			return err
		}
		if open = x.job.Kind == reeve.RepairJob && x.job.State == reeve.ScriptJobOpen; !open {
			return nil // the handler returns the error
		}
		if x.automation, err = s.Automations().GetAutomation(ctx, inv.Workspace, x.job.AgentID); err != nil {
			return err
		}
		if x.failedVersion, err = s.Automations().GetScript(ctx, inv.Workspace, x.job.ScriptID); err != nil {
			return err
		}
		x.failedRun, err = s.Runs().GetRun(ctx, inv.Workspace, x.job.RunID)
		return err
	})
	if err != nil || !open {
		return err
	}
	if err := checkSyntax(ctx, p.Pool, in.Source, x.failedVersion.Language, "/source"); err != nil {
		return err
	}
	return p.compareItems(ctx, x, in.Source)
}

// compareItems runs the failed version and its fix on the same data and clock, without changes. The fix must work on
// every item of the failed version, by the same id. If the failed version completes, the fix must have no other items.
// If the failed version fails before its first item, the fix is compared with stored items: see compareWithLastRun.
func (p *Pack) compareItems(ctx context.Context, x repair, source string) error {
	heard := newRecording()
	t := trial{automation: x.automation, source: x.failedVersion.Source, language: x.failedVersion.Language,
		input: x.failedRun.Input,
		user:  x.failedRun.UserID, sameClock: &x.failedRun, recording: heard, delegators: x.delegators}
	old, err := p.runner.tryScript(ctx, t)
	if err != nil {
		return err
	}
	t.source = source
	is, err := p.runner.tryScript(ctx, t)
	if err != nil {
		return err
	}
	if len(old.ids) == 0 && old.err != nil {
		return p.compareWithLastRun(ctx, x, t, is)
	}
	if err := checkItemsCovered(old.ids, is); err != nil {
		return err
	}
	for _, id := range is.ids {
		if old.err == nil && !slices.Contains(old.ids, id) {
			return identityError("the failed script does not process item %q on the same data", id)
		}
	}
	return nil
}

// identityError is the refusal of a fix that changes item ids.
func identityError(format string, args ...any) error {
	return reeve.Errorf(reeve.Conflict, "Cannot repair: it would change item identity: "+format, args...).
		Hintf("keep the first argument of Items.withItem unchanged; if that is impossible, save nothing and say so")
}

// checkItemsCovered fails if the fix does not work on one of the items.
func checkItemsCovered(ids []string, is trialResult) error {
	for _, id := range ids {
		if slices.Contains(is.ids, id) {
			continue
		}
		has := "none"
		if n := len(is.ids); n > 0 {
			has = `"` + strings.Join(is.ids[:min(n, 5)], `", "`) + `"`
		}
		if is.err != nil {
			return identityError("item %q is not reached; the fix processes %s and then fails: %s", id, has,
				is.err.Message)
		}
		return identityError("item %q is missing; the fix processes %s", id, has)
	}
	return nil
}

// compareWithLastRun compares a fix with the items of the last run that worked on any. If those are not found in
// current data, the fix is run on the data that the last run read.
func (p *Pack) compareWithLastRun(ctx context.Context, x repair, t trial, is trialResult) error {
	var past reeve.Run
	var ids []string
	var list []reeve.Message
	err := p.DB.View(ctx, func(s *store.Snap) error {
		l, err := s.Automations().ListItems(ctx, x.automation.AgentID, reeve.ItemFilter{Limit: reeve.MaxItemLimit})
		if err != nil {
			return err
		}
		for _, v := range l.Items {
			if past.ID == "" && v.LastRun != "" {
				if past, err = s.Runs().GetRun(ctx, x.automation.WorkspaceID, v.LastRun); err != nil &&
					reeve.CodeOf(err) != reeve.NotFound {
					return err
				}
			}
			if past.ID != "" && (v.LastRun == past.ID || v.FirstRun == past.ID) {
				ids = append(ids, v.ID)
			}
		}
		if past.ID != "" {
			list, err = s.Ledger().RunMessages(ctx, x.automation.WorkspaceID, past.ID, "", maxRecordedMessages)
		}
		return err
	})
	if err != nil || len(ids) == 0 || checkItemsCovered(ids, is) == nil {
		return err // no stored items, or the fix finds all of them in current data
	}
	if t.recording, err = p.recordingOf(ctx, x.automation, list); err != nil {
		return err
	}
	t.sameClock, t.input = &past, past.Input
	if is, err = p.runner.tryScript(ctx, t); err != nil {
		return err
	}
	return checkItemsCovered(ids, is)
}

// maxRecordedMessages bounds the messages of a run that recordingOf reads.
const maxRecordedMessages = 5000

// recordingOf returns the results of a run's reads, from its messages.
func (p *Pack) recordingOf(ctx context.Context, m reeve.Automation, list []reeve.Message) (*recording, error) {
	t := newRecording()
	calls := map[string]string{}
	tools, err := p.Gate.CallableTools(ctx, reeve.Call{Workspace: m.WorkspaceID, Agent: m.AgentID})
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
				calls[v.ID] = recordingKey(info.Tool, json.RawMessage(v.Content))
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
				w := execution{Runner: p.runner, run: reeve.Run{WorkspaceID: m.WorkspaceID}}
				if content, err = w.readFullOutput(ctx, info.Hash); err != nil {
					return nil, err
				}
			}
			t.add(key, toJSON(content))
		case reeve.Observation, reeve.UserMessage, reeve.Thought, reeve.Summary, reeve.SystemNote:
		}
	}
	return t, nil
}

// fixResult is the result of scripts_fix.
type fixResult struct {
	Applied bool   `json:"applied"`
	Version string `json:"version,omitempty"`
	Message string `json:"message"`
}

// handleFix saves and activates a fix and enqueues a retry of the failed run. The fix is discarded if the version it
// repairs is no longer the active one.
func (p *Pack) handleFix(ctx context.Context, in fixArgs) (out fixResult, err error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return out, err
	}
	k, ok, err := tx.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run)
	if err == nil && (!ok || k.Kind != reeve.RepairJob) {
		err = reeve.Errorf(reeve.Denied, "this run has no repair job")
	}
	if err != nil {
		return out, err
	}
	m, err := tx.Automations().LockAutomation(ctx, k.WorkspaceID, k.AgentID)
	if err != nil {
		return out, err
	}
	// read again under the lock
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
		return fixResult{Message: "Discarded: the repair is closed: " + k.Message}, nil
	case last.Major > base.Major:
		return p.discardFix(ctx, tx, m, k, inv, "version "+last.Version()+" was saved meanwhile")
	case m.ScriptID != base.ID:
		return p.discardFix(ctx, tx, m, k, inv, "version "+m.Version+" is active now")
	}
	return p.applyFix(ctx, tx, m, k, base, in, inv.OnBehalfOf(false))
}

// discardFix closes an outdated repair. If the failed version is still active, the automation is stopped.
func (p *Pack) discardFix(ctx context.Context, tx *store.Tx, m reeve.Automation, k reeve.ScriptJob,
	inv *reeve.Invocation, why string) (fixResult, error) {
	k.State, k.Message = reeve.ScriptJobStale, why
	if _, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobOpen, k); err != nil {
		return fixResult{}, err
	}
	out := fixResult{Message: "Discarded: " + why + ". Stop here."}
	return out, p.stopper.stopUnrepaired(ctx, tx, m, reeve.Run{ID: inv.Run, UserID: k.UserID}, k,
		"its script failed and "+why, "")
}

func (p *Pack) applyFix(ctx context.Context, tx *store.Tx, m reeve.Automation, k reeve.ScriptJob,
	base reeve.ScriptVersion, in fixArgs,
	behalf []reeve.Delegator) (out fixResult, err error) {
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
		return out, jobClosed(err)
	}
	again := reeve.DeriveID("wake", string(reeve.ReasonRetry), k.ID)
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
	return fixResult{Applied: true, Version: v.Version(),
			Message: "Saved and active. The failed run is retried with it."},
		enqueueRetry(ctx, tx, run, again, tx.Now())
}
