package store

import (
	"context"

	"reeve"
)

// CancelRun ends a run that is under way, and the runs that its calls began: the run itself first. It touches the
// workspace, so that no call of any of them that was judged before can be recorded after. That a turn has ended is told
// by AppendEnd, when all else of it is.
func (t RunsTx) CancelRun(ctx context.Context, was reeve.Run, why *reeve.Error) ([]reeve.Run, error) {
	all := []reeve.Run{was}
	for i := 0; i < len(all); i++ {
		more, err := t.children(ctx, all[i].ID)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	// A call that draws on their budgets holds those first, and then the workspace.
	if err := first(t.DropRunBudgets(ctx, all...), t.tx.Touch(ctx, was.WorkspaceID)); err != nil {
		return nil, err
	}
	return t.cancelAll(ctx, was, why)
}

func (t RunsTx) cancelAll(ctx context.Context, was reeve.Run, why *reeve.Error) ([]reeve.Run, error) {
	is, err := t.cancel(ctx, was, why)
	if err != nil {
		return nil, err
	}
	ended := []reeve.Run{is}
	children, err := t.children(ctx, was.ID)
	for _, child := range children {
		more, err := t.cancelAll(ctx, child, reeve.Errorf(reeve.Canceled, "the run that called it was ended"))
		if err != nil && reeve.CodeOf(err) != reeve.Conflict { // which means that it has just ended
			return nil, err
		}
		ended = append(ended, more...)
	}
	return ended, err
}

// cancel ends one run, in whichever state and hands it is by now: whoever read it did not hold it, and it may have been
// parked or taken up since.
func (t RunsTx) cancel(ctx context.Context, was reeve.Run, why *reeve.Error) (is reeve.Run, err error) {
	was, ok, err := one(ctx, t.Snap, scanRun,
		`UPDATE runs SET owner = owner WHERE id = $1 AND state IN ('running', 'parked') RETURNING `+runColumns, was.ID)
	if err == nil && !ok {
		err = reeve.Errorf(reeve.Conflict, "the run has ended")
	}
	if err != nil {
		return was, err
	}
	is = was
	now := t.now
	is.State, is.FinishedAt, is.Owner, is.Code, is.Message = reeve.RunCancelled, &now, "", why.Code, why.Message
	if err := t.tx.Ledger().CancelAwaited(ctx, is); err != nil {
		return was, err
	}
	// when its calls are held: one that is recorded at this moment is counted here, or by Late
	if is.Spent, err = t.RunSpent(ctx, was.ID); err != nil {
		return was, err
	}
	if err := t.TransitionRun(ctx, was, is); err != nil {
		return was, err
	}
	// one that was begun just now has its own still
	if err := t.DropRunBudgets(ctx, was); err != nil || is.Answers == "" {
		return is, err
	}
	// Whoever ends a run tells the call that waits for it. Should one forget, the gate's loop looks at once.
	return is, t.tx.exec(ctx,
		`UPDATE calls SET next_attempt_at = $2 WHERE operation_id = $1 AND state = 'dispatched' AND owner = ''`,
		is.Answers, reeve.Millis(t.now))
}

// OpenRuns lists the runs of an agent that are under way.
func (s Runs) OpenRuns(ctx context.Context, workspace, agent string) ([]reeve.Run, error) {
	return all(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs
		WHERE workspace_id = $1 AND id IN (SELECT run_id FROM open_runs WHERE agent_id = $2 AND turn = 0 UNION ALL SELECT run_id FROM open_runs WHERE agent_id = $2 AND turn = 1)`, workspace, agent)
}

// cancelRuns ends every run of an agent that is under way.
func (t RunsTx) cancelRuns(ctx context.Context, workspace, agent, why string) error {
	open, err := t.OpenRuns(ctx, workspace, agent)
	if err != nil {
		return err
	}
	for _, was := range open {
		ended, err := t.CancelRun(ctx, was, reeve.Errorf(reeve.Canceled, "%s", why))
		if err != nil && reeve.CodeOf(err) != reeve.Conflict { // which means that it has just ended
			return err
		}
		for _, run := range ended {
			if err := t.tx.Chat().AppendEnd(ctx, run); err != nil {
				return err
			}
		}
	}
	return nil
}

// children lists the runs under way that a run's calls began.
func (s Runs) children(ctx context.Context, run string) ([]reeve.Run, error) {
	return all(ctx, s.Snap, scanRun, `SELECT `+runColumns+
		` FROM runs WHERE id IN (SELECT run_id FROM open_runs WHERE parent_id = $1 AND parent_id <> '') ORDER BY id`,
		run)
}

// ResumesUnaided tells whether a run that is parked goes on without anybody's word: everything it waits for is a run
// that does.
func (s Runs) ResumesUnaided(ctx context.Context, run reeve.Run) (bool, error) {
	if run.State != reeve.RunParked {
		return false, nil
	}
	waiting, err := s.Chat().OpenOperations(ctx, run.WorkspaceID, run.ID, 100)
	if err != nil {
		return false, err
	}
	for _, op := range waiting {
		child, begun, err := s.FindDelegatedRun(ctx, op.ID)
		on := begun && child.State != reeve.RunParked
		if err == nil && begun && !on {
			on, err = s.ResumesUnaided(ctx, child)
		}
		if err != nil || !on {
			return false, err
		}
	}
	return true, nil
}

// FindDelegatedRun reads the run that a call began and waits for; false means that there is none.
func (s Runs) FindDelegatedRun(ctx context.Context, operation string) (reeve.Run, bool, error) {
	return one(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE answers = $1 AND answers <> ''`, operation)
}

// EndedRuns tells which of some runs have ended.
func (s Runs) EndedRuns(ctx context.Context, runs []string) ([]string, error) {
	return among(ctx, s.Snap, value[string],
		`SELECT id FROM runs WHERE id IN (?) AND state NOT IN ('running', 'parked')`, runs)
}

// RunsActingFor tells which of some runs act on behalf of an agent: by a call of its own, or by what such a call left
// behind.
func (s Runs) RunsActingFor(ctx context.Context, agent string, runs []string) (map[string]bool, error) {
	led := map[string]bool{}
	_, err := among(ctx, s.Snap, func(r scanner) (none struct{}, err error) {
		var run reeve.Run
		defer wrapCorrupt("runs", &run.ID, &err)
		var ancestors, behalf string
		if err = r.Scan(&run.ID, &ancestors, &behalf); err == nil {
			err = decode("ancestors", ancestors, &run.Ancestors)
		}
		if err == nil {
			run.OnBehalfOf, err = delegatorsFrom(behalf)
		}
		led[run.ID] = run.ActsFor(agent)
		return none, err
	}, `SELECT id, ancestors, on_behalf_of FROM runs WHERE id IN (?) AND (ancestors <> '' OR on_behalf_of <> '')`, runs)
	return led, err
}
