package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"reeve"
)

type ctxKey int

const (
	principalKey ctxKey = iota
	requestKey
	attemptKey
)

// request is what we know of a request from its start.
type request struct {
	id  string
	log func(msg string, args ...any)
}

func principal(ctx context.Context) reeve.Principal {
	p, _ := ctx.Value(principalKey).(reeve.Principal)
	return p
}

func requestID(ctx context.Context) string {
	r, _ := ctx.Value(requestKey).(request)
	return r.id
}

func logFailure(ctx context.Context, err error) {
	if r, ok := ctx.Value(requestKey).(request); ok {
		r.log("a request failed", "request", r.id, "error", err)
	}
}

// logServerFailure is note for errors that are nobody's but the server's, unless it only stops.
func logServerFailure(ctx context.Context, err error) {
	if reeve.AsError(err) != errStopping && statuses[reeve.CodeOf(err)] >= http.StatusInternalServerError {
		logFailure(ctx, err)
	}
}

// requestIDs gives each request an id.
type requestIDs struct {
	errors errorWriter
	log    *slog.Logger
	ids    reeve.IDs
}

// identify gives each request an id and keeps a panic from reaching anybody else.
func (i *requestIDs) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := i.ids.New(reeve.PrefixRequest, reeve.Now())
		r = r.WithContext(context.WithValue(r.Context(), requestKey, request{id: id, log: i.log.Error}))
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint,goerr113 // net/http compares it so
					panic(p)
				}
				i.log.Error("a handler panicked", "request", id, "panic", p)
				i.errors.write(w, r, reeve.Errorf(reeve.Internal, "internal error"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Scoped is in the input of every route of a workspace. The middleware authenticate has checked the header; here it is
// documented. Input types that are embedded are exported, because huma ignores others.
type Scoped struct {
	Workspace string `header:"X-Workspace-Id" doc:"The workspace" required:"true"`
}

// IDPath names a thing by its id.
type IDPath struct {
	Scoped
	ID string `path:"id" maxLength:"128"`
}

// AgentPath names an agent.
type AgentPath struct {
	Scoped
	Agent string `path:"agentId" maxLength:"128" doc:"Id or name"`
}
