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
	"reeve/internal/feed"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// Config holds the services and settings of the API.
type Config struct {
	DB           *store.DB
	Gate         *gate.Gate
	Scheduler    *wake.Scheduler
	Queue        *wake.Queue
	Timetable    *wake.Timetable
	Chat         *chat.Service
	Notes        NoteSearcher
	Consolidator NoteConsolidator
	Automations  Automations
	ScriptJobs   ScriptJobs
	Delegations  Delegations
	Branches     Branches
	Mail         MailReader
	Streams      *Streams // open streams and sockets. Default: a new set
	Log          *slog.Logger
	Version      string
	StartedAt    time.Time
	// Host names that the server accepts besides loopback names. Default: none
	Hosts []string
	// web origins that may call the server besides its own. Default: none
	Origins []string
	Rate    float64 // requests per second for one token. Default: 200
	Burst   int     // requests at once for one token. Default: 400
	// interval of keep-alive messages and of checks whether a client may still listen. Default: 15 s
	Heartbeat time.Duration
	Doctor    func(ctx context.Context) []reeve.PartHealth // checks the server's parts. Default: none are checked
	// returns an error while the server cannot serve. Default: always ready
	Ready    func(ctx context.Context) error
	IsHeld   func(ctx context.Context) bool                   // reports whether the server is held. Default: never
	Backup   func(ctx context.Context) (io.ReadCloser, error) // returns a copy of the database
	Requests RequestReader                                    // reads what models were asked
	Metrics  http.Handler                                     // serves the metrics. Default: no metrics
	// called when a summary is due. Default: it is made at the next check
	OnSummaryDue func()
	Feed         *feed.Feed // what changes. Default: no stream of changes
	Console      Console    // the web console. Default: none

	// OpenTokens reports whether tools of the embedding program may announce changes that no built-in tool announces.
	// Default: false
	OpenTokens bool
	// MetricsToken is a token that may read the metrics and nothing else. Default: only server tokens may read them
	MetricsToken string
}

// Delegations ends calls that wait too long for another agent. Wakeup makes it look for passed deadlines now.
type Delegations interface{ Wakeup() }

// RequestReader reads what the model was asked in a run.
type RequestReader interface {
	// AskedRequests returns the request before each answer of a run.
	AskedRequests(ctx context.Context, run reeve.Run) ([]reeve.AskedRequest, error)
}

// services holds what the handlers of several resources share.
type services struct {
	Config
	errors    errorWriter
	auth      *authenticator
	permits   streamPermitIssuer
	announcer changeAnnouncer
	redactor  viewRedactor
	canceler  turnCanceler
	streamer  eventStreamer
}

func newServices(cfg Config) *services {
	s := &services{Config: cfg, errors: errorWriter{cfg.Streams}}
	s.auth = &authenticator{db: cfg.DB, errors: s.errors, limit: limiter{rate: cfg.Rate, burst: cfg.Burst}}
	s.permits = streamPermitIssuer{db: cfg.DB, streams: cfg.Streams, heartbeat: cfg.Heartbeat}
	s.announcer = changeAnnouncer{db: cfg.DB, gate: cfg.Gate}
	s.redactor = viewRedactor{db: cfg.DB, gate: cfg.Gate}
	s.canceler = turnCanceler{db: cfg.DB, scheduler: cfg.Scheduler, streams: cfg.Streams}
	s.streamer = eventStreamer{permits: s.permits, redactor: s.redactor, streams: cfg.Streams}
	return s
}

// bodyLimit is the default limit of a request body in bytes. A session file of the largest size fits, even escaped.
const bodyLimit = 4 << 20

// maxBodyBytes returns the body limit of a route in bytes. Turns carry attachments and mail batches carry many
// messages, so both have a higher limit.
func maxBodyBytes(path string) int64 {
	switch path {
	case turnsPath:
		return chat.BodyLimit
	case batchesPath:
		return batchLimit
	}
	return bodyLimit
}

// New returns the handler of the whole API.
func New(cfg Config) http.Handler {
	if cfg.Rate == 0 {
		cfg.Rate = 200
	}
	if cfg.Burst == 0 {
		cfg.Burst = 400
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = defaultHeartbeat
	}
	if cfg.Streams == nil {
		cfg.Streams = NewStreams()
	}
	installProblems()
	s := newServices(cfg)
	mux := http.NewServeMux()
	router := humago.New(mux, openAPIConfig(cfg.Version))
	registerRoutes(router, s)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.Handle("GET /readyz", &readinessHandler{errors: s.errors, ready: cfg.Ready, held: cfg.IsHeld})
	mux.Handle("GET /conversations/{id}", &conversationSockets{db: cfg.DB, gate: cfg.Gate, chat: cfg.Chat, auth: s.auth,
		permits:  s.permits,
		redactor: s.redactor, canceler: s.canceler, streams: cfg.Streams, errors: s.errors, log: cfg.Log})
	mux.HandleFunc("GET /automations/{id}/runs/{runId}", newAutomationRunHandlers(s).socket)
	(&openaiHandlers{db: cfg.DB, chat: cfg.Chat, auth: s.auth, permits: s.permits, canceler: s.canceler,
		streams: cfg.Streams,
		errors:  s.errors}).register(mux)
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", &metricsHandler{auth: s.auth, errors: s.errors, metrics: cfg.Metrics,
			token: cfg.MetricsToken})
	}
	mux.HandleFunc("GET /docs", docs(router.OpenAPI(), cfg.Log))
	pages := &consolePages{console: cfg.Console, unmatched: s.errors.handleUnmatched(mux)}
	mux.Handle("GET /{$}", pages)
	mux.Handle("/", pages)
	return s.middleware(pages.serveNavigations(mux))
}

// middleware wraps h in the checks that every request passes. The outermost check is added last.
func (s *services) middleware(h http.Handler) http.Handler {
	once := &idempotency{db: s.DB, gate: s.Gate, errors: s.errors, log: s.Log}
	hold := &holdGuard{db: s.DB, errors: s.errors}
	origin := &originGuard{errors: s.errors, hosts: s.Hosts, origins: s.Origins}
	ids := &requestIDs{errors: s.errors, log: s.Log}
	h = s.auth.authenticate(hold.check(once.deduplicate(h)))
	return ids.assignID(limitBodyTime(origin.check(s.errors.checkPath(h))))
}

// openAPIConfig returns the configuration of huma, with the metadata of the OpenAPI document.
func openAPIConfig(version string) huma.Config {
	cfg := huma.DefaultConfig("Reeve", version)
	cfg.Info.Description = "Reeve runs agents that act through tools, and records every action."
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
	enc := json.NewEncoder(clientWriter{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// clientWriter ignores that a client has left before it got its response. Otherwise huma would set another status, and
// net/http would log a warning.
type clientWriter struct{ io.Writer }

func (c clientWriter) Write(b []byte) (int, error) {
	_, _ = c.Writer.Write(b)
	return len(b), nil
}

// unmarshal decodes strict JSON. It fails on duplicate keys, invalid UTF-8 and lone surrogates.
func unmarshal(b []byte, v any) error {
	if _, err := canonjson.Parse(b); err != nil {
		return reeve.InvalidJSON(err)
	}
	return describeDecodeError(json.Unmarshal(b, v))
}

// body is a response with a body.
type body[T any] struct{ Body T }

// none is a response without a body.
type none struct{}

// route describes one route. The caller's token must have at least the given role.
type route struct {
	method, path, id, summary string
	tag                       string
	role                      reeve.Role
	status                    int
}

// handle registers a route. It checks the input, and turns errors of f into problem documents.
func handle[I, O any](router huma.API, r route, f func(context.Context, reeve.Principal, *I) (*O, error)) {
	op := huma.Operation{Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Tags: []string{r.tag},
		DefaultStatus: r.status,
		MaxBodyBytes:  maxBodyBytes(r.path), BodyReadTimeout: -1} // limitBodyTime sets the deadlines
	if r.method == http.MethodPost && keyRules[r.id] == 0 {
		panic("route " + r.id + " has no entry in keyRules")
	}
	if r.method == http.MethodPost && !handlesOwnKey(r.path) {
		op.Parameters = append(op.Parameters, keyParameter())
	}
	op.Middlewares = huma.Middlewares{r.requireRole}
	huma.Register(router, op, func(ctx context.Context, in *I) (*O, error) {
		who := principal(ctx)
		if err := cmp.Or(checkText(in), checkIntegers(in)); err != nil {
			return nil, newProblem(ctx, err)
		}
		out, err := f(r.withIdempotentRequest(ctx), who, in)
		if err != nil {
			return nil, newProblem(ctx, err)
		}
		return out, nil
	})
}

// requireRole rejects callers without the route's role before the body is read.
func (r route) requireRole(c huma.Context, next func(huma.Context)) {
	role := principal(c.Context()).Role
	if role.Allows(r.role) {
		next(c)
		return
	}
	p := newProblem(c.Context(), reeve.Errorf(reeve.Forbidden, "the role %s may not use this route", role).
		Hintf("use a token with the role %s", r.role))
	c.SetHeader("Content-Type", p.ContentType(""))
	c.SetStatus(p.Status)
	_ = json.NewEncoder(c.BodyWriter()).Encode(p)
}
