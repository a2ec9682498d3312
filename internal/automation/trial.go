package automation

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"reeve"
	"reeve/internal/canonjson"
)

// trialTimeout limits the time of a trial.
const trialTimeout = time.Minute

// trial describes a script that is tried out with the automation's own tools. Reads are real. Changes are previewed and
// not made. A trial is not a run: it stores no items and notifies no one.
type trial struct {
	automation   reeve.Automation
	source       string
	language     string
	input        string
	user         string
	sameClock    *reeve.Run // run whose time and random seed the trial uses; nil means its own
	recording    *recording // results of earlier reads; nil means that every read is made
	delegators   []reeve.Delegator
	forScriptJob bool // the script may query scripts
}

// trialResult is the result of a trial.
type trialResult struct {
	Value   json.RawMessage    `json:"value,omitempty"`
	Error   string             `json:"error,omitempty"`
	Code    reeve.Code         `json:"code,omitempty"`
	Class   reeve.FailureClass `json:"class,omitempty"`
	Log     string             `json:"log,omitempty"`
	Items   []trialItem        `json:"items"`
	Changes []trialChange      `json:"changes"`
	ids     []string
	err     *reeve.Error
}

type trialItem struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	IsDone bool   `json:"is_done,omitempty"`
}

type trialChange struct {
	Item    string          `json:"item"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Preview string          `json:"preview,omitempty"`
	// ordinals of the changes, from 1, whose results this one uses; its arguments have placeholders
	DependsOn []int `json:"depends_on,omitempty"`
}

// trialRecord collects items and changes of a trial in memory.
type trialRecord struct {
	playback *playback // nil means that every read is made
	items    []trialItem
	changes  []trialChange
}

// tryScript runs a trial. An error of the script is part of the result; err is any other error.
func (r *Runner) tryScript(ctx context.Context, t trial) (trialResult, error) {
	now := reeve.Now()
	run := reeve.Run{ID: r.DB.NewID(reeve.PrefixTrial), WorkspaceID: t.automation.WorkspaceID,
		AgentID: t.automation.AgentID, Reason: reeve.ReasonManual, UserID: t.user, Input: t.input, StartedAt: now}
	run.Key = run.ID
	if t.sameClock != nil {
		run.Key, run.StartedAt = t.sameClock.Key, t.sameClock.StartedAt
	}
	run.OnBehalfOf = t.delegators
	w := r.newExecution(ctx, run)
	w.script, w.record = reeve.ScriptVersion{Source: t.source, Language: t.language},
		reeve.ScriptRun{RunKey: run.ID, RunID: run.ID, Type: reeve.DryRun}
	w.trial = &trialRecord{items: []trialItem{}, changes: []trialChange{}}
	if t.recording != nil {
		w.trial.playback = &playback{t.recording, map[string]int{}}
	}
	tools, err := r.Gate.CallableTools(ctx, reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID,
		OnBehalfOf: t.delegators})
	if err != nil {
		return trialResult{}, err
	}
	if err := w.nameFunctions(ctx, tools); err != nil {
		return trialResult{}, err
	}
	w.functions.forScriptJob = t.forScriptJob
	r.ItemRule.add(w)
	defer r.ItemRule.remove(w)
	limits := r.Limits
	limits.Time = min(limits.Time, trialTimeout)
	value, err := r.Pool.Run(ctx, w.jsScript(), limits, w)
	end := w.decideEnd(ctx, value, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isOver = true
	if t := w.buffer.timer; t != nil {
		t.Stop()
	}
	out := trialResult{Log: w.snapshotRecord().Log, Items: w.trial.items, Changes: w.trial.changes}
	for _, v := range out.Items {
		out.ids = append(out.ids, v.ID)
	}
	if end.State == reeve.RunCompleted {
		out.Value = value
		return out, nil
	}
	if end.Err == nil {
		end.Err = reeve.Errorf(reeve.Conflict, "the script did not complete: %s", end.Output)
	}
	out.err, out.Error, out.Code, out.Class = end.Err, end.Err.Message, end.Err.Code, w.failureClass(err, end.Err)
	return out, ctx.Err()
}

// recording holds the results of reads, so that two scripts read the same data. Reads that it lacks are made and added.
type recording struct {
	mu      sync.Mutex
	results map[string][]json.RawMessage // by tool and arguments, in order
}

func newRecording() *recording { return &recording{results: map[string][]json.RawMessage{}} }

// playback reads a recording from its beginning.
type playback struct {
	*recording
	next map[string]int
}

func recordingKey(tool string, args json.RawMessage) string {
	if c, err := canonjson.Canonical(args); err == nil {
		args = c
	}
	return tool + "\x00" + string(args)
}

// nextResult returns the result of the next call with this key, or false if the recording has no more.
func (p *playback) nextResult(key string) (json.RawMessage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.next[key]
	if p.next[key]++; n < len(p.results[key]) {
		return p.results[key][n], true
	}
	return nil, false
}

func (t *recording) add(key string, v json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results[key] = append(t.results[key], v)
}

// readInTrial returns a read from the recording, or makes the call and adds its result.
func (w *execution) readInTrial(ctx context.Context, c reeve.Call) (json.RawMessage, error) {
	key := recordingKey(c.Tool, c.Args)
	if p := w.trial.playback; p != nil {
		if v, ok := p.nextResult(key); ok {
			return v, nil
		}
	}
	res, err := w.Gate.Call(ctx, c)
	v, err := w.scriptValue(ctx, res, err)
	if p := w.trial.playback; err == nil && p != nil {
		p.add(key, v)
	}
	return v, err
}

// recordTrialItem adds the item that a trial has entered. The caller holds w.mu.
func (w *execution) recordTrialItem(o *openItem, done bool) {
	if w.trial != nil {
		w.trial.items = append(w.trial.items, trialItem{o.ID, o.Title, done})
	}
}
