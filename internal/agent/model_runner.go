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

// Gate is the part of the gate that ModelRunner uses.
type Gate interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
	CallBatch(ctx context.Context, calls []reeve.Call) []reeve.BatchResult
	AskModel(ctx context.Context, who reeve.Call, cost reeve.ModelCost,
		ask func(ctx context.Context, maxOutput int64) (reeve.Amount, error),
		keep func(context.Context, *store.Tx) error) error
	CallableTools(ctx context.Context, who reeve.Call) ([]reeve.Tool, error)
	RunGate
}

// RunGate is the part of Gate that begins a run.
type RunGate interface {
	// RedactText returns a function that removes the secrets of a workspace from texts and returns at most n bytes.
	RedactText(ctx context.Context, s *store.Snap, workspace string) (func(text string, n int) string, error)
	CacheAncestry(run reeve.Run) // stores on whose behalf a run acts, so that its calls need not read it
}

// EventSink shows a turn to clients while it is in progress.
type EventSink interface {
	Token(conversation string, f reeve.Frame) // sends a piece of an answer, which is not stored
	Changed(conversation string)              // reports that frames were stored
}

// ModelRunner is the model brain.
type ModelRunner struct {
	DB       *store.DB
	Gate     Gate
	Model    model.Model
	Events   EventSink // shows turns. Default: none
	Assemble Assembler // makes the request that begins a turn. Default: DefaultAssembler
	// extracts notes from a finished turn. Default: the model, if the agent's config enables notes
	Extract      Extractor
	Steps        AutomationRunner // runs the automations that an agent's config names as steps
	Notes        Recaller         // finds notes
	OnSummaryDue func()           // called when turns should be summarized. Default: the summarizer polls
	Tracer       trace.Tracer     // gets a span for each run and each request to a model. Default: none
	Resolve      Resolver         // finds the provider of a model. Default: unknown
	OnAnswer     func(ModelCall)  // called after each request to a model. Default: none
	// Refuse returns why a model must not play an agent, or nil. Default: none is refused
	Refuse    func(a reeve.Agent, model string) error
	Log       *slog.Logger
	turnCache turnCache
}

// runInfo identifies a run that ModelRunner executes, with its agent, settings and log.
type runInfo struct {
	*ModelRunner
	run    reeve.Run
	server reeve.RunServer // serves automations that run as steps of the turn
	agent  reeve.Agent
	set    Settings
	log    *runLog
	// showsUntrusted is true if the model was shown text from outside, such as an untrusted note, or an earlier turn
	// that read a mail. Its own notes may repeat the text.
	showsUntrusted bool
}

// modelRun executes a run: it asks the model, makes the calls of its answers and shows both to clients.
type modelRun struct {
	runInfo
	tools        []reeve.Tool
	clientTools  []model.Tool    // tools that the client itself executes
	isClientTool map[string]bool // names of clientTools
	base         *model.Request  // request at the beginning of the turn; nil until assembled
	isBaseStored bool
	leftOut      []reeve.Omission // what base does not show
	// summarizeUpTo is the last turn or run that should be summarized, because the model no longer gets all of them.
	summarizeUpTo   string
	deferred        map[string]bool // action ids of calls whose results come later
	reportedResults map[string]bool // action ids of calls whose results were sent to clients
	streamedText    strings.Builder // streamed text of the current answer
	discardSent     bool            // clients were told to discard the text of an interrupted answer
}

// run executes a run until it ends or waits.
func (t *ModelRunner) run(ctx context.Context, run reeve.Run, begin runStart, set Settings,
	server reeve.RunServer) reeve.RunEnd {
	v := &modelRun{runInfo: runInfo{ModelRunner: t, run: run, server: server, agent: begin.agent, set: set},
		isClientTool: map[string]bool{}, deferred: map[string]bool{}, reportedResults: map[string]bool{}}
	t.Gate.CacheAncestry(run)
	return v.traceRun(ctx, func(ctx context.Context) reeve.RunEnd { return v.loop(ctx, begin) })
}

// loop takes steps until the run ends or waits.
func (v *modelRun) loop(ctx context.Context, start runStart) reeve.RunEnd {
	err := v.begin(ctx, start.log)
	if err == nil && v.Refuse != nil {
		err = v.Refuse(v.agent, v.set.Model)
	}
	for {
		if err != nil {
			return v.failed(err)
		}
		if end := v.step(ctx); end != nil {
			end.ModelRequests, end.Issues, end.PendingCalls = len(v.log.answers), v.issues(), len(v.log.awaitedCalls())
			return *end
		}
		err = v.readLog(ctx)
	}
}

// step takes the one step that follows from the log. It returns nil if another step follows.
func (v *modelRun) step(ctx context.Context) *reeve.RunEnd {
	if err := ctx.Err(); err != nil {
		end := v.failed(context.Cause(ctx))
		return &end
	}
	last := v.log.lastAnswer()
	if last == nil {
		return v.askModel(ctx)
	}
	if len(v.log.answers) > v.set.MaxModelRequests { // the calls of the last answer are not made
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
		return &reeve.RunEnd{State: reeve.RunParked, Output: last.answer.Text(),
			ResultsToResume: v.log.deferredResults + 1}
	}
	return v.complete(ctx, last)
}

// openCalls lists the calls of an answer that have no result yet. Calls that the client executes, and deferred calls,
// are not included.
func (v *modelRun) openCalls(m *modelAnswer) []*answerCall {
	var out []*answerCall
	for _, c := range m.calls {
		if c.result == nil && !v.isClientTool[c.Name] && !(c.action != nil && v.deferred[c.action.ID]) {
			out = append(out, c)
		}
	}
	return out
}

// callsClientTool reports whether an answer calls a tool of the client. The turn then ends, and the client sends the
// result with the next turn.
func (v *modelRun) callsClientTool(m *modelAnswer) bool {
	for _, c := range m.calls {
		if v.isClientTool[c.Name] {
			return true
		}
	}
	return false
}

// begin sets the run's log. If the log is empty, begin first stores what woke the agent.
func (v *modelRun) begin(ctx context.Context, l *runLog) error {
	if v.log = l; len(l.inputs) == 0 {
		if err := v.recordWake(ctx); err != nil {
			return err
		}
		if err := v.readLog(ctx); err != nil {
			return err
		}
	}
	return v.readOffers()
}

// readLog reads the run's log.
func (v *modelRun) readLog(ctx context.Context) error {
	return v.DB.View(ctx, func(s *store.Snap) error {
		l, err := readRun(ctx, s, v.run)
		if err == nil {
			v.log = l
		}
		return err
	})
}

// readOffers decodes the tools that the client offers.
func (v *modelRun) readOffers() error {
	if v.log.info.ClientHistory == nil || len(v.log.info.ClientHistory.Offered) == 0 {
		return nil
	}
	if err := json.Unmarshal(v.log.info.ClientHistory.Offered, &v.clientTools); err != nil {
		return err
	}
	for _, t := range v.clientTools {
		v.isClientTool[t.Name] = true
	}
	return nil
}

// clientHistory returns the history and settings that a client sent with its request.
func (v *runInfo) clientHistory() reeve.ClientHistory {
	if v.log.info.ClientHistory == nil {
		return reeve.ClientHistory{}
	}
	return *v.log.info.ClientHistory
}

// conversation returns the conversation of a turn, or "" for any other run.
func (v *runInfo) conversation() string {
	if v.run.Reason == reeve.ReasonUser {
		return v.run.SessionID
	}
	return ""
}

// caller returns a call with the identity of the run, without a tool.
func (v *runInfo) caller() reeve.Call {
	return reeve.Call{Workspace: v.run.WorkspaceID, Agent: v.run.AgentID, Run: v.run.ID, Session: v.conversation(),
		User: v.run.UserID, Via: reeve.ViaRun,
		Tools: v.log.info.Tools}
}

func (v *modelRun) issues() reeve.TurnIssues {
	i := v.run.Issues
	i.ToolFailures = v.log.countFailures()
	i.LimitReached = len(v.log.answers) > v.set.MaxModelRequests
	i.AnswerCut = v.log.cutReason()
	return i
}

func (v *modelRun) failed(err error) reeve.RunEnd {
	end := failedEnd(err)
	if end.Err.Code == reeve.Canceled || end.Err.Code == reeve.Stopped {
		end.State = reeve.RunCancelled
	}
	if v.log != nil {
		end.ModelRequests, end.Issues = len(v.log.answers), v.issues()
	}
	return end
}

// failStep returns the end of a failed run as the result of a step.
func (v *modelRun) failStep(err error) *reeve.RunEnd {
	end := v.failed(err)
	return &end
}

// complete ends the run with the last answer, after extracting notes.
func (v *modelRun) complete(ctx context.Context, last *modelAnswer) *reeve.RunEnd {
	v.run.Issues.ExtractionFailed = !v.extractNotes(ctx)
	// the server is stopping: the process that resumes the run extracts the notes
	if v.run.Issues.ExtractionFailed && ctx.Err() != nil && reeve.CancelCause(ctx) == nil {
		return v.failStep(context.Cause(ctx))
	}
	end := &reeve.RunEnd{State: reeve.RunCompleted, Output: last.answer.Text(), Notify: true}
	if len(v.log.answers) > v.set.MaxModelRequests {
		end.Err = reeve.Errorf(reeve.StepLimit, "the turn reached its limit of %d model requests",
			v.set.MaxModelRequests)
		if len(last.calls) > 0 && !v.callsClientTool(last) {
			end.State = reeve.RunFailed
		}
	}
	if end.Output == noReport {
		end.Notify = false
	}
	return end
}
