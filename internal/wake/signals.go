package wake

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// signalEnds wakes the agents that watch the answers of agents or the ends of scheduled runs. The causes are the
// runs with their original reasons.
func signalEnds(ctx context.Context, tx *store.Tx, ended, causes []reeve.Run,
	timers map[string]*reeve.Timer) error {
	var list []store.Signal
	for i, run := range ended {
		if !run.State.IsFinal() {
			continue
		}
		if run.State == reeve.RunCompleted && run.Output != "" {
			list = append(list, newAnswerSignal(run))
		}
		if t := timers[causes[i].ReasonID]; t != nil && isTimerReason(causes[i].Reason) {
			list = append(list, newEndSignal(run, *t))
		}
	}
	return tx.Queue().RecordSignals(ctx, list)
}

// newAnswerSignal returns the signal that a run wrote its final answer.
func newAnswerSignal(run reeve.Run) store.Signal {
	return store.NewSignal(store.Change{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID,
		Operation: reeve.DeriveID(reeve.PrefixChange, run.ID, "answer"), Window: store.ChangeWindow,
		Tokens: reeve.AgentMessageTokens(run)}, run.UserID, "answer", run.Output,
		reeve.EntityChange{Kind: "agent_message", ID: run.ID, Owner: run.UserID})
}

// newEndSignal returns the signal that a run of a schedule ended.
func newEndSignal(run reeve.Run, t reeve.Timer) store.Signal {
	text := string(run.State)
	if run.Message != "" {
		text += ": " + run.Message
	}
	return store.NewSignal(store.Change{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID,
		Operation: reeve.DeriveID(reeve.PrefixChange, run.ID, "ended"), Window: store.ChangeWindow,
		Tokens: reeve.ScheduleEndedTokens(t.ID, run.State)}, t.UserID, "run", text,
		reeve.EntityChange{Kind: "schedule", ID: t.ID, Title: t.Name, Owner: t.UserID})
}

// signalFirings wakes the agents that watch the firings of schedules.
func signalFirings(ctx context.Context, tx *store.Tx, due []reeve.Timer, fired []reeve.Wake) error {
	byID := map[string]reeve.Timer{}
	for _, t := range due {
		byID[t.ID] = t
	}
	var list []store.Signal
	for _, w := range fired {
		t := byID[w.ReasonID]
		list = append(list, store.NewSignal(store.Change{Workspace: w.WorkspaceID, Agent: w.AgentID,
			Operation: reeve.DeriveID(reeve.PrefixChange, w.RunKey, "fired"), Window: store.ChangeWindow,
			Tokens: reeve.ScheduleFiredTokens(t.ID, w.Reason)}, t.UserID, "scheduled_at",
			w.ScheduledAt.UTC().Format("2006-01-02T15:04:05Z"),
			reeve.EntityChange{Kind: "schedule", ID: t.ID, Title: t.Name, Owner: t.UserID}))
	}
	return tx.Queue().RecordSignals(ctx, list)
}
