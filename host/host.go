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
	"reeve/internal/ask"
	"reeve/internal/automation"
	"reeve/internal/branch"
	"reeve/internal/chat"
	"reeve/internal/feed"
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
	"reeve/toolbox/agentstate"
	"reeve/toolbox/files"
	"reeve/toolbox/journal"
	"reeve/toolbox/mail"
	"reeve/toolbox/media"
	"reeve/toolbox/notes"
	"reeve/toolbox/output"
	"reeve/toolbox/python"
	"reeve/toolbox/schedules"
	"reeve/toolbox/scratchpad"
	"reeve/toolbox/text"
	"reeve/toolbox/users"
	"reeve/toolbox/utils"
	httptools "reeve/toolbox/web"
	"reeve/web"
)

// Version is the version of this build.
const Version = "0.1.0"

// Host is an assembled Reeve server. New creates the services that need no model. The first call that needs the others
// opens the Host, which creates them.
type Host struct {
	cfg            Config
	log            *slog.Logger
	db             *store.DB
	started        time.Time
	hasPooler      bool // the database URL leads to a connection pooler
	hasOwnTools    bool // the program has added tools
	isTokenRenewed bool // the owner's token was not valid and was replaced
	unlock         func() error

	telemetry telemetry
	streams   *httpapi.Streams
	sandboxes sandboxes
	services  services

	openMu   sync.Mutex   // serializes open
	runs     *runServices // created by open
	isClosed bool
}

// services are the services that calls and requests for runs pass through. None of them needs a model.
type services struct {
	queue       *wake.Queue
	timetable   *wake.Timetable
	gate        *gate.Gate
	broadcaster *chat.Broadcaster
	feed        *feed.Feed
	chat        *chat.Service
	delegation  *agent.Delegation
	automations *automation.Service
	scripts     *automation.Runner
	scriptJobs  *automation.Jobs
	scriptTools *automation.Pack
	supervisor  *automation.Supervisor
	branches    *branch.Service
	notes       *memory.Notes
}

// runServices are the services that serve runs. They need a model.
type runServices struct {
	models    *model.Providers // nil if the program sets Config.Model
	memory    *memory.Summarizer
	keeper    *memory.Consolidator
	scheduler *wake.Scheduler
	webhook   *wake.Webhook // nil without a configured URL
	deadlines *agent.Deadlines
}

// sandboxes are the pools of processes that run untrusted code.
type sandboxes struct {
	scripts *js.Pool
	python  *py.Pool
}

// telemetry holds metrics and traces.
type telemetry struct {
	metrics *metrics
	tracing *trace.TracerProvider // nil if spans are not exported
}

// tracer returns a tracer, or nil if spans are not exported.
func (t telemetry) tracer() oteltrace.Tracer {
	if t.tracing == nil {
		return nil
	}
	return t.tracing.Tracer("reeve")
}

// New opens the data directory and the store, and registers the built-in tools. The caller must call Close, or Run,
// which closes the Host when it returns.
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
	h.removeLeftovers()
	key, err := loadSecretKey(cfg)
	if err != nil {
		return nil, err
	}
	engine, err := openEngine(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if pg, ok := engine.(*postgres.Engine); ok {
		h.hasPooler = pg.Pooler()
	}
	if h.db, err = store.Open(ctx, engine, key); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	h.db.SetLogger(h.log)
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
		return nil, reeve.Errorf(reeve.Unavailable, "an interrupted restore cannot be completed: %w", err).
			Hintf("check the permissions and the disk of the data directory, then start again")
	}
	return sqlite.Open(ctx, sqlite.Config{File: file, Hook: cfg.OnFault})
}

// assemble creates the services in the order of their dependencies, and registers the built-in tools.
func (h *Host) assemble() (err error) {
	cfg, guard, webhook := h.cfg, httptools.Guard{Allow: h.cfg.HTTPAllow}, h.cfg.Webhook != ""
	h.sandboxes = sandboxes{scripts: js.New(js.Config{Confine: confine.ConfineWorker}), python: newPython(cfg)}
	p := &h.services
	p.queue, p.timetable = wake.NewQueue(h.db), wake.NewTimetable(cfg.limits())
	items := automation.NewItemRule()
	p.gate = gate.New(gate.Config{DB: h.db, Log: h.log, ItemRule: items, OnChange: p.queue.Wakeup,
		Secrets: func() []string { return listKnownSecrets(cfg) }, OutputCap: cfg.OutputCap,
		ApprovalTTL: time.Duration(cfg.ApprovalTTL), Backoff: cfg.backoff(), Tracer: h.telemetry.tracer(),
		OnCall: h.telemetry.metrics.recordCall, RunBudgets: !cfg.limits().Budget.IsZero(),
		Builders: map[reeve.ToolKind]gate.Builder{
			reeve.HTTPTool:   &httptools.Builder{Guard: guard, Secrets: h.getSecret},
			reeve.ScriptTool: &automation.ScriptToolBuilder{Pool: h.sandboxes.scripts}}})
	p.broadcaster = chat.NewBroadcaster(h.db, h.log)
	p.feed = feed.New(h.db, h.log, p.gate.Process())
	p.chat = &chat.Service{DB: h.db, Broadcaster: p.broadcaster, Process: p.gate.Process(), Queue: p.queue,
		Fetcher: httptools.NewFetcher(guard)}
	p.delegation = agent.NewDelegation(agent.DelegationConfig{DB: h.db, Turns: p.chat, Gate: p.gate,
		Depth: cfg.DelegationDepth})
	scripts := automation.Config{DB: h.db, Log: h.log, Pool: h.sandboxes.scripts, Gate: p.gate,
		ItemRule: items, Settings: p.gate.Catalogue, Waker: p.queue, Timers: p.timetable, Process: p.gate.Process(),
		Backoff: cfg.backoff(), Webhook: webhook,
		Limits: js.Limits{Time: time.Duration(cfg.ScriptTimeout), Compute: time.Duration(cfg.ScriptCompute)}}
	p.automations, p.scripts, p.scriptJobs = automation.NewService(scripts), automation.NewRunner(scripts),
		automation.NewJobs(scripts)
	p.supervisor = automation.NewSupervisor(scripts, p.scriptJobs)
	p.scriptTools = automation.NewPack(scripts, p.scripts)
	if p.branches, err = branch.Open(h.db, filepath.Join(cfg.Dir, branchFolder)); err != nil {
		return err
	}
	if p.notes, err = h.newNotes(guard.Client()); err != nil {
		return err
	}
	packs, err := h.listBuiltinTools(guard)
	for _, t := range packs {
		if err := p.gate.Catalogue.AddTool(t); err != nil {
			return err
		}
		h.telemetry.metrics.addBuiltin(t.ID)
	}
	return err
}

// listBuiltinTools returns the built-in tools.
func (h *Host) listBuiltinTools(guard httptools.Guard) ([]reeve.Tool, error) {
	cfg, p := h.cfg, h.services
	roots, err := files.New(files.Config{Dir: filepath.Join(cfg.Dir, workspaceFolder), Blobs: payloadStore{h.db},
		Projects: fileProjects{p.branches}, OnCreate: confine.KeepServerFile})
	if err != nil {
		return nil, err
	}
	off, _ := explainPythonOff(cfg)
	asker := ask.New(h.db, p.gate, toolModels{h})
	return slices.Concat(
		roots.Tools(),
		(&files.Session{DB: h.db}).Tools(),
		(&files.Attachments{Files: roots, DB: h.db}).Tools(),
		(&output.Pack{DB: h.db}).Tools(),
		(&media.Pack{Files: roots}).Tools(),
		h.newShellPack(roots).Tools(),
		(&python.Pack{Pool: h.sandboxes.python, Limits: cfg.Python.limits(), Off: off}).Tools(),
		(&schedules.Pack{DB: h.db, Timetable: p.timetable}).Tools(),
		(&scratchpad.Pack{DB: h.db}).Tools(),
		(&agentstate.Pack{DB: h.db}).Tools(),
		(&notes.Pack{DB: h.db, Recaller: p.notes}).Tools(),
		(&journal.Pack{DB: h.db}).Tools(),
		(&mail.Pack{DB: h.db}).Tools(),
		(&agents.Pack{Asker: p.delegation}).Tools(),
		p.scriptTools.Tools(),
		(&users.Pack{Webhook: cfg.Webhook != ""}).Tools(),
		h.newWebPack(guard, roots).Tools(),
		(&media.Reader{Files: roots, Asker: asker}).Tools(),
		(&text.Pack{Asker: asker, Schemas: p.gate.Catalogue}).Tools(),
		(&utils.Pack{Client: guard.Client(), Forecast: cfg.WeatherURL, Places: cfg.GeocodingURL}).Tools(),
	), nil
}

// AddTool registers a tool of the program. Call it before Handler, Call or Run.
func (h *Host) AddTool(t reeve.Tool) error {
	h.hasOwnTools = true
	return h.services.gate.Catalogue.AddTool(t)
}

// open writes the catalogue, inserts the first workspace and token, and creates the services that serve runs. It does
// so once. If it fails, the next call starts over.
func (h *Host) open(ctx context.Context) error {
	h.openMu.Lock()
	defer h.openMu.Unlock()
	if h.runs != nil {
		return nil
	}
	if h.isClosed {
		return errors.New("the host is closed")
	}
	if err := h.adoptDatabase(ctx); err != nil {
		return err
	}
	if err := h.services.gate.Open(ctx); err != nil {
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

// newRuns creates the model, the brains, and the scheduler that passes runs to them.
func (h *Host) newRuns() (_ *runServices, err error) {
	cfg, p, metrics := h.cfg, h.services, h.telemetry.metrics
	r := &runServices{}
	llm, resolve, canonicalName := cfg.Model, agent.Resolver(nil), modelNamer(nil)
	if llm == nil {
		if r.models, err = model.Open(cfg.modelConfig()); err != nil {
			return nil, cfg.addLine(err)
		}
		llm, resolve, canonicalName = r.models, r.models.Resolve, r.models.CanonicalName
	} else {
		llm = model.CountUsage(llm, h.log)
	}
	r.memory = memory.New(memory.Config{DB: h.db, Gate: p.gate, Model: llm, Log: h.log, Process: p.gate.Process()})
	r.keeper = h.newConsolidator(llm, r.models)
	modelRunner := &agent.ModelRunner{DB: h.db, Gate: p.gate, Model: llm, Events: p.broadcaster, Assemble: cfg.Assemble,
		Extract: cfg.Extract, Steps: p.scripts, Notes: p.notes, OnSummaryDue: r.memory.Wakeup,
		Tracer:   h.telemetry.tracer(),
		Resolve:  resolve,
		OnAnswer: func(a agent.ModelCall) { metrics.recordModelCall(a, canonicalName) }, Log: h.log,
		Refuse: refuseRehearsal(r.models)}
	brain := &agent.Brain{DB: h.db, Script: p.scripts, ModelRunner: modelRunner,
		Rehearsal: &agent.Rehearsal{DB: h.db, Gate: p.gate}}
	if cfg.Webhook != "" {
		r.webhook = wake.NewWebhook(h.db, h.log, cfg.Webhook, httptools.Guard{Allow: cfg.HTTPAllow}.Client())
	}
	r.scheduler, err = wake.NewScheduler(wake.Config{DB: h.db, Log: h.log, Process: p.gate.Process(), Queue: p.queue,
		Timetable: p.timetable, Brain: brain, MaxRuns: cfg.MaxRuns, MaxAttempts: cfg.RunAttempts,
		Entities: &journal.Pack{DB: h.db}, Webhook: r.webhook,
		OnEnd: []wake.EndHandler{
			// Answer the calling agent, and cancel pending calls.
			wake.EachRun(p.delegation.OnRunEnd, p.gate.CancelForRun),
			// Frames of the turn. They come after the handlers above, which may append frames of calls.
			wake.EachRun(p.chat.OnRunEnd),
			p.supervisor.OnRunsEnd, // retries, repairs and stops
		},
		OnSkip:         []wake.SkipHandler{p.supervisor.OnWakesSkipped},
		AfterEnd:       []func(reeve.Run){p.chat.AfterRunEnd, metrics.recordRunEnd},
		FramesAppended: p.broadcaster.Changed})
	if err != nil {
		return nil, err
	}
	r.deadlines = agent.NewDeadlines(p.delegation, r.scheduler, p.queue, h.log)
	return r, nil
}

// Call makes a call for the Go program that embeds the Host. It passes the same gate as all other calls.
func (h *Host) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	if err := h.open(ctx); err != nil {
		return reeve.Result{}, err
	}
	if c.Via == "" {
		c.Via = reeve.ViaGo
	}
	return h.services.gate.Call(ctx, c)
}

// Handler returns the HTTP API.
func (h *Host) Handler(ctx context.Context) (http.Handler, error) {
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	cfg, p := h.cfg, h.services
	api := httpapi.Config{DB: h.db, Gate: p.gate, Scheduler: h.runs.scheduler, Queue: p.queue,
		Timetable: p.timetable, Chat: p.chat, Notes: p.notes, Consolidator: h.runs.keeper, Automations: p.automations,
		ScriptJobs:  p.scriptJobs,
		Delegations: p.delegation, Branches: p.branches, Mail: &mail.Pack{DB: h.db},
		Requests: agent.RequestReader{DB: h.db}, OnSummaryDue: h.runs.memory.Wakeup,
		Streams: h.streams, Log: h.log, Version: Version, StartedAt: h.started, Hosts: cfg.Hosts, Origins: cfg.Origins,
		Rate: cfg.Rate, Burst: cfg.Burst, Heartbeat: cfg.Heartbeat, Doctor: h.checkHealth, Ready: h.checkReady,
		IsHeld: h.isHeld,
		Backup: h.openBackup, Metrics: h.telemetry.metrics.handler(),
		MetricsToken: cfg.MetricsToken, OpenTokens: h.hasOwnTools, Feed: p.feed}
	if console := web.Embedded(); console != nil {
		api.Console = console
	}
	return httpapi.New(api), nil
}

// Step executes due work once: operations, delegation deadlines, runs, summaries, scheduled consolidations of notes,
// notifications and the removal of expired payloads. A program that does not call Run can drive Reeve with it. It
// returns the number of items that it processed.
func (h *Host) Step(ctx context.Context) (int, error) {
	if err := h.open(ctx); err != nil {
		return 0, err
	}
	n, err := h.services.gate.Step(ctx)
	if err != nil {
		return n, err
	}
	expired, _, err := h.runs.deadlines.Step(ctx)
	if n += expired; err != nil {
		return n, err
	}
	started, _, err := h.runs.scheduler.Step(ctx, maxRunsPerStep)
	for _, run := range started {
		h.runs.scheduler.Serve(ctx, run)
	}
	if err != nil {
		return n, err
	}
	n += len(started)
	if did, _, err := h.runs.memory.Step(ctx); err != nil {
		return n, err
	} else if did {
		n++
	}
	compared, err := h.runs.keeper.Step(ctx)
	if n += compared; err != nil {
		return n, err
	}
	if h.runs.webhook != nil {
		sent, _, err := h.runs.webhook.Step(ctx)
		if n += sent; err != nil {
			return n, err
		}
	}
	deleted, err := h.deleteExpired(ctx)
	return n + deleted, err
}

// maxRunsPerStep is the number of runs that one Step serves at most.
const maxRunsPerStep = 16

// Run serves until ctx ends. It then waits for requests in progress, for shutdownTimeout at most, and closes the Host.
// If ready is not nil, Run calls it with the server's URL once the server accepts requests.
func (h *Host) Run(ctx context.Context, ready func(url string)) (err error) {
	defer func() { err = errors.Join(err, h.Close()) }()
	handler, err := h.Handler(ctx)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", h.cfg.Listen)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot listen on %s: %v", h.cfg.Listen, err).
			Hintf("stop the process that uses the address, or choose another with --listen")
	}
	url := "http://" + l.Addr().String()
	removeAddress, err := publishAddress(h.cfg.Dir, url)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(h.log.Handler(), slog.LevelWarn)}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return h.services.gate.Run(inner) })
	group.Go(func() error { return h.runs.scheduler.Run(inner) })
	if h.runs.webhook != nil {
		group.Go(func() error { return h.runs.webhook.Run(inner) })
	}
	group.Go(func() error { return h.runs.deadlines.Run(inner) })
	group.Go(func() error { return h.services.broadcaster.Run(inner) })
	group.Go(func() error { return h.services.feed.Run(inner) })
	group.Go(func() error { return h.runs.memory.Run(inner) })
	group.Go(func() error { return h.services.notes.Run(inner) })
	group.Go(func() error { return h.runs.keeper.Run(inner) })
	group.Go(func() error { return h.runCleanup(inner) })
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
		shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		return errors.Join(removeAddress(), h.streams.Close(shutdown), srv.Shutdown(shutdown))
	})
	if ready != nil {
		ready(url)
	}
	debug.FreeOSMemory() // returns the memory that only the start needed
	return group.Wait()
}

// closeSilentDatabase closes the connections to a database server that does not respond, so that nothing waits for it
// during shutdown.
func (h *Host) closeSilentDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout/2)
	defer cancel()
	if h.db.SingleProcess() || h.checkReady(ctx) == nil {
		return nil
	}
	h.log.Warn("database does not respond; unfinished work is resumed after the next start")
	return h.db.Close()
}

// shutdownTimeout is the time that requests in progress have to finish when the server stops.
const shutdownTimeout = 10 * time.Second

// Close closes the Host and releases the data directory.
func (h *Host) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	errs := []error{h.streams.Close(ctx)}
	h.openMu.Lock()
	h.isClosed = true
	h.openMu.Unlock()
	if h.runs != nil {
		errs = append(errs, h.services.gate.Close(ctx))
	}
	if h.telemetry.tracing != nil {
		errs = append(errs, h.telemetry.tracing.Shutdown(ctx))
	}
	return errors.Join(append(errs, h.sandboxes.scripts.Close(), h.sandboxes.python.Close(), h.db.Close(),
		h.unlock())...)
}

// getSecret returns a stored secret for an HTTP tool.
func (h *Host) getSecret(ctx context.Context, workspace, name string) (value string, err error) {
	err = h.db.View(ctx, func(s *store.Snap) error {
		value, err = s.Agents().GetSecret(ctx, workspace, name)
		return err
	})
	return value, err
}

// listKnownSecrets returns the values that are redacted in addition to stored secrets: provider keys in the environment
// and in the configuration, and the keys and tokens of the server.
func listKnownSecrets(cfg Config) []string {
	var out []string
	for _, kv := range os.Environ() {
		name, v, _ := strings.Cut(kv, "=")
		if len(v) >= 8 && (strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_TOKEN") ||
			strings.HasSuffix(name, "_SECRET") || strings.HasSuffix(name, "_PASSWORD")) {
			out = append(out, v)
		}
	}
	// a webhook URL often contains a secret
	own := []string{cfg.SecretKey, cfg.MetricsToken, cfg.Memory.Key, cfg.Webhook, cfg.Web.Search.Key}
	for _, e := range append(slices.Collect(maps.Values(cfg.Models.Servers)), cfg.Models.Anthropic, cfg.Models.OpenAI,
		cfg.Models.Gemini, cfg.Models.Ollama) {
		if len(e.Key) >= 16 { // local servers often use a dummy key, which may be an ordinary word
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

// Dir returns the data directory.
func (h *Host) Dir() string { return h.cfg.Dir }
