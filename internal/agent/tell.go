package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// watch shows a piece of an answer as it comes.
func (v *turn) watch(d model.Delta) {
	switch d.Type {
	case model.TextDelta:
		v.words.WriteString(d.Text)
	case model.Discard:
		v.words.Reset()
	case model.ReasoningDelta, model.CallDelta:
	}
	c := v.conversation()
	if v.Stage == nil || c == "" {
		return
	}
	f := reeve.Frame{Type: reeve.FrameToken, TurnID: v.run.ID, AgentID: v.run.AgentID, Text: d.Text}
	switch d.Type {
	case model.TextDelta:
	case model.ReasoningDelta:
		f.Reasoning = true
	case model.Discard:
		f.Discard = true
	case model.CallDelta:
		return // the whole call is told when it is made
	}
	v.Stage.Token(c, f)
}

// changed tells the stage that there are new frames.
func (v *turn) changed() {
	if c := v.conversation(); v.Stage != nil && c != "" {
		v.Stage.Changed(c)
	}
}

// tell keeps a frame of the turn, unless that is over.
func (v *turn) tell(ctx context.Context, tx *store.Tx, key string, f reeve.Frame) error {
	c := v.conversation()
	if c == "" {
		return nil
	}
	f.TurnID, f.AgentID = v.run.ID, v.run.AgentID
	return tx.Chat().AppendFrame(ctx, c, v.run.ID+":"+key, f)
}

// tellAnswer tells what the model said, and which calls it wants.
func (v *turn) tellAnswer(ctx context.Context, tx *store.Tx, id string, n int, a model.Answer,
	spent reeve.Amount) error {
	if text := a.Text(); text != "" || len(a.Calls()) == 0 {
		if err := v.tell(ctx, tx, fmt.Sprint("answer:", n), reeve.Frame{Type: reeve.FrameMessage, MessageID: id,
			Text: text, Final: len(a.Calls()) == 0, Cut: a.CutReason(), Spent: &spent}); err != nil {
			return err
		}
	}
	for _, c := range a.Calls() {
		f := reeve.Frame{Type: reeve.FrameTool, MessageID: id, ToolCallID: c.ID, Tool: c.Name, Args: readable(c.Args)}
		if err := v.tell(ctx, tx, store.CallKey(n, c.ID), f); err != nil {
			return err
		}
	}
	return nil
}

// readable gives arguments as JSON, whatever the model wrote.
func readable(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(args) {
		return args
	}
	text, _ := json.Marshal(string(args)) // a string marshals
	return text
}

// tellResult tells what a call came to.
func (v *turn) tellResult(ctx context.Context, c *call, r reeve.Result) error {
	v.told[r.CallID] = true
	key, f := store.ResultFrame(c.ID, c.Name, r)
	return v.tellNow(ctx, key, f)
}

// tellNews tells of results that came while nobody of us was there to tell: of calls that were approved, or came later.
func (v *turn) tellNews(ctx context.Context) error {
	for _, m := range v.log.moves {
		for _, c := range m.calls {
			if c.result == nil || v.log.end().knows(c) || v.told[c.action.ID] {
				continue
			}
			if err := v.tellResult(ctx, c, reeve.Result{CallID: c.action.ID, OperationID: c.action.OperationID,
				Content: c.result.Content,
				IsError: c.info.Status == "error", Code: c.info.Code, Message: c.info.Message,
				Spent: c.info.Spent}); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellAgain tells clients to forget the pieces of an answer that a server which is gone had begun to hand out: it is
// asked for again. The frame is kept, so that the new pieces are numbered after all of the old ones.
func (v *turn) tellAgain(ctx context.Context) error {
	if !v.run.Resumed || v.warned {
		return nil
	}
	v.warned = true
	return v.tellNow(ctx, "again:"+v.DB.NewID(reeve.PrefixMessage), reeve.Frame{Type: reeve.FrameToken, Discard: true})
}

// tellWaiting tells that a call waits for a person. One whose outcome is being found out waits for nobody.
func (v *turn) tellWaiting(ctx context.Context, c *call, r reeve.Result) error {
	if r.ApprovalID == "" && r.State != reeve.Unknown {
		return nil
	}
	f := reeve.Frame{Type: reeve.FrameApproval, MessageID: r.CallID, ToolCallID: c.ID, Tool: c.Name,
		Args: readable(c.Args), ApprovalID: r.ApprovalID,
		OperationID: r.OperationID, Code: r.Code, Message: r.Message, Hint: r.Hint}
	if r.ApprovalID != "" {
		err := v.DB.View(ctx, func(s *store.Snap) error {
			a, err := s.Ledger().GetApproval(ctx, v.run.WorkspaceID, r.ApprovalID)
			f.Preview = a.Preview
			return err
		})
		if err != nil {
			return err
		}
	}
	key := fmt.Sprint("waits:", c.move, ":", c.ID, ":", r.Code, ":", r.ApprovalID)
	if r.State == reeve.Unknown {
		v.changed() // the gate has told it, with the operation
	} else if err := v.tellNow(ctx, key, f); err != nil {
		return err
	}
	return v.tellFirst(ctx, key, f)
}

// tellFirst tells the clients of the conversation that the run goes back to, if it was begun in another: whoever began
// it all sits there.
func (v *turn) tellFirst(ctx context.Context, key string, f reeve.Frame) error {
	if len(v.run.Ancestors) == 0 {
		return nil
	}
	keep := context.WithoutCancel(ctx)
	var first reeve.Run
	err := v.DB.Update(keep, func(tx *store.Tx) (err error) {
		if state, err := tx.Runs().LockRun(keep, v.run.WorkspaceID, v.run.ID); err != nil || state.Final() {
			return err
		}
		first, err = tx.Runs().GetRun(keep, v.run.WorkspaceID, v.run.Ancestors[0].RunID)
		if reeve.CodeOf(err) == reeve.NotFound || err == nil && (first.Reason != reeve.ReasonUser ||
			first.SessionID == v.conversation()) {
			first = reeve.Run{}
			return nil
		}
		if err != nil {
			return err
		}
		f.TurnID, f.AgentID = first.ID, v.run.AgentID
		return tx.Chat().AppendFrame(keep, first.SessionID, v.run.ID+":"+key, f)
	})
	if err == nil && first.ID != "" && v.Stage != nil {
		v.Stage.Changed(first.SessionID)
	}
	return err
}

// tellNow keeps a frame in a transaction of its own.
func (v *turn) tellNow(ctx context.Context, key string, f reeve.Frame) error {
	if v.conversation() == "" {
		return nil
	}
	keep := context.WithoutCancel(ctx)
	err := v.DB.Update(keep, func(tx *store.Tx) error { return v.tell(keep, tx, key, f) })
	v.changed()
	return err
}
