package host

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/agent"
	"reeve/internal/automation"
	"reeve/internal/branch"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/httpapi"
	"reeve/internal/memory"
	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/js"
	"reeve/internal/sandbox/py"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/sqlite"
	"reeve/internal/wake"
	"reeve/model"
	"reeve/toolbox/agents"
	"reeve/toolbox/files"
	"reeve/toolbox/journal"
	"reeve/toolbox/mail"
	"reeve/toolbox/media"
	"reeve/toolbox/oddment"
	"reeve/toolbox/output"
	"reeve/toolbox/schedules"
	"reeve/toolbox/scratchpad"
	"reeve/toolbox/users"
	"reeve/toolbox/web"
)

// Version is what this build calls itself.
const Version = "0.1.0"

// Host is an assembled Reeve.
type Host struct {
	cfg     Config
	log     *slog.Logger
	db      *store.DB
	gate    *gate.Gate
	room    *wake.Room
	hub     *chat.Hub
	desk    *chat.Desk
	branch  *branch.Desk
	scripts *js.Pool
	python  *py.Pool
	auto    *automation.Room
	calls   *agent.Delegation
	memory  *memory.Room
	models  *model.Providers // nil when the program brought its own
	metrics *metrics
	tracing *trace.TracerProvider // nil when spans go nowhere
	streams *httpapi.Streams
	guard   web.Guard
	started time.Time
	pooler  bool // the database is reached through a connection pooler
	added   bool // the program has brought tools of its own
	renewed bool // the owner's token was of no use, and made anew
	unlock  func() error
	opening sync.Mutex // whoever comes while it is opened waits
	opened  bool
	closed  bool
}

// New opens the data directory and the store, and registers the built-in tools. Close it, or let Run do so.
func New(ctx context.Context, cfg Config) (h *Host, err error) {
	cfg, err = cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h = &Host{cfg: cfg, log: cfg.Log, started: reeve.Now(), streams: httpapi.NewStreams()}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	h.unlock = unlock
	defer func() {
		if err != nil {
			err = errors.Join(err, unlock())
		}
	}()
	h.sweep()
	key, err := secretKey(cfg)
	if err != nil {
		return nil, err
	}
	engine, err := openEngine(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if pg, ok := engine.(*postgres.Engine); ok {
		h.pooler = pg.Pooler()
	}
	if h.db, err = store.Open(ctx, engine, key); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	h.db.LogTo(h.log)
	h.metrics = newMetrics(h.db)
	if h.tracing, err = newTracing(ctx); err == nil {
		err = h.assemble()
	}
	if err != nil {
		return nil, errors.Join(err, h.db.Close())
	}
	return h, nil
}

func openEngine(ctx context.Context, cfg Config) (store.Engine, error) {
	if cfg.Database != "" {
		return postgres.Open(ctx, postgres.Config{URL: cfg.Database, Direct: cfg.DirectDB, Hook: cfg.OnFault})
	}
	file := filepath.Join(cfg.Dir, databaseFile)
	if err := sqlite.Finish(file); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "a restore that was interrupted cannot be ended: %w", err).
			Hintf("check the permissions of the data directory and its disk, then start again")
	}
	return sqlite.Open(ctx, sqlite.Config{File: file, Hook: cfg.OnFault})
}

// assemble makes the gate and fills it with the built-in packs.
func (h *Host) assemble() error {
	h.guard = web.Guard{Allow: h.cfg.HTTPAllow}
	h.scripts = js.New(js.Config{Confine: confine.Worker})
	b := h.cfg.backoff()
	items := automation.NewItems()
	h.auto = automation.New(automation.Config{DB: h.db, Log: h.log, Items: items, Pool: h.scripts, Backoff: b, Webhook: h.cfg.Webhook != "",
		Limits: js.Limits{Time: time.Duration(h.cfg.ScriptTime)}})
	h.calls = &agent.Delegation{DB: h.db, Depth: h.cfg.Depth}
	h.gate = gate.New(gate.Config{Overdue: h.calls.Overdue, DB: h.db, Log: h.log, ItemRule: items, OutputCap: h.cfg.OutputCap, ApprovalTTL: time.Duration(h.cfg.ApprovalTTL),
		Backoff: b, OnChange: h.changed, Tracer: h.tracer(), OnCall: h.metrics.called, RunBudgets: !h.cfg.limits().Budget.IsZero(),
		Builders: map[reeve.ToolKind]gate.Builder{reeve.HTTPTool: &web.Builder{Guard: h.guard, Secrets: h.secret}, reeve.ScriptTool: &automation.Builder{Pool: h.scripts}}})
	h.auto.Gate, h.auto.Settings, h.calls.Gate = h.gate, h.gate.Catalogue, h.gate
	h.branch = &branch.Desk{DB: h.db, Dir: filepath.Join(h.cfg.Dir, branchFolder)}
	if err := h.branch.Open(); err != nil {
		return err
	}
	roots, err := files.New(files.Config{Dir: filepath.Join(h.cfg.Dir, workspaceFolder), Keep: keeper{h.db},
		Projects: worktrees{h.branch}, Made: confine.Spare})
	if err != nil {
		return err
	}
	session, rest := &files.Session{DB: h.db}, &output.Pack{DB: h.db}
	for _, pack := range [][]reeve.Tool{
		roots.Tools(),
		session.Tools(),
		rest.Tools(),
		(&media.Pack{Files: roots}).Tools(),
		h.shell(roots).Tools(),
		h.newPython().Tools(),
		(&schedules.Pack{DB: h.db, Planner: h.planner}).Tools(),
		(&scratchpad.Pack{DB: h.db}).Tools(),
		(&journal.Pack{DB: h.db}).Tools(),
		(&mail.Pack{DB: h.db}).Tools(),
		(&agents.Pack{Asker: h.calls}).Tools(),
		h.auto.Tools(),
		(&users.Pack{Webhook: h.cfg.Webhook != ""}).Tools(),
		(&oddment.Pack{Client: h.guard.Client(), Forecast: h.cfg.WeatherURL, Places: h.cfg.PlacesURL}).Tools(),
	} {
		for _, t := range pack {
			if err := h.gate.Catalogue.AddTool(t); err != nil {
				return err
			}
			h.metrics.built[t.ID] = true
		}
	}
	return nil
}

// tracer makes the spans; nil means that there are none.
func (h *Host) tracer() oteltrace.Tracer {
	if h.tracing == nil {
		return nil
	}
	return h.tracing.Tracer("reeve")
}

// AddTool registers a tool of your own. Do it before Handler, Call or Run.
func (h *Host) AddTool(t reeve.Tool) error {
	h.added = true
	return h.gate.Catalogue.AddTool(t)
}

// open writes the catalogue and makes the first workspace and token, once. What fails, because its caller went away, say, is tried again from the beginning by the next.
func (h *Host) open(ctx context.Context) error {
	h.opening.Lock()
	defer h.opening.Unlock()
	if h.opened {
		return nil
	}
	if h.closed {
		return errors.New("closed")
	}
	if err := h.adopt(ctx); err != nil {
		return err
	}
	if err := h.gate.Open(ctx); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	h.gate.Secrets = knownSecrets(h.cfg)
	if part := h.checkSecrets(ctx); !part.OK {
		h.log.Warn(part.Detail, "hint", part.Hint)
	}
	err := h.wake()
	h.opened = err == nil
	return err
}

// wake assembles what runs agents: the brains, the conversations, and the room that wakes them.
func (h *Host) wake() (err error) {
	mind := h.cfg.Mind
	var resolve func(string) (string, string)
	if mind == nil {
		if h.models, err = model.Open(h.cfg.modelConfig()); err != nil {
			return h.cfg.place(err)
		}
		mind, h.metrics.known, resolve = h.models, h.models.Known, h.models.Resolve
	} else {
		mind = model.Counted(mind, h.log)
	}
	h.hub = chat.NewHub(h.db, h.log)
	h.memory = memory.New(memory.Config{DB: h.db, Gate: h.gate, Model: mind, Log: h.log, Process: h.gate.Process()})
	h.desk = &chat.Desk{DB: h.db, Hub: h.hub, Process: h.gate.Process(), Fetcher: web.NewFetcher(h.guard)}
	thinker := &agent.Thinker{DB: h.db, Gate: h.gate, Model: mind, Stage: h.hub, Assemble: h.cfg.Assemble,
		Extract: h.cfg.Extract, Steps: h.auto, Remember: h.memory.Nudge, Tracer: h.tracer(), Resolve: resolve,
		OnAnswer: h.metrics.answered, Log: h.log}
	brain := &agent.Brain{DB: h.db, Script: h.auto, Rehearsal: &agent.Rehearsal{DB: h.db, Gate: h.gate},
		Thinker: thinker}
	h.room, err = wake.New(wake.Config{DB: h.db, Log: h.log, Process: h.gate.Process(), Brain: brain, Concurrent: h.cfg.Runs, Attempts: h.cfg.RunAttempts, Entities: &journal.Pack{DB: h.db},
		Limits: h.cfg.limits(), Webhook: h.cfg.Webhook, Client: h.guard.Client(), Ended: ended{h.desk, h.gate, h.calls, h.auto, h.metrics}})
	if err == nil {
		h.desk.Server, h.auto.Waker, h.auto.Server, h.auto.Timers, h.auto.Process = h.room, h.room, h.room, h.room, h.gate.Process()
		h.calls.Desk, h.calls.Room = h.desk, h.room
	}
	return err
}

// ended tells everybody who wants to know of runs that end.
type ended struct {
	*chat.Desk
	gate    *gate.Gate
	calls   *agent.Delegation
	auto    *automation.Room
	metrics *metrics
}

// Ending writes what belongs to the ends of runs: what their clients are told, the answers that others wait for, what nobody needs to be asked any more, and what follows from them.
func (e ended) Ending(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
	for _, run := range runs {
		if err := e.calls.Ending(ctx, tx, run); err != nil {
			return err
		}
		if err := e.gate.Lapse(ctx, tx, run); err != nil {
			return err
		}
	}
	for _, run := range runs { // when all is told that came of their calls
		if err := e.Desk.Ending(ctx, tx, run); err != nil {
			return err
		}
	}
	return e.auto.Ending(ctx, tx, runs)
}

// Skipped writes what follows from wakes that no run will serve.
func (e ended) Skipped(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
	return e.auto.Skipped(ctx, tx, wakes)
}

// Over tells them.
func (e ended) Over(run reeve.Run) {
	e.Desk.Over(run)
	e.metrics.ended(run)
}

// Call makes a call as a Go program, through the same gate as everybody.
func (h *Host) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	if err := h.open(ctx); err != nil {
		return reeve.Result{}, err
	}
	if c.Via == "" {
		c.Via = reeve.ViaGo
	}
	return h.gate.Call(ctx, c)
}

// Handler is the HTTP API.
func (h *Host) Handler(ctx context.Context) (http.Handler, error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	return httpapi.New(httpapi.Config{DB: h.db, Gate: h.gate, Wake: h.room, Desk: h.desk, Automations: h.auto, Branches: h.branch, Streams: h.streams, Log: h.log, Version: Version, StartedAt: h.started, Hosts: h.cfg.Hosts, Origins: h.cfg.Origins,
		Rate: h.cfg.Rate, Burst: h.cfg.Burst, Heartbeat: h.cfg.Pulse, Doctor: h.doctor, Ready: h.ready, Held: h.held, Backup: h.snapshot,
		Metrics: h.metrics.handler(), MetricsToken: h.cfg.MetricsToken, OpenTokens: h.added}), nil
}

// Step takes up operations that are due, runs the agents that are, sends what people are to be told, and forgets what was kept for long enough, once; a program
// that does not Run can drive Reeve with it. It returns how much it found to do.
func (h *Host) Step(ctx context.Context) (int, error) {
	if err := h.open(ctx); err != nil {
		return 0, err
	}
	n, err := h.gate.Step(ctx)
	if err != nil {
		return n, err
	}
	runs, _, err := h.room.Step(ctx, together)
	for _, run := range runs {
		h.room.Serve(ctx, run)
	}
	if err != nil {
		return n, err
	}
	n += len(runs)
	if did, _, err := h.memory.Step(ctx); err != nil {
		return n, err
	} else if did {
		n++
	}
	sent, _, err := h.room.DeliverStep(ctx)
	if err != nil {
		return n + sent, err
	}
	forgot, err := h.forget(ctx)
	return n + sent + forgot, err
}

// together is how many runs one Step takes up.
const together = 16

// planner is the wake room, which is there before any call is.
func (h *Host) planner() schedules.Planner { return h.room }

// changed wakes the loop that wakes agents.
func (h *Host) changed() {
	if h.room != nil {
		h.room.Nudge()
	}
}

// Run serves until ctx ends, then lets what is under way finish, for a while, and closes. Ready, when it is not nil,
// is told the address once requests are answered.
func (h *Host) Run(ctx context.Context, ready func(url string)) (err error) {
	defer func() { err = errors.Join(err, h.Close()) }()
	handler, err := h.Handler(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", h.cfg.Listen)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot listen on %s: %v", h.cfg.Listen, err).Hintf("stop what uses it, or choose another address with --listen")
	}
	url := "http://" + l.Addr().String()
	withdraw, err := announce(h.cfg.Dir, url)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelWarn)}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return h.gate.Run(inner) })
	group.Go(func() error { return h.room.Run(inner) })
	group.Go(func() error { return h.room.Deliver(inner) })
	group.Go(func() error { return h.hub.Run(inner) })
	group.Go(func() error { return h.memory.Run(inner) })
	group.Go(func() error { return h.keepForgetting(inner) })
	group.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-inner.Done()
		return h.closeSilentDatabase(context.WithoutCancel(ctx))
	})
	group.Go(func() error {
		<-inner.Done()
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return errors.Join(withdraw(), h.streams.Close(quiet), srv.Shutdown(quiet))
	})
	if ready != nil {
		ready(url)
	}
	debug.FreeOSMemory() // what only the start needed
	return group.Wait()
}

// closeSilentDatabase closes a database server that does not answer any more, so that nothing waits for it during
// shutdown.
func (h *Host) closeSilentDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience/2)
	defer cancel()
	if h.db.Alone() || h.ready(ctx) == nil {
		return nil
	}
	h.log.Warn("the database does not answer; what is under way is taken up after the next start")
	return h.db.Close()
}

// patience is how long calls under way may take to finish when the server is asked to stop.
const patience = 10 * time.Second

// Close ends it.
func (h *Host) Close() error {
	quiet, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	errs := []error{h.streams.Close(quiet)}
	h.opening.Lock()
	h.closed = true
	h.opening.Unlock()
	if h.opened {
		errs = append(errs, h.gate.Close(quiet))
	}
	if h.tracing != nil {
		errs = append(errs, h.tracing.Shutdown(quiet))
	}
	return errors.Join(append(errs, h.scripts.Close(), h.python.Close(), h.db.Close(), h.unlock())...)
}

// secret reads a stored secret for a tool's request.
func (h *Host) secret(ctx context.Context, workspace, name string) (value string, err error) {
	err = h.db.View(ctx, func(s *store.Snap) error {
		value, err = s.GetSecret(ctx, workspace, name)
		return err
	})
	return value, err
}

// knownSecrets is what the scrubber must never let through, besides stored secrets: provider keys in the environment and in the configuration, and what the server itself lives on.
func knownSecrets(cfg Config) []string {
	var out []string
	for _, kv := range os.Environ() {
		name, v, _ := strings.Cut(kv, "=")
		if len(v) >= 8 && (strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_SECRET") || strings.HasSuffix(name, "_PASSWORD")) {
			out = append(out, v)
		}
	}
	own := []string{cfg.SecretKey, cfg.MetricsToken, cfg.Webhook} // the address of a webhook is its password
	for _, e := range append(slices.Collect(maps.Values(cfg.Models.Servers)), cfg.Models.Anthropic, cfg.Models.OpenAI, cfg.Models.Gemini, cfg.Models.Ollama) {
		if len(e.Key) >= 16 { // a server of one's own may go by a word
			own = append(own, e.Key)
		}
	}
	for _, url := range []string{cfg.Database, cfg.DirectDB} {
		if password := postgres.Password(url); len(password) >= 8 {
			own = append(own, password)
		}
	}
	for _, name := range []string{tokenFile, keyFile} {
		if b, err := os.ReadFile(filepath.Join(cfg.Dir, name)); err == nil {
			own = append(own, strings.TrimSpace(string(b)))
		}
	}
	return append(out, slices.DeleteFunc(own, func(v string) bool { return v == "" })...)
}

// Dir is the data directory.
func (h *Host) Dir() string { return h.cfg.Dir }
