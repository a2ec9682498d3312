package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"reeve"
	"reeve/api"
)

var crashFull = flag.Bool("crash.full", false, "kill at every point on both engines, and 1,000 times at random on each")

// TestCrash kills the real server before and after every commit and every effect, for each effect class, and at random
// moments. It restarts the server, repeats the call as a client would, and compares the ledger with an outside witness.
// An effect is lost if the operation ended and the witness saw nothing. It is doubled if the witness saw two.
func TestCrash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	engines := []*engine{sqliteEngine(t), postgresEngine(t)}
	for _, e := range engines {
		var err error
		if e.template, err = r.prepare(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	r.killEverywhere(engines)
	t.Logf("the sweep took %s", time.Since(start).Round(time.Second))
	for _, e := range engines {
		start := time.Now()
		r.killDuringCalls(e)
		t.Logf("the storm on %s took %s", e.name, time.Since(start).Round(time.Second))
	}
	r.report()
}

// scenario is one call, from the client's first attempt to the end of its operation.
type scenario struct {
	name      string
	class     reeve.Effect
	workspace string
	agent     string
	tool      string
}

const (
	effectFile = "/effect.txt"
	unlimited  = "default"  // a workspace without budgets
	limited    = "budgeted" // and one with
)

// scenarios are the effect classes: plain, after an approval, and with budgets.
var scenarios = []scenario{
	{"local", reeve.Local, unlimited, "free", "write_file"},
	{"keyed", reeve.Keyed, unlimited, "free", "far_keyed"},
	{"verifiable", reeve.Verifiable, unlimited, "free", "far_verifiable"},
	{"unsafe", reeve.Unsafe, unlimited, "free", "far_unsafe"},
	{"approved local", reeve.Local, unlimited, "asking", "write_file"},
	{"approved keyed", reeve.Keyed, unlimited, "asking", "far_keyed"},
	{"approved verifiable", reeve.Verifiable, unlimited, "asking", "far_verifiable"},
	{"approved unsafe", reeve.Unsafe, unlimited, "free", "far_privileged"},
	{"budgeted local", reeve.Local, limited, "free", "write_file"},
	{"budgeted keyed", reeve.Keyed, limited, "free", "far_keyed"},
	{"budgeted verifiable", reeve.Verifiable, limited, "free", "far_verifiable"},
	{"budgeted unsafe", reeve.Unsafe, limited, "free", "far_unsafe"},
}

func (s scenario) args(key string) any {
	if s.class == reeve.Local {
		return map[string]string{"path": effectFile, "content": key}
	}
	return map[string]string{"lane": key}
}

// rig starts servers and a witness and counts kills and effects.
type rig struct {
	t       *testing.T
	family  *processGroup
	program string
	witness caller
	env     []string // more of the servers' environment
	keys    atomic.Int64

	mu    sync.Mutex
	table map[string]*row
	order []string
}

// row is a line of the report.
type row struct {
	engine, name                          string
	kills, calls, lost, doubled, surfaced int
}

func (r *rig) count(e *engine, name string, f func(*row)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := e.name + "\t" + name
	if r.table[id] == nil {
		r.table[id] = &row{engine: e.name, name: name}
		r.order = append(r.order, id)
	}
	f(r.table[id])
}

// report prints the table and fails the test if an effect was lost or doubled.
func (r *rig) report() {
	rank := func(id string) int {
		n := slices.IndexFunc(scenarios, func(s scenario) bool { return strings.HasSuffix(id, "\t"+s.name) })
		return (n + len(scenarios) + 1) % (len(scenarios) + 1) // what is no scenario comes last
	}
	slices.SortStableFunc(r.order, func(a, b string) int {
		if ea, eb := r.table[a].engine, r.table[b].engine; ea != eb {
			return -strings.Compare(ea, eb)
		}
		return rank(a) - rank(b)
	})
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "engine\tclass\tkills\tcalls\teffects lost\teffects doubled\tunknown surfaced\t")
	for _, id := range r.order {
		l := r.table[id]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t\n", l.engine, l.name, l.kills, l.calls, l.lost, l.doubled,
			l.surfaced)
		if l.lost != 0 || l.doubled != 0 {
			r.t.Errorf("%s, %s: %d effects lost, %d doubled", l.engine, l.name, l.lost, l.doubled)
		}
	}
	_ = w.Flush() // to memory
	fmt.Print("\n", text.String(), "\n")
}

// newRig builds the real server and starts a witness.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, family: &processGroup{alive: map[*process]bool{}}, table: map[string]*row{}}
	t.Cleanup(r.family.killAll)
	var witness string
	r.program, witness = programPaths(t)
	p, err := r.family.start(nil, witness, "-log", filepath.Join(t.TempDir(), "effects.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.waitUntilReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.witness = caller{http: p.client(), url: p.url}
	return r
}

// newWorld creates a world, runs a server on it, and calls f to fill it.
func (r *rig) newWorld(ctx context.Context, e *engine, f func(caller) error) (world, error) {
	w, err := e.newEmptyWorld()
	if err != nil {
		return w, err
	}
	p, err := r.serve(w)
	if err != nil {
		return w, err
	}
	defer p.kill()
	if err := p.waitUntilReady(ctx); err != nil {
		return w, err
	}
	c, err := w.owner(p, unlimited)
	if err != nil {
		return w, err
	}
	if err := f(c); err != nil {
		return w, err
	}
	return w, p.stop()
}

// serverEnv returns the environment of servers, with short retry delays.
func (r *rig) serverEnv(w world) []string {
	return []string{"HOME=" + w.dir, "REEVE_DIR=" + w.dir, "REEVE_DATABASE=" + w.url(), "REEVE_LISTEN=127.0.0.1:0",
		"REEVE_LOG_LEVEL=warn",
		"REEVE_HTTP_ALLOW=" + strings.TrimPrefix(r.witness.url, "http://"), "REEVE_RATE=1000000", "REEVE_BURST=1000000",
		"REEVE_RETRY_FIRST=50ms", "REEVE_RETRY_MAX=200ms", "REEVE_RETRY_ATTEMPTS=8",
		"GOGC=400"} // most servers live so briefly that frequent garbage collection does not pay
}

// serve starts a server on a world.
func (r *rig) serve(w world, env ...string) (*process, error) {
	return r.family.start(slices.Concat(r.serverEnv(w), r.env, env), r.program, "serve")
}

// client returns an HTTP client for this process only, so that no request uses a connection of a dead one.
func (p *process) client() *http.Client {
	t := &http.Transport{MaxIdleConnsPerHost: 16}
	go func() { <-p.gone; t.CloseIdleConnections() }()
	return &http.Client{Transport: t}
}

// owner returns a caller with the owner token.
func (w world) owner(p *process, workspace string) (caller, error) {
	b, err := os.ReadFile(filepath.Join(w.dir, "owner.token"))
	return caller{http: p.client(), url: p.url, token: strings.TrimSpace(string(b)), workspace: workspace}, err
}

// prepare creates the world that others are copies of: tools at the witness, agents and budgets.
func (r *rig) prepare(ctx context.Context, e *engine) (world, error) {
	return r.newWorld(ctx, e, func(c caller) error {
		if err := c.do(ctx, "POST", "/api/workspaces", object{"id": limited}, nil); err != nil {
			return err
		}
		for _, workspace := range []string{unlimited, limited} {
			c.workspace = workspace
			if err := r.createTools(ctx, c); err != nil {
				return err
			}
		}
		for _, subject := range []string{"workspace", "agent:free"} {
			if err := c.do(ctx, "PUT", "/api/budgets/"+subject, object{"limit": object{"calls": 1_000_000}}, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// createTools gives a workspace a tool of each effect class at the witness, an agent that may use them freely, and one
// that needs approval.
func (r *rig) createTools(ctx context.Context, c caller) error {
	for id, tier := range map[string]string{"keyed": "side_effecting", "verifiable": "side_effecting",
		"unsafe": "side_effecting", "privileged": "privileged"} {
		effect := strings.Replace(id, "privileged", "unsafe", 1)
		if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_"+id, effect, tier), nil); err != nil {
			return err
		}
	}
	for name, policy := range map[string]object{"free": {}, "asking": {"tiers": object{"side_effecting": "ask"}}} {
		if err := c.do(ctx, "POST", "/api/agents", object{"name": name, "policy": policy}, nil); err != nil {
			return err
		}
		if err := attachTools(ctx, c, name, "write_file", "read_file", "far_keyed", "far_verifiable", "far_unsafe",
			"far_privileged"); err != nil {
			return err
		}
	}
	return nil
}

type object = map[string]any

// newWitnessTool returns the definition of a tool with an effect at the witness.
func (r *rig) newWitnessTool(id, effect, tier string) object {
	spec := object{"method": "POST", "url": fmt.Sprintf("%s/effects/%s/{lane}", r.witness.url, effect)}
	if effect == "verifiable" {
		spec["verify"] = object{"url": r.witness.url + "/effects/{operation_id}"}
	}
	return object{"id": id, "effect": effect, "tier": tier, "description": "Has one effect at the witness.",
		"timeout_ms": 2000, "spec": spec,
		"parameters": object{"type": "object", "properties": object{"lane": object{"type": "string"}},
			"required": []string{"lane"}}}
}

// attachTools attaches tools to an agent.
func attachTools(ctx context.Context, c caller, agent string, tools ...string) error {
	for _, id := range tools {
		if err := c.do(ctx, "POST", "/api/agents/"+agent+"/tools", object{"tool_id": id}, nil); err != nil {
			return err
		}
	}
	return nil
}

// witnessPlan is what the witness does when a request arrives.
type witnessPlan struct {
	Do   string `json:"do"`
	When string `json:"when"`
	PID  int    `json:"pid,omitempty"`

	SlowMS int `json:"slow_ms,omitempty"`
}

// fault is what goes wrong during one life of a server.
type fault struct {
	commit int           // which of its commits it dies at; 0 for none
	when   string        // before or after
	plans  []witnessPlan // at the witness, one for each arrival
}

func (f fault) String() string {
	if f.commit > 0 {
		return fmt.Sprintf("kill %s commit %d", f.when, f.commit)
	}
	var s []string
	for _, p := range f.plans {
		s = append(s, p.Do+" "+p.When)
	}
	return strings.Join(s, ", then ") + " at the witness"
}

func (f fault) env() []string {
	if f.commit == 0 {
		return nil
	}
	return []string{"REEVE_FAULT=commit:" + strconv.Itoa(f.commit) + ":" + f.when}
}

// callOutcome is what is known of a call at its end.
type callOutcome struct {
	key      string
	op       reeve.Operation
	surfaced bool // it was unknown, and in the inbox
	again    int  // how often the person had it run again
	kills    int
}

// runLife runs one server with its fault, and a client that does all it can. killed reports whether the server was
// killed.
func (r *rig) runLife(ctx context.Context, w world, s scenario, f fault, c *callOutcome) (killed bool, err error) {
	p, err := r.serve(w, f.env()...)
	if err != nil {
		return false, err
	}
	defer p.kill()
	plans := slices.Clone(f.plans)
	for i := range plans {
		if plans[i].Do == "kill" {
			plans[i].PID = p.cmd.Process.Pid
		}
	}
	if err := r.witness.do(ctx, "PUT", "/plans/"+c.key, plans, nil); err != nil {
		return false, err
	}
	if err = p.waitUntilReady(ctx); err == nil {
		err = r.driveCall(ctx, w, p, s, c)
	}
	if err != nil && !errors.Is(err, errGone) {
		return false, fmt.Errorf("%w\nserver's log: %s", err, &p.log)
	}
	if err == nil { // it may yet die while it stops
		err = p.stop()
	} else {
		select {
		case <-p.gone:
			err = nil
		case <-ctx.Done():
			err = errors.New("the server gave no answer, but lives")
		}
	}
	if err == nil && p.killed {
		c.kills++
		err = w.checkFile(ctx)
	}
	return p.killed, err
}

// driveCall plays the client and its person: it makes the call with its key, approves or accepts it, resolves unknown
// outcomes, and waits for the end. After a crash it starts over.
func (r *rig) driveCall(ctx context.Context, w world, p *process, s scenario, told *callOutcome) error {
	c, err := w.owner(p, s.workspace)
	if err != nil {
		return err
	}
	var res reeve.Result
	if err := c.do(ctx, "POST", "/api/agents/"+s.agent+"/calls",
		map[string]any{"tool": s.tool, "args": s.args(told.key), "session": told.key}, &res,
		"Idempotency-Key", told.key); err != nil {
		return err
	}
	id := res.OperationID
	if res.ProposalID != "" {
		if id, err = acceptTwice(ctx, c, res.ProposalID); err != nil {
			return err
		}
	}
	if told.op.ID != "" && told.op.ID != id {
		return fmt.Errorf("the same key gave operation %s, and then %s", told.op.ID, id)
	}
	told.op.ID = id
	return poll(ctx, "operation "+id, func() (bool, error) {
		if err := c.do(ctx, "GET", "/api/operations/"+told.op.ID, nil, &told.op); err != nil {
			return false, err
		}
		switch told.op.State {
		case reeve.Parked:
			return false, approve(ctx, c, told.op.ID)
		case reeve.Unknown:
			return false, r.resolve(ctx, c, s, told)
		case reeve.Prepared, reeve.Dispatched:
			return false, nil
		case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
		}
		return true, nil
	})
}

// approve approves what waits in the inbox for an operation.
func approve(ctx context.Context, c caller, op string) error {
	var inbox api.Inbox
	if err := c.do(ctx, "GET", "/api/inbox", nil, &inbox); err != nil {
		return err
	}
	for _, a := range inbox.Approvals {
		if a.OperationID == op {
			err := c.do(ctx, "POST", "/api/approvals/"+a.ID+"/decision", map[string]string{"decision": "approve"}, nil)
			if hasStatus(err, http.StatusConflict) {
				return nil // it was answered meanwhile
			}
			return err
		}
	}
	return nil // it has moved on
}

// resolve plays the person who finds an unknown outcome in the inbox, asks the witness, and reports what they saw.
func (r *rig) resolve(ctx context.Context, c caller, s scenario, told *callOutcome) error {
	if s.class != reeve.Unsafe {
		return fmt.Errorf("a %s operation became unknown: %s", s.class, told.op.Message)
	}
	var inbox api.Inbox
	if err := c.do(ctx, "GET", "/api/inbox", nil, &inbox); err != nil {
		return err
	}
	if !slices.ContainsFunc(inbox.Unknown, func(o reeve.Operation) bool { return o.ID == told.op.ID }) {
		return fmt.Errorf("operation %s is unknown, and not in the inbox", told.op.ID)
	}
	told.surfaced = true
	n, err := r.countEffects(ctx, told.op.ID)
	if err != nil {
		return err
	}
	word := "retry"
	if n > 0 {
		word = "happened"
	} else {
		told.again++
	}
	err = c.do(ctx, "POST", "/api/operations/"+told.op.ID+"/resolve", map[string]string{"resolution": word}, nil)
	if hasStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

// countEffects asks the witness for the number of effects of a key.
func (r *rig) countEffects(ctx context.Context, op string) (int, error) {
	var count struct{ Effects int }
	err := r.witness.do(ctx, "GET", "/effects/"+op, nil, &count)
	if hasStatus(err, http.StatusNotFound) {
		return 0, nil
	}
	return count.Effects, err
}

// limit is the time limit for one point of a sweep. On PostgreSQL the next server waits for the dead one.
const limit = 2 * time.Minute

// runTrial makes one call through a series of lives, each with its fault, and one life without, and checks everything.
// fired reports whether the last fault killed its server.
func (r *rig) runTrial(e *engine, s scenario, honest bool, faults ...fault) (fired bool, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	w, err := e.newPreparedWorld()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	c := &callOutcome{key: fmt.Sprintf("call-%d", r.keys.Add(1))}
	defer func() {
		r.count(e, s.name, func(l *row) {
			l.calls++
			l.kills += c.kills
			if c.surfaced {
				l.surfaced++
			}
		})
	}()
	for _, f := range faults {
		if fired, err = r.runLife(ctx, w, s, f, c); err != nil {
			return fired, err
		}
		if !honest {
			if err := w.forgetDeadServers(ctx); err != nil {
				return fired, err
			}
		}
	}
	p, err := r.serve(w)
	if err != nil {
		return fired, err
	}
	defer p.kill()
	if err = p.waitUntilReady(ctx); err == nil {
		if err = r.driveCall(ctx, w, p, s, c); err == nil {
			err = r.checkCall(ctx, e, w, p, s, c)
		}
	}
	if err != nil {
		return fired, fmt.Errorf("%w\nserver's log: %s", err, &p.log)
	}
	if err := p.stop(); err != nil {
		return fired, err
	}
	return fired, w.checkLedger(ctx)
}

// checkCall compares the record of a call at its end with the witness.
func (r *rig) checkCall(ctx context.Context, e *engine, w world, p *process, s scenario, told *callOutcome) error {
	c, err := w.owner(p, s.workspace)
	if err != nil {
		return err
	}
	var wrong []error
	if s.workspace == limited {
		wrong = append(wrong, r.checkBudgets(ctx, w, p, 1, told.maxSends())) // before our own reading draws on them
	}
	n := 0
	if s.class == reeve.Local {
		body, err := r.readFile(ctx, w, p, s, told.key)
		if err != nil {
			return err
		}
		if body == told.key {
			n = 1
		}
	} else if n, err = r.countEffects(ctx, told.op.ID); err != nil {
		return err
	}
	r.countEffect(e, s, n)
	if n != 1 || told.op.State != reeve.Committed {
		wrong = append(wrong, fmt.Errorf("operation %s is %s (%s), and the witness saw %d effects", told.op.ID,
			told.op.State, told.op.Message, n))
	}
	var thread api.MessageList
	if err := c.do(ctx, "GET", "/api/agents/"+s.agent+"/messages?limit=500&session="+told.key, nil, &thread); err != nil {
		return err
	}
	actions, results := 0, 0
	for _, m := range thread.Messages {
		if m.OperationID != told.op.ID {
			continue
		}
		switch m.Kind {
		case reeve.Action:
			actions++
		case reeve.ToolResult:
			results++
			var info reeve.ResultInfo
			if err := json.Unmarshal(m.Metadata, &info); err != nil || info.Status != "success" ||
				m.ActionID != told.op.CallID {
				wrong = append(wrong, fmt.Errorf("the result is %s: %s", m.Content, m.Metadata))
			}
		default: // not about calls
		}
	}
	if actions != 1 || results != 1 {
		wrong = append(wrong, fmt.Errorf("the thread has %d actions and %d results", actions, results))
	}
	return errors.Join(wrong...)
}

// countEffect records an effect as lost if it never happened (n is 0), or as doubled if n is over 1.
func (r *rig) countEffect(e *engine, s scenario, n int) {
	r.count(e, s.name, func(l *row) {
		if n == 0 {
			l.lost++
		}
		if n > 1 {
			l.doubled++
		}
	})
}

// readFile returns a file of a session as its agent sees it.
func (r *rig) readFile(ctx context.Context, w world, p *process, s scenario, session string) (string, error) {
	c, err := w.owner(p, s.workspace)
	if err != nil {
		return "", err
	}
	var res reeve.Result
	err = c.do(ctx, "POST", "/api/agents/"+s.agent+"/calls",
		map[string]any{"tool": "read_file", "args": map[string]string{"path": effectFile},
			"session": session}, &res)
	return res.Content, err
}

// maxSends returns how often a call with one effect may have been sent. Each repeat by a person counts.
func (c *callOutcome) maxSends() int64 { return int64(1 + c.again) }

// checkBudgets checks that nothing stays reserved and that the budgets match what happened.
func (r *rig) checkBudgets(ctx context.Context, w world, p *process, least, most int64) error {
	c, err := w.owner(p, limited)
	if err != nil {
		return err
	}
	return poll(ctx, "claims on budgets to be settled", func() (bool, error) {
		var list api.BudgetList
		if err := c.do(ctx, "GET", "/api/budgets", nil, &list); err != nil {
			return false, err
		}
		if len(list.Budgets) != 2 {
			return false, fmt.Errorf("there are %d budgets", len(list.Budgets))
		}
		for _, b := range list.Budgets {
			if !b.Reserved.IsZero() {
				return false, nil
			}
			if b.Used.Calls < least || b.Used.Calls > most {
				return false, fmt.Errorf("the budget of %s says that %d calls were used; it was %d to %d", b.Subject,
					b.Used.Calls, least, most)
			}
		}
		return true, nil
	})
}
