package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/wake"
	"reeve/model"
)

const home = "default"

// answerFunc is the answer of a fakeModel to a request.
type answerFunc func(model.Request) (model.Answer, error)

// fakeModel is a model with a fixed answer to its n-th request.
type fakeModel struct {
	mu       sync.Mutex
	requests []model.Request
	answers  []answerFunc
}

func (s *fakeModel) Answer(_ context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if n >= len(s.answers) {
		return model.Answer{}, reeve.Errorf(reeve.ModelFailed, "request %d was not expected", n+1)
	}
	a, err := s.answers[n](r)
	if watch != nil && err == nil {
		watch(model.Delta{Type: model.TextDelta, Text: a.Text()})
	}
	return a, err
}

// textAnswer returns an answer with text.
func textAnswer(text string) answerFunc {
	return func(model.Request) (model.Answer, error) {
		return model.Answer{Stop: model.StopEnd, Parts: []model.Part{{Type: model.Text, Text: text}},
			Usage: model.Usage{Input: 10, Output: 5, Micros: 7}}, nil
	}
}

// callAnswer returns an answer that calls tools, given as pairs of name and arguments.
func callAnswer(pairs ...string) answerFunc {
	return func(model.Request) (model.Answer, error) {
		a := model.Answer{Stop: model.StopTools}
		for i := 0; i < len(pairs); i += 2 {
			a.Parts = append(a.Parts, model.Part{Type: model.ToolCall, ID: fmt.Sprint("call_", i/2), Name: pairs[i],
				Args: json.RawMessage(pairs[i+1])})
		}
		return a, nil
	}
}

// harness is a ModelRunner with a real store, gate and scheduler.
type harness struct {
	t            testing.TB
	db           *store.DB
	gate         *gate.Gate
	queue        *wake.Queue
	scheduler    *wake.Scheduler
	runner       *ModelRunner
	model        *fakeModel
	agent        reeve.Agent
	conversation reeve.Conversation
	ended        []reeve.Run
}

// newHarness returns a harness with one agent, its tools, a conversation, and a model with the given answers.
func newHarness(t testing.TB, config string, tools []reeve.Tool, answers ...answerFunc) *harness {
	t.Helper()
	w := &harness{t: t, model: &fakeModel{answers: answers}}
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	w.must(err)
	w.db, err = store.Open(t.Context(), e, make([]byte, 32))
	w.must(err)
	t.Cleanup(func() { _ = w.db.Close() })
	w.restart(tools)
	w.update(func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(t.Context(), home, "Home"); err != nil {
			return err
		}
		w.agent = reeve.Agent{ID: "agt_one", WorkspaceID: home, Name: "one", Kind: "assistant",
			Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, Config: json.RawMessage(config), CreatedAt: tx.Now()}
		if err := tx.Agents().InsertAgent(t.Context(), w.agent); err != nil {
			return err
		}
		for _, tool := range tools {
			if err := tx.Agents().Attach(t.Context(), w.agent, tool, json.RawMessage("{}")); err != nil {
				return err
			}
		}
		w.conversation = reeve.Conversation{ID: tx.NewID(reeve.PrefixConversation), WorkspaceID: home,
			AgentID: w.agent.ID, UserID: "ann", State: reeve.ConversationActive}
		return tx.Chat().InsertConversation(t.Context(), w.conversation)
	})
	return w
}

// restart replaces the gate and the scheduler, as a restarted server does.
func (w *harness) restart(tools []reeve.Tool) {
	w.t.Helper()
	w.gate = gate.New(gate.Config{DB: w.db, Log: slog.New(slog.DiscardHandler)})
	for _, tool := range tools {
		w.must(w.gate.Catalogue.AddTool(tool))
	}
	w.must(w.gate.Open(w.t.Context()))
	w.runner = &ModelRunner{DB: w.db, Gate: w.gate, Model: w.model, Log: slog.New(slog.DiscardHandler)}
	w.queue = wake.NewQueue(w.db)
	brain := &Brain{DB: w.db, ModelRunner: w.runner, Rehearsal: &Rehearsal{DB: w.db, Gate: w.gate}}
	scheduler, err := wake.NewScheduler(wake.Config{DB: w.db, Log: slog.New(slog.DiscardHandler),
		Process: w.gate.Process(), Queue: w.queue,
		Timetable: wake.NewTimetable(wake.Limits{}), Brain: brain,
		AfterEnd: []func(reeve.Run){func(run reeve.Run) { w.ended = append(w.ended, run) }}})
	w.must(err)
	w.scheduler = scheduler
}

func (w *harness) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) update(f func(*store.Tx) error) {
	w.t.Helper()
	w.must(w.db.Update(w.t.Context(), f))
}

// beginTurn begins a turn with a user message.
func (w *harness) beginTurn(text string) (run reeve.Run) {
	w.t.Helper()
	ctx := w.t.Context()
	w.update(func(tx *store.Tx) error {
		run = reeve.Run{ID: tx.NewID(reeve.PrefixRun), WorkspaceID: home, AgentID: w.agent.ID, Reason: reeve.ReasonUser,
			SessionID: w.conversation.ID, UserID: "ann", Input: text,
			ThreadID: w.conversation.ThreadID(), State: reeve.RunRunning, Wakes: 1, Attempts: 1,
			Owner: w.gate.Process(), StartedAt: tx.Now()}
		run.Key = reeve.DeriveID("wake", run.ID)
		info, err := json.Marshal(reeve.MessageInfo{Type: "said", User: "ann"})
		if err != nil {
			return err
		}
		if err := tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: home,
			ThreadID: run.ThreadID, AgentID: w.agent.ID, RunID: run.ID,
			Kind: reeve.UserMessage, Content: text, Metadata: info}); err != nil {
			return err
		}
		_, err = tx.Runs().InsertRun(ctx, run)
		return err
	})
	w.queue.Enqueue(run)
	return run
}

// runUntilIdle steps the gate and the scheduler until both are idle.
func (w *harness) runUntilIdle() {
	w.t.Helper()
	for range 100 {
		n, err := w.gate.Step(w.t.Context())
		w.must(err)
		runs, _, err := w.scheduler.Step(w.t.Context(), 8)
		w.must(err)
		for _, run := range runs {
			w.scheduler.Serve(w.t.Context(), run)
		}
		if n+len(runs) == 0 {
			return
		}
	}
	w.t.Fatal("the scheduler is not idle after 100 steps")
}

// getRun returns a run.
func (w *harness) getRun(id string) (run reeve.Run) {
	w.t.Helper()
	w.must(w.db.View(w.t.Context(), func(s *store.Snap) (err error) {
		run, err = s.Runs().GetRun(w.t.Context(), home, id)
		return err
	}))
	return run
}

// listFrames returns the stored frames.
func (w *harness) listFrames() (list []reeve.Frame) {
	w.t.Helper()
	w.must(w.db.View(w.t.Context(), func(s *store.Snap) (err error) {
		list, err = s.Chat().ListFrames(w.t.Context(), w.conversation.ID, 0, 1000)
		return err
	}))
	return list
}

// lastRequest returns the last request to the model.
func (w *harness) lastRequest() model.Request {
	w.t.Helper()
	if len(w.model.requests) == 0 {
		w.t.Fatal("the model received no request")
	}
	return w.model.requests[len(w.model.requests)-1]
}
