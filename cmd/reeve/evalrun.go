package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/internal/notify"
)

// limits are the limits of an evaluation. Zero tokens or micros means no limit.
type limits struct {
	parallel   int
	taskTime   time.Duration
	taskTokens int64
	tokens     int64
	micros     int64
}

// reached returns the name of the limit that has been reached, or "".
func (l limits) reached(spent reeve.Amount) string {
	switch {
	case l.tokens > 0 && spent.Tokens >= l.tokens:
		return "the token limit"
	case l.micros > 0 && spent.Micros >= l.micros:
		return "the cost limit"
	}
	return ""
}

// resultFile stores outcomes in a file, one JSON line per task, so that an interrupted evaluation can continue. The
// first line holds the id of the evaluation.
type resultFile struct {
	file *os.File
	id   string
	done map[string]outcome // by task
}

// openResultFile opens a result file and reads its outcomes, or creates the file. restart discards earlier outcomes.
func openResultFile(name string, restart bool) (r *resultFile, err error) {
	mode := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if restart {
		mode |= os.O_TRUNC
	}
	r = &resultFile{done: map[string]outcome{}}
	if r.file, err = os.OpenFile(name, mode, 0o600); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot open the result file: %w", err).
			Hintf("choose another file with --out")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	for text := range bytes.Lines(b) {
		var line struct {
			Evaluation string `json:"evaluation"`
			outcome
		}
		if !bytes.HasSuffix(text, []byte("\n")) || json.Unmarshal(text, &line) != nil {
			continue // an incomplete line, from an interrupted write
		}
		if line.Evaluation != "" {
			r.id = line.Evaluation
		} else if line.Task != "" {
			r.done[line.Task] = line.outcome
		}
	}
	if len(b) > 0 && r.id == "" {
		return nil, errors.Join(reeve.Errorf(reeve.Validation, "%s is not a result file", name).
			Hintf("choose another file with --out, or replace the file with --restart"), r.file.Close())
	}
	if len(b) == 0 {
		r.id = reeve.RandomSecret(8)
		return r, r.append(map[string]string{"evaluation": r.id})
	}
	if b[len(b)-1] != '\n' {
		_, err = r.file.WriteString("\n")
	}
	return r, err
}

// append writes v as a line and syncs the file.
func (r *resultFile) append(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = r.file.Write(append(b, '\n'))
	}
	if err == nil {
		err = r.file.Sync()
	}
	return err
}

// evaluator asks an agent the questions of a task set.
type evaluator struct {
	app     *app
	client  *client.Client
	agent   string
	limits  limits
	results *resultFile

	mu    sync.Mutex
	spent reeve.Amount
	limit string
	err   error
}

// run asks the questions that have no stored answer, several in parallel, and returns the outcomes in the order of the
// tasks. Tasks that were not asked, because of a limit or an interrupt, have no outcome.
func (x *evaluator) run(ctx context.Context, tasks []task) ([]outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]*outcome, len(tasks))
	for i, t := range tasks {
		if o, ok := x.results.done[t.ID]; ok && o.Hash == t.hash() && o.State == "done" {
			results[i] = &o
			x.spent = x.spent.Plus(o.Spent)
		}
	}
	x.limit = x.limits.reached(x.spent)
	var group sync.WaitGroup
	slots := make(chan struct{}, x.limits.parallel)
	for i, t := range tasks {
		if results[i] != nil {
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil || x.isStopped() {
			break
		}
		group.Add(1)
		go func() {
			defer group.Done()
			defer func() { <-slots }()
			if o, ok := x.runTask(ctx, t); ok {
				results[i] = &o
			}
		}()
	}
	group.Wait()
	var out []outcome
	for _, o := range results {
		if o != nil {
			out = append(out, *o)
		}
	}
	if x.err == nil && ctx.Err() != nil {
		x.err = reeve.Errorf(reeve.Canceled, "interrupted after %d of %d tasks", len(out), len(tasks)).
			Hintf("run the same command again to continue")
	}
	return out, x.err
}

func (x *evaluator) isStopped() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.limit != "" || x.err != nil
}

// runTask asks one question and stores the outcome. It returns false if it was interrupted; then nothing is stored.
func (x *evaluator) runTask(ctx context.Context, t task) (outcome, bool) {
	began := reeve.Monotonic()
	o := outcome{Task: t.ID, Hash: t.hash(), Try: 1, State: "failed"}
	if last, ok := x.results.done[t.ID]; ok && last.Hash == o.Hash {
		o.Try = last.Try + 1 // the last attempt failed
	}
	turn, err := x.runTurn(ctx, t, &o)
	if ctx.Err() != nil {
		return o, false
	}
	if o.Millis = reeve.Since(began).Milliseconds(); turn.FinishedAt != nil {
		o.Millis = turn.FinishedAt.Sub(turn.StartedAt).Milliseconds()
	}
	if err != nil {
		o.Error = reeve.AsError(err).Message
	}
	var calls []string
	for _, m := range turn.Messages {
		if m.Kind == reeve.Action {
			calls = append(calls, m.Content)
		}
	}
	o.score(t, calls)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.spent = x.spent.Plus(o.Spent)
	if x.limit == "" {
		x.limit = x.limits.reached(x.spent)
	}
	if err := x.results.append(o); err != nil && x.err == nil {
		x.err = reeve.Errorf(reeve.Unavailable, "cannot write the result file: %w", err)
	}
	x.app.notef("%s: %s", t.ID, o.State)
	return o, true
}

// runTurn asks the question of t in a new conversation. The idempotency keys derive from the evaluation, the task and
// the attempt, so that a question sent before an interruption is found again instead of repeated.
func (x *evaluator) runTurn(ctx context.Context, t task, o *outcome) (turn api.TurnDetail, err error) {
	key := fmt.Sprintf("eval-%s-%s-%d", x.results.id, o.Hash, o.Try)
	c, err := x.openConversation(ctx, t, key)
	if err != nil {
		return turn, err
	}
	o.Conversation = c.ID
	var created reeve.Turn
	if err = client.RetryTransient(ctx, func() error {
		created, err = x.client.Turns().Create(ctx, c.ID, key, reeve.TurnRequest{Content: t.Question})
		return err
	}); err != nil {
		return turn, err
	}
	o.Turn = created.ID
	limit, err := x.waitForTurn(ctx, created.ID)
	if err != nil {
		return turn, err
	}
	if err = client.RetryTransient(ctx, func() error {
		turn, err = x.client.Turns().Get(ctx, created.ID)
		return err
	}); err != nil {
		return turn, err
	}
	o.Answer, o.Spent, o.ModelRequests = turn.Output, turn.Spent, turn.ModelRequests
	switch {
	case limit != "":
		o.State = "limit"
		return turn, reeve.Errorf(reeve.Timeout, "the turn reached %s", limit)
	case turn.State == reeve.RunParked:
		return turn, reeve.Errorf(reeve.ApprovalRequired, "the turn waits for a person")
	case turn.State != reeve.RunCompleted:
		return turn, reeve.Errorf(reeve.ModelFailed, "%s: %s", turn.State, turn.Message)
	}
	o.State = "done"
	return turn, nil
}

// openConversation creates the conversation of a task, or finds the one created with the same key. If the server was
// killed while it created one, the key stays in progress; then openConversation tries another key, and the first
// conversation stays empty.
func (x *evaluator) openConversation(ctx context.Context, t task, key string) (c reeve.Conversation, err error) {
	for n := range 10 {
		if err = client.RetryTransient(ctx, func() error {
			r := reeve.ConversationRequest{Agent: x.agent, Title: "task " + truncate(t.ID, 100)}
			c, err = x.client.Conversations().CreateOnce(ctx, fmt.Sprintf("%s-%d", key, n), r)
			return err
		}); reeve.CodeOf(err) != reeve.InProgress {
			break
		}
	}
	return c, err
}

// waitForTurn polls a turn until it ends or waits for a person. If the turn reaches a limit, it cancels the turn and
// returns the name of the limit. It measures the time from the first poll, because the start time comes from the
// server's clock, which may differ.
func (x *evaluator) waitForTurn(ctx context.Context, id string) (limit string, err error) {
	began := reeve.Monotonic()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var run reeve.Run
		if err := client.RetryTransient(ctx,
			func() error { run, err = x.client.Runs().Get(ctx, id); return err }); err != nil {
			return limit, err
		}
		if run.State.IsFinal() || run.State == reeve.RunParked && limit == "" {
			return limit, nil
		}
		if limit == "" {
			switch {
			case reeve.Since(began) > x.limits.taskTime:
				limit = "the time limit"
			case x.limits.taskTokens > 0 && run.Spent.Tokens > x.limits.taskTokens:
				limit = "the token limit"
			}
			if limit != "" {
				if err := client.RetryTransient(ctx, func() error {
					_, err := x.client.Turns().Cancel(ctx, id)
					return err
				}); err != nil && reeve.CodeOf(err) != reeve.Conflict {
					return limit, err
				}
			}
		}
		if !notify.Sleep(ctx, pause) {
			return limit, ctx.Err()
		}
	}
}
