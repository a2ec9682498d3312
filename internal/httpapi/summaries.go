package httpapi

import (
	"cmp"
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// summaryHandlers serves the summaries of turns and runs.
type summaryHandlers struct {
	db      *store.DB
	onRetry func() // makes the summarizer look for due summaries now; may be nil
}

func (h *summaryHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Page
}) (*body[api.SummaryList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.SummaryList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		list, err := snap.Chat().ListSummaries(ctx, a.ID, visibleUser(who), "", in.Cursor, in.Limit)
		out.Body.Summaries = make([]api.Summary, len(list))
		for i, s := range list {
			out.Body.Summaries[i] = newSummary(s)
		}
		if n := len(list); n == in.Limit {
			out.Body.Next = list[n-1].UpTo
		}
		return err
	})
}

func newSummary(s store.Summary) api.Summary {
	out := api.Summary{ID: s.UpTo, AgentID: s.AgentID, UserID: s.UserID, ConversationID: s.ConversationID,
		State: string(s.State), Attempts: s.Attempts, MessageID: s.MessageID, Code: s.Code, Message: s.Message,
		CreatedAt: s.CreatedAt}
	if s.State == store.SummaryQueued {
		out.RetryAt = &s.DueAt
	}
	return out
}

func (h *summaryHandlers) retry(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Summary string `path:"summaryId" maxLength:"64" doc:"Id of the summary"`
}) (*body[api.Summary], error) {
	out := &body[api.Summary]{}
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		list, err := tx.Chat().ListSummaries(ctx, a.ID, visibleUser(who), in.Summary, "", 1)
		if err != nil || len(list) == 0 {
			return cmp.Or(err, newNotFound("summary", in.Summary))
		}
		if err := tx.Chat().RetrySummary(ctx, list[0]); err != nil {
			return err
		}
		list[0].State, list[0].Attempts, list[0].DueAt = store.SummaryQueued, 0, tx.Now()
		out.Body = newSummary(list[0])
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
	if err == nil && h.onRetry != nil {
		h.onRetry()
	}
	return out, err
}
