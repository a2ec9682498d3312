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

// limits is how much an evaluation may take.
type limits struct {
	parallel   int
	taskTime   time.Duration
	taskTokens int64
	tokens     int64
	micros     int64
}

// over names the limit that has been reached, or nothing.
func (l limits) over(spent reeve.Amount) string {
	switch {
	case l.tokens > 0 && spent.Tokens >= l.tokens:
		return "the limit of tokens"
	case l.micros > 0 && spent.Micros >= l.micros:
		return "the limit of cost"
	}
	return ""
}

// record keeps outcomes in a file, a line each, so that an evaluation that was interrupted goes on where it was. The
// first line names it.
type record struct {
	file *os.File
	id   string
	done map[string]outcome // by task
}

// openRecord opens a record, or begins one.
func openRecord(name string, restart bool) (r *record, err error) {
	mode := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if restart {
		mode |= os.O_TRUNC
	}
	r = &record{done: map[string]outcome{}}
	if r.file, err = os.OpenFile(name, mode, 0o600); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the results cannot be kept: %w", err).
			Hintf("name another file with --out")
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
			continue // it was being written
		}
		if line.Evaluation != "" {
			r.id = line.Evaluation
		} else if line.Task != "" {
			r.done[line.Task] = line.outcome
		}
	}
	if len(b) > 0 && r.id == "" {
		return nil, errors.Join(reeve.Errorf(reeve.Validation, "%s holds something else than results", name).
			Hintf("name another file with --out, or begin again with --restart"), r.file.Close())
	}
	if len(b) == 0 {
		r.id = reeve.RandomSecret(8)
		return r, r.write(map[string]string{"evaluation": r.id})
	}
	if b[len(b)-1] != '\n' {
		_, err = r.file.WriteString("\n")
	}
	return r, err
}

// write adds a line, and comes back when it is on disk.
func (r *record) write(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = r.file.Write(append(b, '\n'))
	}
	if err == nil {
		err = r.file.Sync()
	}
	return err
}

// examiner asks an agent the questions of a set.
type examiner struct {
	app    *app
	client *client.Client
	agent  string
	limits limits
	record *record

	mu    sync.Mutex
	spent reeve.Amount
	limit string
	err   error
}

// ask asks what has not been answered yet, several at once, and gives all outcomes in the order of the tasks.
func (x *examiner) ask(ctx context.Context, tasks []task) ([]outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]*outcome, len(tasks))
	for i, t := range tasks {
		if o, ok := x.record.done[t.ID]; ok && o.Hash == t.hash() && o.State == "done" {
			results[i] = &o
			x.spent = x.spent.Plus(o.Spent)
		}
	}
	x.limit = x.limits.over(x.spent)
	var group sync.WaitGroup
	places := make(chan struct{}, x.limits.parallel)
	for i, t := range tasks {
		if results[i] != nil {
			continue
		}
		places <- struct{}{}
		if ctx.Err() != nil || x.stopped() {
			break
		}
		group.Add(1)
		go func() {
			defer group.Done()
			defer func() { <-places }()
			if o, ok := x.one(ctx, t); ok {
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
			Hintf("give the same command again to go on")
	}
	return out, x.err
}

func (x *examiner) stopped() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.limit != "" || x.err != nil
}

// one asks one question and keeps what came of it. False means that it was interrupted, and will be looked at again.
func (x *examiner) one(ctx context.Context, t task) (outcome, bool) {
	began := reeve.Monotonic()
	o := outcome{Task: t.ID, Hash: t.hash(), Try: 1, State: "failed"}
	if was, ok := x.record.done[t.ID]; ok && was.Hash == o.Hash {
		o.Try = was.Try + 1 // it failed: ask anew
	}
	turn, err := x.turn(ctx, t, &o)
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
		x.limit = x.limits.over(x.spent)
	}
	if err := x.record.write(o); err != nil && x.err == nil {
		x.err = reeve.Errorf(reeve.Unavailable, "the results cannot be kept: %w", err)
	}
	x.app.note("%s: %s", t.ID, o.State)
	return o, true
}

// turn asks in a conversation of its own. Its keys derive from the evaluation and the task: a question that was asked
// before an interruption is found, not asked again.
func (x *examiner) turn(ctx context.Context, t task, o *outcome) (turn api.TurnDetail, err error) {
	key := fmt.Sprintf("eval-%s-%s-%d", x.record.id, o.Hash, o.Try)
	c, err := x.begin(ctx, t, key)
	if err != nil {
		return turn, err
	}
	o.Conversation = c.ID
	var said reeve.Turn
	if err = client.Insist(ctx, func() error {
		said, err = x.client.Turns().Create(ctx, c.ID, key, reeve.TurnRequest{Content: t.Question})
		return err
	}); err != nil {
		return turn, err
	}
	o.Turn = said.ID
	state, err := x.await(ctx, said.ID)
	if err != nil {
		return turn, err
	}
	if err = client.Insist(ctx, func() error {
		turn, err = x.client.Turns().
			Get(ctx, said.ID)
		return err
	}); err != nil {
		return turn, err
	}
	o.Answer, o.Spent, o.Moves = turn.Output, turn.Spent, turn.Moves
	switch {
	case state != "":
		o.State = "limit"
		return turn, reeve.Errorf(reeve.Timeout, "it came to %s", state)
	case turn.State == reeve.RunParked:
		return turn, reeve.Errorf(reeve.ApprovalRequired, "it waits for a person")
	case turn.State != reeve.RunCompleted:
		return turn, reeve.Errorf(reeve.ModelFailed, "%s: %s", turn.State, turn.Message)
	}
	o.State = "done"
	return turn, nil
}

// begin begins the conversation, or finds it. A server that was killed while it began one may never tell which it was:
// that one stays empty, and another is begun.
func (x *examiner) begin(ctx context.Context, t task, key string) (c reeve.Conversation, err error) {
	for n := range 10 {
		if err = client.Insist(ctx, func() error {
			c, err = x.client.Conversations().
				CreateOnce(ctx, fmt.Sprintf("%s-%d", key, n), reeve.ConversationRequest{Agent: x.agent, Title: "task " +
					cut(t.ID, 100)})
			return err
		}); reeve.CodeOf(err) != reeve.InProgress {
			break
		}
	}
	return c, err
}

// await looks at a turn until it is over. One that takes too long or too much is cancelled, and the limit is named. Its
// time is counted from the first look: when it began is said by the server's clock, which need not be ours.
func (x *examiner) await(ctx context.Context, id string) (limit string, err error) {
	began := reeve.Monotonic()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var run reeve.Run
		if err := client.Insist(ctx, func() error { run, err = x.client.Runs().Get(ctx, id); return err }); err != nil {
			return limit, err
		}
		if run.State.Final() || run.State == reeve.RunParked && limit == "" {
			return limit, nil
		}
		if limit == "" {
			switch {
			case reeve.Since(began) > x.limits.taskTime:
				limit = "its limit of time"
			case x.limits.taskTokens > 0 && run.Spent.Tokens > x.limits.taskTokens:
				limit = "its limit of tokens"
			}
			if limit != "" {
				if err := client.Insist(ctx, func() error {
					_, err := x.client.Turns().
						Cancel(ctx, id)
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
