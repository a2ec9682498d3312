package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// Gate is what a thinker needs of the gate.
type Gate interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
	CallAll(ctx context.Context, calls []reeve.Call) []reeve.BatchResult
	AskModel(ctx context.Context, who reeve.Call, most reeve.Amount, ask func(context.Context) (reeve.Amount, error),
		keep func(context.Context, *store.Tx) error) error
	CallableTools(ctx context.Context, who reeve.Call) ([]reeve.Tool, error)
	CacheAncestry(run reeve.Run) // a run that will call: what its row says of it need not be read again
}

// EventSink shows a turn to people while it goes on.
type EventSink interface {
	Token(conversation string, f reeve.Frame) // a piece of an answer, which is not kept
	Changed(conversation string)              // frames were kept
}

// ModelRunner is the model brain.
type ModelRunner struct {
	DB       *store.DB
	Gate     Gate
	Model    model.Model
	Events    EventSink        // shows turns. Default: nobody watches
	Assemble Assembler        // makes the request that begins a turn. Default: Assembly
	Extract  Extractor        // takes notes of a turn that is over. Default: the model, if the agent's config says so
	Steps    AutomationRunner // runs automations that an agent's config names in their place
	Remember func()           // told that turns are to be put into a few words. Default: whoever does it finds out
	Tracer   trace.Tracer     // gets a span for each run and question. Default: none
	Resolve  Resolver         // finds the provider of a model. Default: not known
	OnAnswer func(ModelCall)  // told of each question. Default: nobody
	Log      *slog.Logger
	turnCache     turnCache
}

// turn is a run in a thinker's hands.
type turn struct {
	*ModelRunner
	run     reeve.Run
	server  reeve.RunServer // serves automations that do steps of the turn
	agent   reeve.Agent
	set     Settings
	log     *runLog
	tools   []reeve.Tool
	clientTools  []model.Tool    // tools that the client itself answers
	isClientTool map[string]bool // their names
	base    *model.Request  // what the model is asked at the beginning of the turn
	// turns up to this one should be put into a few words: the model is no longer shown all of them
	summarizeUpTo string
	deferred  map[string]bool // calls, by action, whose results come later
	reportedResults      map[string]bool // calls, by action, whose results clients have been told
	streamedText     strings.Builder // what was streamed of the answer under way
	discardSent    bool            // clients know that what they heard of the answer under way does not count
}

// run goes on with a run until it ends, or waits.
func (t *ModelRunner) run(ctx context.Context, run reeve.Run, begin runStart, set Settings,
	server reeve.RunServer) reeve.RunEnd {
	v := &turn{ModelRunner: t, run: run, server: server, agent: begin.agent, set: set, isClientTool: map[string]bool{},
		deferred: map[string]bool{}, reportedResults: map[string]bool{}}
	t.Gate.CacheAncestry(run)
	return v.traceRun(ctx, func(ctx context.Context) reeve.RunEnd { return v.loop(ctx, begin) })
}

func (v *turn) loop(ctx context.Context, begin runStart) reeve.RunEnd {
	err := v.useLog(ctx, begin.log)
	for {
		if err != nil {
			return v.failed(err)
		}
		if end := v.step(ctx); end != nil {
			end.Moves, end.Issues, end.Pending = len(v.log.answers), v.issues(), len(v.log.awaitedCalls())
			return *end
		}
		err = v.readLog(ctx)
	}
}

// step takes the one step that follows from the log; an end means that there is none for now.
func (v *turn) step(ctx context.Context) *reeve.RunEnd {
	if err := ctx.Err(); err != nil {
		end := v.failed(context.Cause(ctx))
		return &end
	}
	last := v.log.lastAnswer()
	if last == nil {
		return v.askModel(ctx)
	}
	if len(v.log.answers) > v.set.MaxMoves { // what it still wants is not done
		return v.complete(ctx, last)
	}
	if open := v.openCalls(last); len(open) > 0 {
		return v.callTools(ctx, open)
	}
	if v.callsClientTool(last) {
		return v.complete(ctx, last)
	}
	if len(last.calls) > 0 || v.log.hasUnseenResults() {
		return v.askModel(ctx)
	}
	if len(v.log.awaitedCalls()) > 0 {
		return &reeve.RunEnd{State: reeve.RunParked, Output: last.answer.Text(), Results: v.log.deferredResults + 1}
	}
	return v.complete(ctx, last)
}

// openCalls lists the calls of an answer that are still to be made, or whose outcome is to be asked for.
func (v *turn) openCalls(m *modelAnswer) []*answerCall {
	var out []*answerCall
	for _, c := range m.calls {
		if c.result == nil && !v.isClientTool[c.Name] && !(c.action != nil && v.deferred[c.action.ID]) {
			out = append(out, c)
		}
	}
	return out
}

// callsClientTool tells whether an answer calls a tool that the client itself offers: the turn ends, and the client answers
// in the next.
func (v *turn) callsClientTool(m *modelAnswer) bool {
	for _, c := range m.calls {
		if v.isClientTool[c.Name] {
			return true
		}
	}
	return false
}

// readLog reads the run's log.
func (v *turn) readLog(ctx context.Context) error {
	var l *runLog
	err := v.DB.View(ctx, func(s *store.Snap) (err error) {
		l, err = readRun(ctx, s, v.run)
		return err
	})
	if err != nil {
		return err
	}
	return v.useLog(ctx, l)
}

// useLog goes by a log of the run, and notes first what woke the agent if nobody has.
func (v *turn) useLog(ctx context.Context, l *runLog) error {
	if v.log = l; len(l.inputs) > 0 {
		return v.readOffers()
	}
	if err := v.recordWake(ctx); err != nil {
		return err
	}
	return v.readLog(ctx)
}

// readOffers reads which tools the client itself offers.
func (v *turn) readOffers() error {
	if v.log.info.Given == nil || len(v.log.info.Given.Offered) == 0 || len(v.isClientTool) > 0 {
		return nil
	}
	if err := json.Unmarshal(v.log.info.Given.Offered, &v.clientTools); err != nil {
		return err
	}
	for _, t := range v.clientTools {
		v.isClientTool[t.Name] = true
	}
	return nil
}

// clientHistory is what a client with a history of its own brought along.
func (v *turn) clientHistory() reeve.ClientHistory {
	if v.log.info.Given == nil {
		return reeve.ClientHistory{}
	}
	return *v.log.info.Given
}

// conversation is the conversation that the run is a turn of; empty means none.
func (v *turn) conversation() string {
	if v.run.Reason == reeve.ReasonUser {
		return v.run.SessionID
	}
	return ""
}

// caller is the run as the gate knows it.
func (v *turn) caller() reeve.Call {
	return reeve.Call{Workspace: v.run.WorkspaceID, Agent: v.run.AgentID, Run: v.run.ID, Session: v.conversation(),
		User: v.run.UserID, Via: reeve.ViaRun,
		Tools: v.log.info.Tools}
}

func (v *turn) issues() reeve.TurnIssues {
	i := v.run.Issues
	i.ToolFailures = v.log.countFailures()
	i.LimitReached = len(v.log.answers) > v.set.MaxMoves
	i.AnswerCut = v.log.cutReason()
	return i
}

func (v *turn) failed(err error) reeve.RunEnd {
	end := failedEnd(err)
	if end.Err.Code == reeve.Canceled || end.Err.Code == reeve.Stopped {
		end.State = reeve.RunCancelled
	}
	if v.log != nil {
		end.Moves, end.Issues = len(v.log.answers), v.issues()
	}
	return end
}

// failStep is failed for a step.
func (v *turn) failStep(err error) *reeve.RunEnd {
	end := v.failed(err)
	return &end
}

// complete completes the run with what was said last.
func (v *turn) complete(ctx context.Context, last *modelAnswer) *reeve.RunEnd {
	v.run.Issues.ExtractionFailed = !v.extractNotes(ctx)
	// the server is stopping: whoever takes the run up takes the notes
	if v.run.Issues.ExtractionFailed && ctx.Err() != nil && reeve.CancelCause(ctx) == nil {
		return v.failStep(context.Cause(ctx))
	}
	end := &reeve.RunEnd{State: reeve.RunCompleted, Output: last.answer.Text(), Notify: true}
	if len(v.log.answers) > v.set.MaxMoves {
		end.Err = reeve.Errorf(reeve.StepLimit, "the turn came to its limit of %d moves", v.set.MaxMoves)
		if len(last.calls) > 0 && !v.callsClientTool(last) {
			end.State = reeve.RunFailed
		}
	}
	if end.Output == noReport {
		end.Notify = false
	}
	return end
}
