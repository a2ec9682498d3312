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
	"reeve/toolbox/output"
	"reeve/toolbox/python"
	"reeve/toolbox/schedules"
	"reeve/toolbox/scratchpad"
	"reeve/toolbox/users"
	"reeve/toolbox/utils"
	"reeve/toolbox/web"
)

// Version is what this build calls itself.
const Version = "0.1.0"

// Host is an assembled Reeve. New makes everything but what needs a model: that is made when the Host is opened.
type Host struct {
	cfg     Config
	log     *slog.Logger
	db      *store.DB
	started time.Time
	pooler  bool // the database is reached through a connection pooler
	added   bool // the program has brought tools of its own
	renewed bool // the owner's token was of no use, and made anew
	unlock  func() error

	telemetry telemetry
	streams   *httpapi.Streams
	sandboxes sandboxes
	parts     parts

	opening sync.Mutex // one caller opens the Host; others wait
	runs    *runs      // made by open
	closed  bool
}

// parts are what calls pass through and what asks for runs. None of them needs a model.
type parts struct {
	queue       *wake.Queue
	planner     *wake.Planner
	gate        *gate.Gate
	hub         *chat.Broadcaster
	desk        *chat.Service
	delegation  *agent.Delegation
	automations *automation.Service
	scripts     *automation.Runner
	scriptJobs  *automation.Jobs
	scriptTools *automation.Pack
	supervisor  *automation.Supervisor
	branches    *branch.Service
}

// runs are what serves runs, with a model.
type runs struct {
	models    *model.Providers // nil when the program brought its own model
	memory    *memory.Summarizer
	scheduler *wake.Scheduler
	deadlines *agent.Deadlines
}

// sandboxes are the pools of processes that run code nobody vouches for.
type sandboxes struct {
	scripts *js.Pool
	python  *py.Pool
}

// telemetry is what is measured and traced.
type telemetry struct {
	metrics *metrics
	tracing *trace.TracerProvider // nil when spans go nowhere
}

// tracer makes spans. Nil means that there are none.
func (t telemetry) tracer() oteltrace.Tracer {
	if t.tracing == nil {
		return nil
	}
	return t.tracing.Tracer("reeve")
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
	h.telemetry.metrics = newMetrics(h.db)
	if h.telemetry.tracing, err = newTracing(ctx); err == nil {
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
	if err := sqlite.FinishReplace(file); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "a restore that was interrupted cannot be ended: %w", err).
			Hintf("check the permissions of the data directory and its disk, then start again")
	}
	return sqlite.Open(ctx, sqlite.Config{File: file, Hook: cfg.OnFault})
}

// assemble makes the parts, each from those before it, and registers the built-in tools.
func (h *Host) assemble() (err error) {
	cfg, guard, webhook := h.cfg, web.Guard{Allow: h.cfg.HTTPAllow}, h.cfg.Webhook != ""
	h.sandboxes = sandboxes{scripts: js.New(js.Config{Confine: confine.ConfineWorker}), python: newPython(cfg)}
	p := &h.parts
	p.queue, p.planner = wake.NewQueue(h.db), wake.NewPlanner(cfg.limits())
	items := automation.NewItemRule()
	p.gate = gate.New(gate.Config{DB: h.db, Log: h.log, ItemRule: items, OnChange: p.queue.Wakeup,
		Secrets: func() []string { return knownSecrets(cfg) }, OutputCap: cfg.OutputCap,
		ApprovalTTL: time.Duration(cfg.ApprovalTTL), Backoff: cfg.backoff(), Tracer: h.telemetry.tracer(),
		OnCall: h.telemetry.metrics.called, RunBudgets: !cfg.limits().Budget.IsZero(),
		Builders: map[reeve.ToolKind]gate.Builder{
			reeve.HTTPTool:   &web.Builder{Guard: guard, Secrets: h.secret},
			reeve.ScriptTool: &automation.ScriptToolBuilder{Pool: h.sandboxes.scripts}}})
	p.hub = chat.NewBroadcaster(h.db, h.log)
	p.desk = &chat.Service{DB: h.db, Hub: p.hub, Process: p.gate.Process(), Server: p.queue,
		Fetcher: web.NewFetcher(guard)}
	p.delegation = agent.NewDelegation(agent.DelegationConfig{DB: h.db, Turns: p.desk, Gate: p.gate, Depth: cfg.Depth})
	scripts := automation.Config{DB: h.db, Log: h.log, Pool: h.sandboxes.scripts, Gate: p.gate,
		ItemRule: items, Settings: p.gate.Catalogue, Waker: p.queue, Timers: p.planner, Process: p.gate.Process(),
		Backoff: cfg.backoff(), Webhook: webhook,
		Limits: js.Limits{Time: time.Duration(cfg.ScriptTime)}}
	p.automations, p.scripts, p.scriptJobs = automation.NewService(scripts), automation.NewRunner(scripts),
		automation.NewJobs(scripts)
	p.supervisor = automation.NewSupervisor(scripts, p.scriptJobs)
	p.scriptTools = automation.NewPack(scripts, p.scripts)
	if p.branches, err = branch.Open(h.db, filepath.Join(cfg.Dir, branchFolder)); err != nil {
		return err
	}
	packs, err := h.packs(guard)
	for _, t := range packs {
		if err := p.gate.Catalogue.AddTool(t); err != nil {
			return err
		}
		h.telemetry.metrics.addBuiltin(t.ID)
	}
	return err
}

// packs returns the built-in tools.
func (h *Host) packs(guard web.Guard) ([]reeve.Tool, error) {
	cfg, p := h.cfg, h.parts
	roots, err := files.New(files.Config{Dir: filepath.Join(cfg.Dir, workspaceFolder), Keep: keeper{h.db},
		Projects: worktrees{p.branches}, Made: confine.KeepServerFile})
	if err != nil {
		return nil, err
	}
	off, _ := pythonOff(cfg)
	return slices.Concat(
		roots.Tools(),
		(&files.Session{DB: h.db}).Tools(),
		(&output.Pack{DB: h.db}).Tools(),
		(&media.Pack{Files: roots}).Tools(),
		h.shell(roots).Tools(),
		(&python.Pack{Pool: h.sandboxes.python, Limits: cfg.Python.limits(), Off: off}).Tools(),
		(&schedules.Pack{DB: h.db, Planner: p.planner}).Tools(),
		(&scratchpad.Pack{DB: h.db}).Tools(),
		(&journal.Pack{DB: h.db}).Tools(),
		(&mail.Pack{DB: h.db}).Tools(),
		(&agents.Pack{Asker: p.delegation}).Tools(),
		p.scriptTools.Tools(),
		(&users.Pack{Webhook: cfg.Webhook != ""}).Tools(),
		(&utils.Pack{Client: guard.Client(), Forecast: cfg.WeatherURL, Places: cfg.PlacesURL}).Tools(),
	), nil
}

// AddTool registers a tool of your own. Do it before Handler, Call or Run.
func (h *Host) AddTool(t reeve.Tool) error {
	h.added = true
	return h.parts.gate.Catalogue.AddTool(t)
}

// open writes the catalogue, makes the first workspace and token, and makes what serves runs, once. When it fails, the
// next caller tries again from the beginning.
func (h *Host) open(ctx context.Context) error {
	h.opening.Lock()
	defer h.opening.Unlock()
	if h.runs != nil {
		return nil
	}
	if h.closed {
		return errors.New("closed")
	}
	if err := h.adopt(ctx); err != nil {
		return err
	}
	if err := h.parts.gate.Open(ctx); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	if part := h.checkSecrets(ctx); !part.OK {
		h.log.Warn(part.Detail, "hint", part.Hint)
	}
	runs, err := h.newRuns()
	if err != nil {
		return err
	}
	h.runs = runs
	return nil
}

// newRuns makes what serves runs: the model, the brains, and the scheduler that hands runs to them.
func (h *Host) newRuns() (_ *runs, err error) {
	cfg, p, metrics := h.cfg, h.parts, h.telemetry.metrics
	r := &runs{}
	mind, resolve, known := cfg.Mind, agent.Resolver(nil), modelNamer(nil)
	if mind == nil {
		if r.models, err = model.Open(cfg.modelConfig()); err != nil {
			return nil, cfg.place(err)
		}
		mind, resolve, known = r.models, r.models.Resolve, r.models.CanonicalName
	} else {
		mind = model.CountUsage(mind, h.log)
	}
	r.memory = memory.New(memory.Config{DB: h.db, Gate: p.gate, Model: mind, Log: h.log, Process: p.gate.Process()})
	thinker := &agent.ModelRunner{DB: h.db, Gate: p.gate, Model: mind, Events: p.hub, Assemble: cfg.Assemble,
		Extract: cfg.Extract, Steps: p.scripts, Remember: r.memory.Wakeup, Tracer: h.telemetry.tracer(),
		Resolve:  resolve,
		OnAnswer: func(a agent.ModelCall) { metrics.answered(a, known) }, Log: h.log}
	brain := &agent.Brain{DB: h.db, Script: p.scripts, ModelRunner: thinker,
		Rehearsal: &agent.Rehearsal{DB: h.db, Gate: p.gate}}
	r.scheduler, err = wake.NewScheduler(wake.Config{DB: h.db, Log: h.log, Process: p.gate.Process(), Queue: p.queue,
		Planner: p.planner, Brain: brain, Concurrent: cfg.Runs, Attempts: cfg.RunAttempts,
		Entities: &journal.Pack{DB: h.db},
		Webhook:  cfg.Webhook, Client: web.Guard{Allow: cfg.HTTPAllow}.Client(),
		OnEnd: []wake.EndHandler{
			wake.EachRun(p.delegation.OnRunEnd, p.gate.CancelForRun), // answers to callers, and calls that nobody needs
			// what clients are told, once all that came of the calls is written
			wake.EachRun(p.desk.OnRunEnd),
			p.supervisor.OnRunsEnd, // retries, repairs and stops
		},
		OnSkip:   []wake.SkipHandler{p.supervisor.OnWakesSkipped},
		AfterEnd: []func(reeve.Run){p.desk.AfterRunEnd, metrics.ended}})
	if err != nil {
		return nil, err
	}
	r.deadlines = agent.NewDeadlines(p.delegation, r.scheduler, p.queue, h.log)
	return r, nil
}

// Call makes a call as a Go program, through the same gate as everybody.
func (h *Host) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	if err := h.open(ctx); err != nil {
		return reeve.Result{}, err
	}
	if c.Via == "" {
		c.Via = reeve.ViaGo
	}
	return h.parts.gate.Call(ctx, c)
}

// Handler is the HTTP API.
func (h *Host) Handler(ctx context.Context) (http.Handler, error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	cfg, p := h.cfg, h.parts
	return httpapi.New(httpapi.Config{DB: h.db, Gate: p.gate, Scheduler: h.runs.scheduler, Queue: p.queue,
		Planner: p.planner, Desk: p.desk, Automations: p.automations, ScriptJobs: p.scriptJobs, Delegations: p.delegation,
		Branches: p.branches,
		Streams:  h.streams, Log: h.log, Version: Version, StartedAt: h.started, Hosts: cfg.Hosts, Origins: cfg.Origins,
		Rate: cfg.Rate, Burst: cfg.Burst, Heartbeat: cfg.Pulse, Doctor: h.doctor, Ready: h.ready, Held: h.held,
		Backup: h.snapshot, Metrics: h.telemetry.metrics.handler(),
		MetricsToken: cfg.MetricsToken, OpenTokens: h.added}), nil
}

// Step takes up operations that are due, runs the agents that are, sends what people are to be told, and forgets what
// was kept for long enough, once; a program that does not Run can drive Reeve with it. It returns how much it found to
// do.
func (h *Host) Step(ctx context.Context) (int, error) {
	if err := h.open(ctx); err != nil {
		return 0, err
	}
	n, err := h.parts.gate.Step(ctx)
	if err != nil {
		return n, err
	}
	settled, _, err := h.runs.deadlines.Step(ctx)
	if n += settled; err != nil {
		return n, err
	}
	begun, _, err := h.runs.scheduler.Step(ctx, together)
	for _, run := range begun {
		h.runs.scheduler.Serve(ctx, run)
	}
	if err != nil {
		return n, err
	}
	n += len(begun)
	if did, _, err := h.runs.memory.Step(ctx); err != nil {
		return n, err
	} else if did {
		n++
	}
	sent, _, err := h.runs.scheduler.DeliverStep(ctx)
	if err != nil {
		return n + sent, err
	}
	forgot, err := h.forget(ctx)
	return n + sent + forgot, err
}

// together is how many runs one Step takes up.
const together = 16

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
		return reeve.Errorf(reeve.Unavailable, "cannot listen on %s: %v", h.cfg.Listen, err).
			Hintf("stop what uses it, or choose another address with --listen")
	}
	url := "http://" + l.Addr().String()
	withdraw, err := announce(h.cfg.Dir, url)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(h.log.Handler(), slog.LevelWarn)}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return h.parts.gate.Run(inner) })
	group.Go(func() error { return h.runs.scheduler.Run(inner) })
	group.Go(func() error { return h.runs.scheduler.RunDeliveries(inner) })
	group.Go(func() error { return h.runs.deadlines.Run(inner) })
	group.Go(func() error { return h.parts.hub.Run(inner) })
	group.Go(func() error { return h.runs.memory.Run(inner) })
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
	if h.db.SingleProcess() || h.ready(ctx) == nil {
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
	if h.runs != nil {
		errs = append(errs, h.parts.gate.Close(quiet))
	}
	if h.telemetry.tracing != nil {
		errs = append(errs, h.telemetry.tracing.Shutdown(quiet))
	}
	return errors.Join(append(errs, h.sandboxes.scripts.Close(), h.sandboxes.python.Close(), h.db.Close(),
		h.unlock())...)
}

// secret reads a stored secret for a tool's request.
func (h *Host) secret(ctx context.Context, workspace, name string) (value string, err error) {
	err = h.db.View(ctx, func(s *store.Snap) error {
		value, err = s.Agents().GetSecret(ctx, workspace, name)
		return err
	})
	return value, err
}

// knownSecrets returns the values that are redacted besides stored secrets: provider keys in the environment and in the
// configuration, and the keys and tokens of the server itself.
func knownSecrets(cfg Config) []string {
	var out []string
	for _, kv := range os.Environ() {
		name, v, _ := strings.Cut(kv, "=")
		if len(v) >= 8 && (strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_TOKEN") ||
			strings.HasSuffix(name, "_SECRET") || strings.HasSuffix(name, "_PASSWORD")) {
			out = append(out, v)
		}
	}
	own := []string{cfg.SecretKey, cfg.MetricsToken, cfg.Webhook} // the address of a webhook is its password
	for _, e := range append(slices.Collect(maps.Values(cfg.Models.Servers)), cfg.Models.Anthropic, cfg.Models.OpenAI,
		cfg.Models.Gemini, cfg.Models.Ollama) {
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
