package automation

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"reeve"
	"reeve/internal/canonjson"
)

// trialTime is how long a script may take that is only tried.
const trialTime = time.Minute

// trial is a script that is tried out: it runs with the automation's own tools through the gate, its reads are real,
// and its changes are previewed and not made. It is no run: nothing is noted of its items, and nobody is told.
type trial struct {
	automation reeve.Automation
	source     string
	language   string
	input      string
	user       string
	like       *reeve.Run // its clock and its chance are this run's; nil means its own
	tape       *tape      // what its reads give; nil means what they give now
	behalf     []reeve.Delegator
	task       bool // it is for whoever plans or mends, and may look at scripts
}

// tried is what a trial came to.
type tried struct {
	Value   json.RawMessage    `json:"value,omitempty"`
	Error   string             `json:"error,omitempty"`
	Code    reeve.Code         `json:"code,omitempty"`
	Class   reeve.FailureClass `json:"class,omitempty"`
	Log     string             `json:"log,omitempty"`
	Items   []triedItem        `json:"items"`
	Changes []triedCall        `json:"changes"`
	ids     []string
	err     *reeve.Error
}

type triedItem struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	IsDone bool   `json:"is_done,omitempty"`
}

type triedCall struct {
	Item    string          `json:"item"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Preview string          `json:"preview,omitempty"`
}

// rehearsed is what a trial keeps instead of rows.
type rehearsed struct {
	player  *player // nil means that reads are real
	items   []triedItem
	changes []triedCall
}

// try tries a script. The error is ours; what the script failed with is in what it came to.
func (r *Runner) try(ctx context.Context, t trial) (tried, error) {
	now := reeve.Now()
	run := reeve.Run{ID: r.DB.NewID(reeve.PrefixTrial), WorkspaceID: t.automation.WorkspaceID,
		AgentID: t.automation.AgentID, Reason: reeve.ReasonManual, UserID: t.user, Input: t.input, StartedAt: now}
	run.Key = run.ID
	if t.like != nil {
		run.Key, run.StartedAt = t.like.Key, t.like.StartedAt
	}
	run.OnBehalfOf = t.behalf
	w := r.newWork(ctx, run)
	w.script, w.note = reeve.ScriptVersion{Source: t.source, Language: t.language},
		reeve.ScriptRun{RunKey: run.ID, RunID: run.ID, Type: reeve.DryRun}
	w.trial = &rehearsed{items: []triedItem{}, changes: []triedCall{}}
	if t.tape != nil {
		w.trial.player = &player{t.tape, map[string]int{}}
	}
	tools, err := r.Gate.CallableTools(ctx, reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID,
		OnBehalfOf: t.behalf})
	if err != nil {
		return tried{}, err
	}
	w.names = nameTools(tools)
	w.names.task = t.task
	r.Items.add(w)
	defer r.Items.remove(w)
	limits := r.Limits
	limits.Time = min(limits.Time, trialTime)
	value, err := r.Pool.Run(ctx, w.text(), limits, w)
	end := w.verdict(ctx, value, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if t := w.ledger.timer; t != nil {
		t.Stop()
	}
	out := tried{Log: w.noted().Log, Items: w.trial.items, Changes: w.trial.changes}
	for _, v := range out.Items {
		out.ids = append(out.ids, v.ID)
	}
	if end.State == reeve.RunCompleted {
		out.Value = value
		return out, nil
	}
	if end.Err == nil {
		end.Err = reeve.Errorf(reeve.Conflict, "it came to no end: %s", end.Output)
	}
	out.err, out.Error, out.Code, out.Class = end.Err, end.Err.Message, end.Err.Code, w.class(err, end.Err)
	return out, ctx.Err()
}

// tape is what reads gave, so that two scripts are told the same. What is not on it is read, and put on it.
type tape struct {
	mu    sync.Mutex
	heard map[string][]json.RawMessage // by tool and arguments, in order
}

func newTape() *tape { return &tape{heard: map[string][]json.RawMessage{}} }

// player is a tape from its beginning.
type player struct {
	*tape
	at map[string]int
}

func tapeKey(tool string, args json.RawMessage) string {
	if c, err := canonjson.Canonical(args); err == nil {
		args = c
	}
	return tool + "\x00" + string(args)
}

// play gives what the next such call gave; false means that nobody knows.
func (p *player) play(key string) (json.RawMessage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.at[key]
	if p.at[key]++; n < len(p.heard[key]) {
		return p.heard[key][n], true
	}
	return nil, false
}

func (t *tape) record(key string, v json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard[key] = append(t.heard[key], v)
}

// trialRead is a read of a script that is tried: from the tape, if it is there.
func (w *work) trialRead(ctx context.Context, c reeve.Call) (json.RawMessage, error) {
	key := tapeKey(c.Tool, c.Args)
	if p := w.trial.player; p != nil {
		if v, ok := p.play(key); ok {
			return v, nil
		}
	}
	res, err := w.Gate.Call(ctx, c)
	v, err := w.result(ctx, res, err)
	if p := w.trial.player; err == nil && p != nil {
		p.record(key, v)
	}
	return v, err
}

// noteTried notes the item that a script which is tried has entered. The caller holds w.mu.
func (w *work) noteTried(o *opened, done bool) {
	if w.trial != nil {
		w.trial.items = append(w.trial.items, triedItem{o.ID, o.Title, done})
	}
}
