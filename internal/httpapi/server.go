package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// Config says what the API serves.
type Config struct {
	DB          *store.DB
	Gate        *gate.Gate
	Scheduler   *wake.Scheduler
	Queue       *wake.Queue
	Planner     *wake.Planner
	Desk        *chat.Service
	Automations Automations
	Delegations Delegations
	Branches    Branches
	Streams     *Streams // what goes on until somebody ends it. Default: one that nobody closes
	Log         *slog.Logger
	Version     string
	StartedAt   time.Time
	// names the server answers to, besides loopback ones. Default: none
	Hosts []string
	// web origins that may call it, besides its own. Default: none
	Origins []string
	Rate    float64 // requests per second for one token. Default: 200
	Burst   int     // requests at once for one token. Default: 400
	// between signs of life, and looks at whether a client may still listen. Default: 15 s
	Heartbeat time.Duration
	Doctor    func(ctx context.Context) []reeve.PartHealth     // checks the server's parts
	Ready     func(ctx context.Context) error                  // whether it can serve
	Held      func(ctx context.Context) bool                   // whether it is held. Default: never
	Backup    func(ctx context.Context) (io.ReadCloser, error) // makes a whole copy of the database
	Metrics   http.Handler                                     // what is measured. Default: not served

	// whether tools of a program's own may tell of other things than the built-in ones do. Default: they do not
	OpenTokens   bool
	MetricsToken string // a token that reads the metrics and nothing else. Default: only server tokens do
}

// Delegations looks at once whether calls of agents by agents wait for a run that has ended.
type Delegations interface{ Wakeup() }

// services is what the handlers of several resources share.
type services struct {
	Config
	errors    errorWriter
	auth      *authenticator
	permits   permitIssuer
	announcer changeAnnouncer
	redactor  viewRedactor
	canceler  turnCanceler
	follower  eventStreamer
}

func newServices(cfg Config) *services {
	s := &services{Config: cfg, errors: errorWriter{cfg.Streams}}
	s.auth = &authenticator{db: cfg.DB, errors: s.errors, limit: limiter{rate: cfg.Rate, burst: cfg.Burst}}
	s.permits = permitIssuer{db: cfg.DB, streams: cfg.Streams, heartbeat: cfg.Heartbeat}
	s.announcer = changeAnnouncer{db: cfg.DB, gate: cfg.Gate}
	s.redactor = viewRedactor{db: cfg.DB, gate: cfg.Gate}
	s.canceler = turnCanceler{db: cfg.DB, scheduler: cfg.Scheduler, streams: cfg.Streams}
	s.follower = eventStreamer{permits: s.permits, redactor: s.redactor, streams: cfg.Streams}
	return s
}

// bodyLimit is the most bytes a request body may have. A session file of its largest size fits, escaped.
const bodyLimit = 4 << 20

// mostBody is the limit of a route. What a person says may bring files with it, and a batch holds many mails.
func mostBody(path string) int64 {
	switch path {
	case turnsPath:
		return chat.BodyLimit
	case batchesPath:
		return batchLimit
	}
	return bodyLimit
}

// New makes the handler of the whole API.
func New(cfg Config) http.Handler {
	if cfg.Rate == 0 {
		cfg.Rate = 200
	}
	if cfg.Burst == 0 {
		cfg.Burst = 400
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = heartbeat
	}
	if cfg.Streams == nil {
		cfg.Streams = NewStreams()
	}
	installProblems()
	s := newServices(cfg)
	mux := http.NewServeMux()
	router := humago.New(mux, document(cfg.Version))
	routes(router, s)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.Handle("GET /readyz", &readinessHandler{errors: s.errors, ready: cfg.Ready, held: cfg.Held})
	mux.Handle("GET /conversations/{id}", &conversationSockets{db: cfg.DB, gate: cfg.Gate, desk: cfg.Desk, auth: s.auth,
		permits:  s.permits,
		redactor: s.redactor, canceler: s.canceler, streams: cfg.Streams, errors: s.errors, log: cfg.Log})
	mux.HandleFunc("GET /automations/{id}/runs/{runId}", newAutomationRunHandlers(s).socket)
	(&openaiHandlers{db: cfg.DB, desk: cfg.Desk, auth: s.auth, permits: s.permits, canceler: s.canceler,
		streams: cfg.Streams,
		errors:  s.errors}).register(mux)
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", &metricsHandler{auth: s.auth, errors: s.errors, metrics: cfg.Metrics,
			token: cfg.MetricsToken})
	}
	mux.HandleFunc("GET /docs", docs(router.OpenAPI(), cfg.Log))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/docs",
			http.StatusFound)
	})
	mux.HandleFunc("/", s.errors.unmatched(mux))
	return s.middleware(mux)
}

// middleware wraps the routes in the checks that every request passes, the outermost last.
func (s *services) middleware(h http.Handler) http.Handler {
	once := &idempotency{db: s.DB, gate: s.Gate, errors: s.errors, log: s.Log}
	hold := &holdGuard{db: s.DB, errors: s.errors}
	origin := &originGuard{errors: s.errors, hosts: s.Hosts, origins: s.Origins}
	ids := &requestIDs{errors: s.errors, log: s.Log}
	h = s.auth.authenticate(hold.check(once.once(h)))
	return ids.identify(paced(origin.check(s.errors.checkPath(h))))
}

// document is the head of the OpenAPI document.
func document(version string) huma.Config {
	cfg := huma.DefaultConfig("Reeve", version)
	cfg.Info.Description = "Runs agents that act through tools, and answers for every action."
	cfg.DocsPath, cfg.CreateHooks = "", nil
	cfg.SchemasPath = ""
	cfg.RejectUnknownQueryParameters = true
	cfg.Formats = map[string]huma.Format{"application/json": {Marshal: marshal, Unmarshal: unmarshal},
		"json": {Marshal: marshal, Unmarshal: unmarshal}}
	cfg.DefaultFormat = "application/json"
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	cfg.Security = []map[string][]string{{"token": {}}}
	return cfg
}

func marshal(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// unmarshal is strict about what JSON is: duplicate keys, bad UTF-8 and lone surrogates are refused, not guessed at.
func unmarshal(b []byte, v any) error {
	if _, err := canonjson.Parse(b); err != nil {
		return reeve.InvalidJSON(err)
	}
	return decoded(json.Unmarshal(b, v))
}

// body is an output with a body.
type body[T any] struct{ Body T }

// none is an output without one.
type none struct{}

// route describes one route. Role is what the token must have in the workspace.
type route struct {
	method, path, id, summary string
	tag                       string
	role                      reeve.Role
	status                    int
}

// handle registers a route. Errors of any room become problems here, in one place.
func handle[I, O any](router huma.API, r route, f func(context.Context, reeve.Principal, *I) (*O, error)) {
	op := huma.Operation{Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Tags: []string{r.tag},
		DefaultStatus: r.status,
		MaxBodyBytes:  mostBody(r.path), BodyReadTimeout: -1} // as paced has it
	if r.method == http.MethodPost && keyRules[r.id] == 0 {
		panic("the route " + r.id + " has no rule for its Idempotency-Key; see keyRules")
	}
	if r.method == http.MethodPost && !hasOwnKey(r.path) {
		op.Parameters = append(op.Parameters, keyParameter())
	}
	op.Middlewares = huma.Middlewares{r.only}
	huma.Register(router, op, func(ctx context.Context, in *I) (*O, error) {
		who := principal(ctx)
		if err := cmp.Or(checkText(in), checkIntegers(in)); err != nil {
			return nil, problem(ctx, err)
		}
		out, err := f(r.answering(ctx), who, in)
		if err != nil {
			return nil, problem(ctx, err)
		}
		return out, nil
	})
}

// only lets those through whose role suffices, before a word of what they sent is read.
func (r route) only(c huma.Context, next func(huma.Context)) {
	role := principal(c.Context()).Role
	if role.Allows(r.role) {
		next(c)
		return
	}
	p := problem(c.Context(), reeve.Errorf(reeve.Forbidden, "a token with role %s cannot do this", role).
		Hintf("it takes the role %s", r.role))
	c.SetHeader("Content-Type", p.ContentType(""))
	c.SetStatus(p.Status)
	_ = json.NewEncoder(c.BodyWriter()).Encode(p)
}
