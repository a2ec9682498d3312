package store

import (
	"context"

	"reeve"
)

// CancelRun cancels an open run and all runs that its calls started. It returns the cancelled runs, parents first. It
// increments the workspace's revision, so that a call that the gate has already decided on can no longer be recorded.
// The caller calls AppendEnd for the cancelled turns when all else is written.
func (t RunsTx) CancelRun(ctx context.Context, was reeve.Run, why *reeve.Error) ([]reeve.Run, error) {
	all := []reeve.Run{was}
	for i := 0; i < len(all); i++ {
		more, err := t.openChildren(ctx, all[i].ID)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	// A call locks the budgets before the workspace, so this must use the same order.
	if err := firstError(t.DeleteRunBudgets(ctx, all...), t.tx.IncrementRevision(ctx, was.WorkspaceID)); err != nil {
		return nil, err
	}
	return t.cancelTree(ctx, was, why)
}

// cancelTree cancels a run and its open children.
func (t RunsTx) cancelTree(ctx context.Context, was reeve.Run, why *reeve.Error) ([]reeve.Run, error) {
	is, err := t.cancelOne(ctx, was, why)
	if err != nil {
		return nil, err
	}
	ended := []reeve.Run{is}
	children, err := t.openChildren(ctx, was.ID)
	for _, child := range children {
		more, err := t.cancelTree(ctx, child, reeve.Errorf(reeve.Canceled, "the parent run has ended"))
		if err != nil && reeve.CodeOf(err) != reeve.Conflict { // the run has just ended
			return nil, err
		}
		ended = append(ended, more...)
	}
	return ended, err
}

// cancelOne cancels one run. It reads the run again, because its state or owner may have changed since the caller read
// it.
func (t RunsTx) cancelOne(ctx context.Context, was reeve.Run, why *reeve.Error) (is reeve.Run, err error) {
	was, ok, err := queryOne(ctx, t.Snap, scanRun,
		`UPDATE runs SET owner = owner WHERE id = $1 AND state IN ('running', 'parked') RETURNING `+runColumns, was.ID)
	if err == nil && !ok {
		err = reeve.Errorf(reeve.Conflict, "run has ended")
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
	// CancelAwaited has locked the calls; a call recorded later adds its cost by FinishAfterRun
	if is.Spent, err = t.RunSpent(ctx, was.ID); err != nil {
		return was, err
	}
	if err := t.TransitionRun(ctx, was, is); err != nil {
		return was, err
	}
	// the budget of a run that was inserted after CancelRun listed the runs
	if err := t.DeleteRunBudgets(ctx, was); err != nil || is.CallerOperationID == "" {
		return is, err
	}
	// Make the call that waits for this run due, so that the gate's loop completes it even if the caller does not.
	return is, t.tx.exec(ctx,
		`UPDATE calls SET next_attempt_at = $2 WHERE operation_id = $1 AND state = 'dispatched' AND owner = ''`,
		is.CallerOperationID, reeve.Millis(t.now))
}

// OpenRuns returns an agent's open runs.
func (s Runs) OpenRuns(ctx context.Context, workspace, agent string) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs
		WHERE workspace_id = $1 AND id IN (SELECT run_id FROM open_runs WHERE agent_id = $2 AND turn = 0 UNION ALL
		SELECT run_id FROM open_runs WHERE agent_id = $2 AND turn = 1)`, workspace, agent)
}

// ListOpenRuns returns the ids of up to limit open runs for a user.
func (s Runs) ListOpenRuns(ctx context.Context, workspace, user string, limit int) ([]string, error) {
	return queryAll(ctx, s.Snap, scanValue[string], `SELECT r.id FROM open_runs o JOIN runs r ON r.id = o.run_id
		WHERE r.workspace_id = $1 AND r.user_id = $2 LIMIT $3`, workspace, user, limit)
}

// cancelAgentRuns cancels all open runs of an agent and appends the ends of turns.
func (t RunsTx) cancelAgentRuns(ctx context.Context, workspace, agent, why string) error {
	open, err := t.OpenRuns(ctx, workspace, agent)
	if err != nil {
		return err
	}
	for _, was := range open {
		ended, err := t.CancelRun(ctx, was, reeve.Errorf(reeve.Canceled, "%s", why))
		if err != nil && reeve.CodeOf(err) != reeve.Conflict { // the run has just ended
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

// openChildren returns the open runs that a run's calls started.
func (s Runs) openChildren(ctx context.Context, run string) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanRun, `SELECT `+runColumns+
		` FROM runs WHERE id IN (SELECT run_id FROM open_runs WHERE parent_id = $1 AND parent_id <> '') ORDER BY id`,
		run)
}

// ResumesWithoutPerson reports whether a parked run will continue without a person, because it waits only for runs that
// will end or continue without a person.
func (s Runs) ResumesWithoutPerson(ctx context.Context, run reeve.Run) (bool, error) {
	if run.State != reeve.RunParked {
		return false, nil
	}
	waiting, err := s.Chat().OpenOperations(ctx, run.WorkspaceID, run.ID, 100)
	if err != nil {
		return false, err
	}
	for _, op := range waiting {
		child, hasRun, err := s.FindDelegatedRun(ctx, op.ID)
		unaided := hasRun && child.State != reeve.RunParked
		if err == nil && hasRun && !unaided {
			unaided, err = s.ResumesWithoutPerson(ctx, child)
		}
		if err != nil || !unaided {
			return false, err
		}
	}
	return true, nil
}

// FindDelegatedRun returns the run that an operation started and waits for. It returns false if there is none.
func (s Runs) FindDelegatedRun(ctx context.Context, operation string) (reeve.Run, bool, error) {
	return queryOne(ctx, s.Snap, scanRun, `SELECT `+runColumns+` FROM runs WHERE answers = $1 AND answers <> ''`,
		operation)
}

// EndedRuns returns which of the runs have ended.
func (s Runs) EndedRuns(ctx context.Context, runs []string) ([]string, error) {
	return queryIn(ctx, s.Snap, scanValue[string],
		`SELECT id FROM runs WHERE id IN (?) AND state NOT IN ('running', 'parked')`, runs)
}

// RunsActingFor returns which of the runs act on behalf of an agent, as ancestor or as delegator.
func (s Runs) RunsActingFor(ctx context.Context, agent string, runs []string) (map[string]bool, error) {
	acting := map[string]bool{}
	_, err := queryIn(ctx, s.Snap, func(r scanner) (none struct{}, err error) {
		var run reeve.Run
		defer wrapCorrupt("runs", &run.ID, &err)
		var ancestors, behalf string
		if err = r.Scan(&run.ID, &ancestors, &behalf); err == nil {
			err = decodeJSON("ancestors", ancestors, &run.Ancestors)
		}
		if err == nil {
			run.OnBehalfOf, err = decodeDelegators(behalf)
		}
		acting[run.ID] = run.ActsFor(agent)
		return none, err
	}, `SELECT id, ancestors, on_behalf_of FROM runs WHERE id IN (?) AND (ancestors <> '' OR on_behalf_of <> '')`, runs)
	return acting, err
}
