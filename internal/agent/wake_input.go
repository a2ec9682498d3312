package agent

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// noReport is the answer of a scheduled run whose user need not be notified.
const noReport = "NOTHING TO REPORT"

// recordWake stores what woke the agent as the first message of the run. A turn already has the user's message.
func (v *modelRun) recordWake(ctx context.Context) error {
	return v.DB.Update(ctx, func(tx *store.Tx) error {
		text, err := v.describeWake(ctx, tx)
		if err != nil {
			return err
		}
		info, err := json.Marshal(reeve.MessageInfo{Type: "woken", User: v.run.UserID})
		if err != nil {
			return err
		}
		return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: v.run.WorkspaceID, ThreadID: v.run.ThreadID, AgentID: v.run.AgentID,
			RunID: v.run.ID, Kind: reeve.Observation, Content: text, Metadata: info})
	})
}

// describeWake renders what woke the agent.
func (v *modelRun) describeWake(ctx context.Context, tx *store.Tx) (string, error) {
	switch v.run.Reason {
	case reeve.ReasonTimer, reeve.ReasonCatchup:
		text := "This is a scheduled run."
		if v.run.ScheduledAt != nil {
			text = "This is the scheduled run of " + v.run.ScheduledAt.Format("2006-01-02 15:04 MST") + "."
		}
		if v.run.Reason == reeve.ReasonCatchup {
			text += " It was missed while the server was down and runs now instead."
		}
		if v.run.Input != "" {
			text += "\n\n" + v.run.Input
		}
		return text + "\n\nNo user is present. Your final answer is the report. If there is nothing that the user " +
			"should know, answer exactly: " + noReport, nil
	case reeve.ReasonSubscription:
		return v.describeChanges(ctx, tx)
	case reeve.ReasonManual, reeve.ReasonUser, reeve.ReasonRetry, reeve.ReasonScriptJob:
	}
	if v.run.Input == "" {
		return "You were started without input. Follow your instructions.", nil
	}
	return v.run.Input, nil
}
