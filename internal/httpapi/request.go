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
	openRequestKey
)

// request holds the id and the logger of a request.
type request struct {
	id  string
	log func(msg string, args ...any)
}

// principal returns the authenticated caller, or the zero value.
func principal(ctx context.Context) reeve.Principal {
	p, _ := ctx.Value(principalKey).(reeve.Principal)
	return p
}

func requestID(ctx context.Context) string {
	r, _ := ctx.Value(requestKey).(request)
	return r.id
}

// logFailure logs err with the request id.
func logFailure(ctx context.Context, err error) {
	if r, ok := ctx.Value(requestKey).(request); ok {
		r.log("request failed", "request", r.id, "error", err)
	}
}

// logServerFailure logs err if its status is 500 or above and the server is not stopping.
func logServerFailure(ctx context.Context, err error) {
	if reeve.AsError(err) != errStopping && statuses[reeve.CodeOf(err)] >= http.StatusInternalServerError {
		logFailure(ctx, err)
	}
}

// requestIDs assigns an id to each request.
type requestIDs struct {
	errors errorWriter
	log    *slog.Logger
	ids    reeve.IDs
}

// identify assigns a request id, sets common headers, and turns a panic of a handler into an internal error.
func (i *requestIDs) assignID(next http.Handler) http.Handler {
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
				i.log.Error("handler panicked", "request", id, "panic", p)
				i.errors.write(w, r, reeve.Errorf(reeve.Internal, "internal error"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Scoped is embedded in the input of every route of a workspace. It documents the header, which authenticate has
// checked. Embedded input types are exported because huma ignores unexported ones.
type Scoped struct {
	Workspace string `header:"X-Workspace-Id" doc:"Workspace id, such as default" required:"true"`
}

// IDPath is the input of routes with an id in the path.
type IDPath struct {
	Scoped
	ID string `path:"id" maxLength:"128"`
}

// AgentPath is the input of routes with an agent in the path.
type AgentPath struct {
	Scoped
	Agent string `path:"agentId" maxLength:"128" doc:"Agent id or name"`
}
