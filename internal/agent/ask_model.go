package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// askModel asks the model and stores the answer before any of its calls is made. At the limit of model requests the
// model must give a final answer without calls.
func (v *modelRun) askModel(ctx context.Context) *reeve.RunEnd {
	n := len(v.log.answers)
	if n > v.set.MaxModelRequests {
		return v.complete(ctx, v.log.lastAnswer())
	}
	if err := v.sendLateResults(ctx); err != nil {
		return v.failStep(err)
	}
	if err := v.sendDiscard(ctx); err != nil {
		return v.failStep(err)
	}
	if v.base == nil {
		base, err := v.assembleRequest(ctx)
		if err != nil {
			return v.failStep(err)
		}
		v.base, v.isBaseStored = &base, false
	}
	r := *v.base
	r.Messages = append(append([]model.Message{}, r.Messages...), v.log.messages()...)
	given := v.clientHistory()
	if f := given.Format; len(f) > 0 {
		if err := json.Unmarshal(f, &r.Format); err != nil {
			return v.failStep(err)
		}
	}
	r.StopAt, r.TopP, r.OneCall = given.StopAt, given.TopP, given.OneCall
	if n == 0 {
		r.Choice, r.ChoiceTool = model.Choice(given.Choice), given.ChoiceTool
	}
	if n == v.set.MaxModelRequests {
		askForEnd(&r)
	}
	var answer model.Answer
	var spent reeve.Amount
	ask := func(ctx context.Context, maxOutput int64) (_ reeve.Amount, err error) {
		r.LimitOutput(maxOutput)
		answer, spent, err = v.requestAnswer(ctx, r)
		return spent, err
	}
	// AskModel calls it in the transaction that charges the request.
	keep := func(ctx context.Context, tx *store.Tx) error { return v.storeAnswer(ctx, tx, answer, spent) }
	err := v.Gate.AskModel(ctx, v.caller(), model.EstimateCost(v.Model, r), ask, keep)
	if spent.Tokens == 0 && spent.Micros == 0 { // a request without usage is not charged
		spent = reeve.Amount{}
	}
	if why := reeve.CancelCause(ctx); err != nil && why != nil {
		v.storePartialAnswer(context.WithoutCancel(ctx), spent)
		err = why
	}
	if err != nil {
		end := v.failStep(err)
		end.FailedRequestCost = spent
		return end
	}
	v.isBaseStored = true
	v.notifyFrames()
	if v.summarizeUpTo != "" && v.OnSummaryDue != nil {
		v.OnSummaryDue()
	}
	v.summarizeUpTo = ""
	return nil
}

// requestAnswer sends a request to the model, shows the answer while it arrives, checks it and reports it to OnAnswer.
func (v *modelRun) requestAnswer(ctx context.Context, r model.Request) (a model.Answer, spent reeve.Amount, err error) {
	provider, name := v.resolveModel(r.Model)
	ctx, span := v.getTracer().Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient))
	start := reeve.Monotonic()
	v.streamedText.Reset()
	if a, err = v.Model.Answer(ctx, r, v.showDelta); err == nil {
		if r.OneCall { // not every provider supports the option
			a.KeepOneCall()
		}
		err = v.checkAnswer(&a)
	}
	spent = a.Usage.Cost(reeve.Since(start))
	v.endRequestSpan(span, r, provider, name, a, err)
	if v.OnAnswer != nil {
		call := ModelCall{Requested: r.Model, Provider: a.Provider, Model: a.Model, Spent: spent, Usage: a.Usage}
		if err != nil {
			call.Code = reeve.CodeOf(err)
		}
		v.OnAnswer(call)
	}
	return a, spent, err
}

// askForEnd makes a request the last one of a turn.
func askForEnd(r *model.Request) {
	r.Choice = model.NoCall
	r.Messages = appendUserText(r.Messages, "You have reached the limit of model requests in this turn. Answer now "+
		"with what you have; you cannot call tools any more.")
}

// appendUserText adds text to the last user message, or as a new message.
func appendUserText(list []model.Message, text string) []model.Message {
	if n := len(list); n > 0 && list[n-1].Role == model.User {
		last := list[n-1]
		last.Parts = append(append([]model.Part{}, last.Parts...), model.Part{Type: model.Text, Text: text})
		list[n-1] = last
		return list
	}
	return append(list, model.NewTextMessage(model.User, text))
}

// checkAnswer fails if an answer is empty or calls a tool without a name. It gives each call a unique id and removes
// the calls of an answer that the provider refused.
func (v *modelRun) checkAnswer(a *model.Answer) error {
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
			return reeve.Errorf(reeve.ModelFailed, "the model called a tool without a name")
		}
		for n := 2; p.ID == "" || seen[p.ID]; n++ {
			p.ID = fmt.Sprintf("call_%d_%d_%d", len(v.log.answers)+1, i+1, n)
		}
		seen[p.ID] = true
	}
	if len(a.Calls()) == 0 && a.Text() == "" && len(v.log.answers) == 0 && a.CutReason() == "" {
		return reeve.Errorf(reeve.ModelFailed, "the model's answer is empty")
	}
	return nil
}

// storeAnswer stores an answer and its frames. It fails if the run has ended meanwhile.
func (v *modelRun) storeAnswer(ctx context.Context, tx *store.Tx, a model.Answer, spent reeve.Amount) error {
	if c := v.conversation(); c != "" {
		// so that the conversation does not end before the frames are stored
		if err := tx.Chat().LockConversation(ctx, c); err != nil {
			return err
		}
	}
	state, err := tx.Runs().RunState(ctx, v.run.WorkspaceID, v.run.ID)
	if err == nil && state.IsFinal() { // a person ended the run while the model was answering
		err = reeve.ErrEnded
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	n := len(v.log.answers) + 1
	info, err := json.Marshal(reeve.MessageInfo{Type: answerType, ModelRequest: n, LastMessage: v.log.lastMessage,
		PendingCalls: v.log.awaitedCalls(),
		Answer:       raw, Spent: spent})
	if err != nil {
		return err
	}
	m := reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: v.run.WorkspaceID, ThreadID: v.run.ThreadID,
		AgentID: v.run.AgentID, RunID: v.run.ID,
		Kind: reeve.Thought, Content: a.Text(), Metadata: info}
	if err := tx.Ledger().AppendMessage(ctx, m); err != nil {
		return err
	}
	if !v.isBaseStored {
		if err := v.storeRequest(ctx, tx, n); err != nil {
			return err
		}
	}
	if v.summarizeUpTo != "" {
		job := store.Summary{ThreadID: v.run.ThreadID, UpTo: v.summarizeUpTo, WorkspaceID: v.run.WorkspaceID,
			AgentID: v.run.AgentID, UserID: v.run.UserID, ConversationID: v.conversation()}
		if job.ConversationID == "" {
			job.ThreadID = store.RunMemory(v.run.AgentID, v.run.UserID)
		}
		if err := tx.Chat().QueueSummary(ctx, job); err != nil {
			return err
		}
	}
	return v.appendAnswerFrames(ctx, tx, m.ID, n, a, spent)
}

// storePartialAnswer stores the streamed text of an answer that a person cancelled, because the next turn may refer to
// it.
func (v *modelRun) storePartialAnswer(ctx context.Context, spent reeve.Amount) {
	text := strings.TrimSpace(v.streamedText.String())
	err := v.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Runs().AddLateSpending(ctx, v.run.ID, spent); err != nil {
			return err
		}
		run, err := tx.Runs().GetRun(ctx, v.run.WorkspaceID, v.run.ID)
		if err != nil || text == "" || run.State != reeve.RunCancelled || run.Code != reeve.Canceled {
			return err
		}
		info, err := json.Marshal(reeve.MessageInfo{Type: partType, ModelRequest: len(v.log.answers) + 1})
		if err != nil {
			return err
		}
		return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: v.run.WorkspaceID, ThreadID: v.run.ThreadID, AgentID: v.run.AgentID, RunID: v.run.ID,
			Kind: reeve.Thought, Content: text, Metadata: info})
	})
	if err != nil {
		v.Log.Warn("partial answer not stored", "run", v.run.ID, "error", err)
	}
}
