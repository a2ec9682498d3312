package wake

import (
	"context"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// pendingEnd is the end of a run that is not recorded yet.
type pendingEnd struct {
	run  reeve.Run
	end  reeve.RunEnd
	done chan error
}

// recordEnd records the end of a run and returns when the record is durable. It calls onPending as soon as the end is
// queued. Concurrent callers share transactions: the caller that gets the recorder slot records all pending ends.
func (r *Scheduler) recordEnd(ctx context.Context, run reeve.Run, end reeve.RunEnd, onPending func()) error {
	own := &pendingEnd{run: run, end: end, done: make(chan error, 1)}
	r.mu.Lock()
	r.pendingEnds = append(r.pendingEnds, own)
	r.unrecordedEnds++
	r.mu.Unlock()
	onPending()
	select {
	case err := <-own.done:
		return err
	case r.recorderSlot <- struct{}{}:
	}
	waitUntilStable(func() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.pendingEnds) })
	r.mu.Lock()
	batch := r.pendingEnds
	r.pendingEnds = nil
	r.mu.Unlock()
	if r.recordEnds(ctx, batch) != nil && len(batch) > 1 {
		for _, p := range batch { // one by one, so that one bad end does not affect the others
			_ = r.recordEnds(ctx, []*pendingEnd{p})
		}
	}
	<-r.recorderSlot
	return <-own.done
}

// recordEnds records ends in one transaction and sends the result to each done channel. If the transaction of several
// ends fails, it only returns the error, and the caller records the ends one by one.
func (r *Scheduler) recordEnds(ctx context.Context, batch []*pendingEnd) error {
	if len(batch) == 0 {
		return nil
	}
	var ended []recordedEnd
	err := r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		ended, err = r.endRuns(ctx, tx, batch)
		return err
	})
	if err != nil && len(batch) > 1 {
		return err
	}
	if err == nil {
		r.publishEnds(ended)
	}
	r.mu.Lock()
	r.unrecordedEnds -= len(batch)
	r.mu.Unlock()
	if err == nil {
		r.Queue.Wakeup() // the agents are free for their next wakes
	}
	for _, p := range batch {
		p.done <- err
	}
	return err
}

// recordedEnd is a run whose end is recorded in the current transaction.
type recordedEnd struct {
	run reeve.Run
	delivery
}

// delivery lists the notifications and conversations that the end of a run affects.
type delivery struct {
	isNotified    bool     // a notification is queued
	conversations []string // conversations with new frames
}

// publishEnds starts the delivery of notifications, announces frames and calls the AfterEnd functions, once the ends
// are committed.
func (r *Scheduler) publishEnds(ended []recordedEnd) {
	for _, e := range ended {
		if e.isNotified && r.Webhook != nil {
			r.Webhook.Notify()
		}
		r.announceFrames(e.conversations)
		r.callAfterEnd(e.run)
	}
}

// endRuns transitions runs to the states that their brains returned, calls the end handlers, and queues notifications.
// It leaves out runs that a person has ended or that another server has claimed in the meantime.
func (r *Scheduler) endRuns(ctx context.Context, tx *store.Tx, batch []*pendingEnd) (ended []recordedEnd, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	transitions := make([]store.RunTransition, len(batch))
	for i, p := range batch {
		transitions[i] = store.RunTransition{Was: p.run, Is: applyEnd(tx, p.run, p.end)}
	}
	moved, err := tx.Runs().EndRuns(ctx, transitions)
	if err != nil {
		return nil, err
	}
	var unattended []reeve.Run // ended runs whose budgets are no longer needed
	var timerIDs []string
	causes := make([]reeve.Run, len(transitions))
	for i, t := range transitions {
		if causes[i] = t.Is; !moved[t.Is.ID] || !t.Is.State.IsFinal() {
			continue
		}
		if causes[i], err = r.withOriginalReason(ctx, tx, t.Is); err != nil {
			return nil, err
		}
		if isUnattended(t.Is.Reason) {
			unattended = append(unattended, t.Is)
		}
		if isTimerReason(causes[i].Reason) {
			timerIDs = append(timerIDs, causes[i].ReasonID)
		}
	}
	if err := tx.Runs().DeleteRunBudgets(ctx, unattended...); err != nil {
		return nil, err
	}
	timers, err := tx.Queue().LockTimers(ctx, timerIDs)
	if err != nil {
		return nil, err
	}
	var runs, runCauses []reeve.Run
	for i, t := range transitions {
		if moved[t.Is.ID] {
			runs, runCauses = append(runs, t.Is), append(runCauses, causes[i])
		}
	}
	if err := r.callEndHandlers(ctx, tx, runs); err != nil {
		return nil, err
	}
	if err := signalEnds(ctx, tx, runs, runCauses, timers); err != nil {
		return nil, err
	}
	for i, p := range batch {
		if run := transitions[i].Is; moved[run.ID] {
			d, err := r.reportEnd(ctx, tx, timers, run, causes[i], p.end.Notify)
			if err != nil {
				return nil, err
			}
			ended = append(ended, recordedEnd{run, d})
		}
	}
	shown, err := showMedia(ctx, tx, runs)
	if len(ended) > 0 {
		ended[0].conversations = append(ended[0].conversations, shown...)
	}
	return ended, err
}

// showMedia shows the files of ended runs that no report contains. It returns the conversations.
func showMedia(ctx context.Context, tx *store.Tx, runs []reeve.Run) ([]string, error) {
	var scheduled []string // other runs show their files at once
	for _, run := range runs {
		if run.State.IsFinal() && (isTimerReason(run.Reason) || run.Reason == reeve.ReasonRetry) {
			scheduled = append(scheduled, run.ID)
		}
	}
	if len(scheduled) == 0 {
		return nil, nil
	}
	return tx.Chat().ShowMedia(ctx, scheduled)
}

// announceFrames calls FramesAppended for each conversation.
func (r *Scheduler) announceFrames(conversations []string) {
	if r.FramesAppended == nil {
		return
	}
	for i, c := range conversations {
		if !slices.Contains(conversations[:i], c) {
			r.FramesAppended(c)
		}
	}
}

// applyEnd returns a run with the fields that its end sets. Texts are sanitized, because a brain may return bytes that
// a database cannot store.
func applyEnd(tx *store.Tx, run reeve.Run, end reeve.RunEnd) reeve.Run {
	run.State, run.Output, run.Owner = end.State, reeve.SanitizeText(end.Output), ""
	run.ModelRequests, run.Issues, run.ResultsToResume, run.PendingCalls, run.Spent = end.ModelRequests, end.Issues,
		end.ResultsToResume, end.PendingCalls,
		end.FailedRequestCost
	if end.Err != nil {
		run.Code, run.Message, run.RetryAfter = end.Err.Code, reeve.SanitizeText(end.Err.Message), end.Err.RetryAfter
	}
	if run.State.IsFinal() {
		now := tx.Now()
		run.FinishedAt = &now
	}
	return run
}

// reportEnd notifies the user of a run that has ended, if the run was scheduled or has crashed too often. The timers
// are locked. The cause is the run with its original reason.
func (r *Scheduler) reportEnd(ctx context.Context, tx *store.Tx, timers map[string]*reeve.Timer, run, cause reeve.Run,
	notify bool) (d delivery, err error) {
	switch {
	case !run.State.IsFinal():
	case isTimerReason(cause.Reason):
		return r.reportTimerRun(ctx, tx, timers[cause.ReasonID], cause, notify)
	case run.Code == reeve.Crashed:
		return r.reportCrashedRun(ctx, tx, run)
	}
	return d, nil
}

// withOriginalReason returns a run with the reason of the run that it retries. Thus the end of a retried run counts for
// the schedule that started the first one.
func (r *Scheduler) withOriginalReason(ctx context.Context, tx *store.Tx, run reeve.Run) (reeve.Run, error) {
	if run.Reason != reeve.ReasonRetry {
		return run, nil
	}
	first, err := tx.Runs().GetRun(ctx, run.WorkspaceID, run.ReasonID)
	if err == nil {
		run.Reason, run.ReasonID = first.Reason, first.ReasonID
	}
	if reeve.CodeOf(err) == reeve.NotFound {
		err = nil
	}
	return run, err
}

// failCrashedRun fails a run that has crashed its server too often. The last owner may still be alive but silent.
// Therefore it touches the workspace, so that no call that the gate judged before can be recorded afterwards.
func (r *Scheduler) failCrashedRun(ctx context.Context, tx *store.Tx, run reeve.Run) ([]recordedEnd, error) {
	if err := tx.IncrementRevision(ctx, run.WorkspaceID); err != nil {
		return nil, err
	}
	run.Attempts-- // the claim counted an attempt that will not take place
	why := reeve.Errorf(reeve.Crashed, "the server stopped %d times during this run; it is not tried again",
		r.MaxAttempts)
	return r.endRuns(ctx, tx, []*pendingEnd{{run: run, end: reeve.RunEnd{State: reeve.RunFailed, Err: why}}})
}
