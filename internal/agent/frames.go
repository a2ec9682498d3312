package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// showDelta sends a piece of an answer to clients.
func (v *modelRun) showDelta(d model.Delta) {
	switch d.Type {
	case model.TextDelta:
		v.streamedText.WriteString(d.Text)
	case model.Discard:
		v.streamedText.Reset()
	case model.ReasoningDelta, model.CallDelta:
	}
	c := v.conversation()
	if v.Events == nil || c == "" {
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
		return // the call is sent with the answer
	}
	v.Events.Token(c, f)
}

// notifyFrames reports new frames to the event sink.
func (v *modelRun) notifyFrames() {
	if c := v.conversation(); v.Events != nil && c != "" {
		v.Events.Changed(c)
	}
}

// appendFrame stores a frame of the turn, unless the turn has ended.
func (v *modelRun) appendFrame(ctx context.Context, tx *store.Tx, key string, f reeve.Frame) error {
	c := v.conversation()
	if c == "" {
		return nil
	}
	f.TurnID, f.AgentID = v.run.ID, v.run.AgentID
	return tx.Chat().AppendFrame(ctx, c, v.run.ID+":"+key, f)
}

// appendAnswerFrames stores the frames of an answer and its calls.
func (v *modelRun) appendAnswerFrames(ctx context.Context, tx *store.Tx, id string, n int, a model.Answer,
	spent reeve.Amount) error {
	if text := a.Text(); text != "" || len(a.Calls()) == 0 {
		if err := v.appendFrame(ctx, tx, fmt.Sprint("answer:", n), reeve.Frame{Type: reeve.FrameMessage, MessageID: id,
			Text: text, Final: len(a.Calls()) == 0, Cut: a.CutReason(), Spent: &spent}); err != nil {
			return err
		}
	}
	for _, c := range a.Calls() {
		f := reeve.Frame{Type: reeve.FrameTool, MessageID: id, ToolCallID: c.ID, Tool: c.Name, Args: argsAsJSON(c.Args)}
		if err := v.appendFrame(ctx, tx, store.CallKey(n, c.ID), f); err != nil {
			return err
		}
	}
	return nil
}

// argsAsJSON returns arguments as valid JSON. Invalid JSON from the model becomes a string.
func argsAsJSON(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(args) {
		return args
	}
	text, _ := json.Marshal(string(args)) // encoding a string cannot fail
	return text
}

// sendResult sends the result of a call to clients.
func (v *modelRun) sendResult(ctx context.Context, c *answerCall, r reeve.Result) error {
	v.reportedResults[r.CallID] = true
	key, f := store.ResultFrame(c.ID, c.Name, r)
	return v.sendFrame(ctx, key, f)
}

// sendLateResults sends results that arrived while the run was not executing: of approved and of deferred calls.
func (v *modelRun) sendLateResults(ctx context.Context) error {
	for _, m := range v.log.answers {
		for _, c := range m.calls {
			if c.result == nil || v.log.lastAnswer().hasSeen(c) || v.reportedResults[c.action.ID] {
				continue
			}
			if err := v.sendResult(ctx, c, reeve.Result{CallID: c.action.ID, OperationID: c.action.OperationID,
				Content: c.result.Content,
				IsError: c.info.Status == "error", Code: c.info.Code, Message: c.info.Message,
				Spent: c.info.Spent}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendDiscard tells clients to discard the streamed text of an answer that a lost process began, because the model is
// asked again. The frame is stored, so that new pieces are numbered after the old ones.
func (v *modelRun) sendDiscard(ctx context.Context) error {
	if !v.run.Resumed || v.discardSent {
		return nil
	}
	v.discardSent = true
	return v.sendFrame(ctx, "again:"+v.DB.NewID(reeve.PrefixMessage),
		reeve.Frame{Type: reeve.FrameToken, Discard: true})
}

// sendWaiting tells clients that a call waits for a person. It reports nothing if the call only waits for its outcome.
func (v *modelRun) sendWaiting(ctx context.Context, c *answerCall, r reeve.Result) error {
	if r.ApprovalID == "" && r.State != reeve.Unknown {
		return nil
	}
	f := reeve.Frame{Type: reeve.FrameApproval, MessageID: r.CallID, ToolCallID: c.ID, Tool: c.Name,
		Args: argsAsJSON(c.Args), ApprovalID: r.ApprovalID,
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
	key := fmt.Sprint("waits:", c.answerIndex, ":", c.ID, ":", r.Code, ":", r.ApprovalID)
	if r.State == reeve.Unknown {
		v.notifyFrames() // the gate has stored the frame with the operation
	} else if err := v.sendFrame(ctx, key, f); err != nil {
		return err
	}
	return v.sendToRootConversation(ctx, key, f)
}

// sendToRootConversation sends a frame to the conversation of the first run in the chain of calls, where the user is.
func (v *modelRun) sendToRootConversation(ctx context.Context, key string, f reeve.Frame) error {
	if len(v.run.Ancestors) == 0 {
		return nil
	}
	keep := context.WithoutCancel(ctx)
	var first reeve.Run
	err := v.DB.Update(keep, func(tx *store.Tx) (err error) {
		if state, err := tx.Runs().LockRun(keep, v.run.WorkspaceID, v.run.ID); err != nil || state.IsFinal() {
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
	if err == nil && first.ID != "" && v.Events != nil {
		v.Events.Changed(first.SessionID)
	}
	return err
}

// sendFrame stores a frame in its own transaction and notifies clients.
func (v *modelRun) sendFrame(ctx context.Context, key string, f reeve.Frame) error {
	if v.conversation() == "" {
		return nil
	}
	keep := context.WithoutCancel(ctx)
	err := v.DB.Update(keep, func(tx *store.Tx) error { return v.appendFrame(keep, tx, key, f) })
	v.notifyFrames()
	return err
}
