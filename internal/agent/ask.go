package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// ask asks the model for its next move, and stores the answer before anything is done about it. At the limit of moves
// it is asked for a final answer, without tools; after that nothing more.
func (v *turn) ask(ctx context.Context) *reeve.RunEnd {
	n := len(v.log.moves)
	if n > v.set.MaxMoves {
		return v.end(ctx, v.log.end())
	}
	if err := v.tellNews(ctx); err != nil {
		return v.fail(err)
	}
	if err := v.tellAgain(ctx); err != nil {
		return v.fail(err)
	}
	if v.base == nil {
		base, err := v.assembled(ctx)
		if err != nil {
			return v.fail(err)
		}
		v.base = &base
	}
	r := *v.base
	r.Messages = append(append([]model.Message{}, r.Messages...), v.log.messages()...)
	given := v.given()
	if f := given.Format; len(f) > 0 {
		if err := json.Unmarshal(f, &r.Format); err != nil {
			return v.fail(err)
		}
	}
	r.StopAt, r.TopP, r.OneCall = given.StopAt, given.TopP, given.OneCall
	if n == 0 {
		r.Choice, r.ChoiceTool = model.Choice(given.Choice), given.ChoiceTool
	}
	if n == v.set.MaxMoves {
		r.Choice = model.NoCall
		r.Messages = say(r.Messages,
			"You have come to the limit of moves in this turn. Answer now, with what you have; no tool can be called "+
				"any more.")
	}
	var answer model.Answer
	var spent reeve.Amount
	err := v.Gate.AskModel(ctx, v.who(), r.EstimateCost(), func(ctx context.Context) (_ reeve.Amount, err error) {
		answer, spent, err = v.asked(ctx, r)
		return spent, err
	}, func(ctx context.Context, tx *store.Tx) error { return v.keep(ctx, tx, answer, spent) })
	if spent.Tokens == 0 && spent.Micros == 0 { // which is not charged, if it came to nothing
		spent = reeve.Amount{}
	}
	if why := reeve.CancelCause(ctx); err != nil && why != nil {
		v.keepPart(context.WithoutCancel(ctx), spent)
		err = why
	}
	if err != nil {
		end := v.fail(err)
		end.FailedSpent = spent
		return end
	}
	v.changed()
	if v.forgotten != "" && v.Remember != nil {
		v.Remember()
	}
	v.forgotten = ""
	return nil
}

// say adds words to the user's side of the end of a conversation.
func say(list []model.Message, text string) []model.Message {
	if n := len(list); n > 0 && list[n-1].Role == model.User {
		last := list[n-1]
		last.Parts = append(append([]model.Part{}, last.Parts...), model.Part{Type: model.Text, Text: text})
		list[n-1] = last
		return list
	}
	return append(list, model.NewTextMessage(model.User, text))
}

// check makes sure that an answer can be acted on: it says or wants something, or was cut off before it did, and its
// calls can be told apart. What a model, or its provider's filter, declined to go on with is not done.
func (v *turn) check(a *model.Answer) error {
	if a.Stop == model.StopRefused {
		a.Parts = slices.DeleteFunc(a.Parts, func(p model.Part) bool { return p.Type == model.ToolCall })
	}
	seen := map[string]bool{}
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Type != model.ToolCall {
			continue
		}
		if p.Name == "" {
			return reeve.Errorf(reeve.ModelFailed, "the model called a tool without naming it")
		}
		for n := 2; p.ID == "" || seen[p.ID]; n++ {
			p.ID = fmt.Sprintf("call_%d_%d_%d", len(v.log.moves)+1, i+1, n)
		}
		seen[p.ID] = true
	}
	if len(a.Calls()) == 0 && a.Text() == "" && len(v.log.moves) == 0 && a.CutReason() == "" {
		return reeve.Errorf(reeve.ModelFailed, "the model's answer is empty")
	}
	return nil
}

// keep writes an answer down, and what clients are told of it.
func (v *turn) keep(ctx context.Context, tx *store.Tx, a model.Answer, spent reeve.Amount) error {
	if c := v.conversation(); c != "" {
		// so that it does not end before its clients are told
		if err := tx.Chat().LockConversation(ctx, c); err != nil {
			return err
		}
	}
	state, err := tx.Runs().RunState(ctx, v.run.WorkspaceID, v.run.ID)
	if err == nil && state.Final() { // somebody ended it while the model was thinking
		err = reeve.ErrEnded
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	n := len(v.log.moves) + 1
	info, err := json.Marshal(reeve.MessageInfo{Type: answerType, Move: n, Seen: v.log.last, Awaits: v.log.awaited(),
		Answer: raw, Spent: spent})
	if err != nil {
		return err
	}
	m := reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: v.run.WorkspaceID, ThreadID: v.run.ThreadID,
		AgentID: v.run.AgentID, RunID: v.run.ID,
		Kind: reeve.Thought, Content: a.Text(), Metadata: info}
	if err := tx.Ledger().AppendMessage(ctx, m); err != nil {
		return err
	}
	if v.forgotten != "" {
		if err := tx.Chat().QueueSummary(ctx, store.Summary{ThreadID: v.run.ThreadID, UpTo: v.forgotten,
			WorkspaceID: v.run.WorkspaceID, AgentID: v.run.AgentID, UserID: v.run.UserID,
			ConversationID: v.run.SessionID}); err != nil {
			return err
		}
	}
	return v.tellAnswer(ctx, tx, m.ID, n, a, spent)
}

// keepPart writes down what was said of an answer that a person cut off: they have read it, and the next turn may be
// about it. The turn has ended by then.
func (v *turn) keepPart(ctx context.Context, spent reeve.Amount) {
	text := strings.TrimSpace(v.words.String())
	err := v.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Runs().AddLateSpending(ctx, v.run.ID, spent); err != nil {
			return err
		}
		run, err := tx.Runs().GetRun(ctx, v.run.WorkspaceID, v.run.ID)
		if err != nil || text == "" || run.State != reeve.RunCancelled || run.Code != reeve.Canceled {
			return err
		}
		info, err := json.Marshal(reeve.MessageInfo{Type: partType, Move: len(v.log.moves) + 1})
		if err != nil {
			return err
		}
		return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: v.run.WorkspaceID, ThreadID: v.run.ThreadID, AgentID: v.run.AgentID, RunID: v.run.ID,
			Kind: reeve.Thought, Content: text, Metadata: info})
	})
	if err != nil {
		v.Log.Warn("what was said of an answer that was cut off was not kept", "run", v.run.ID, "error", err)
	}
}
