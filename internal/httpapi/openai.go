package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// openaiHandlers serves the OpenAI-compatible routes under /v1. An agent is a model, and a request is a turn in a new
// conversation. Errors, bodies and streams have the format of OpenAI, so that clients work unchanged.
type openaiHandlers struct {
	db       *store.DB
	chat     *chat.Service
	auth     *authenticator
	permits  streamPermitIssuer
	canceler turnCanceler
	streams  *Streams
	errors   errorWriter
}

// register adds the routes to a mux.
func (h *openaiHandlers) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/models", h.handle(h.listModels))
	mux.HandleFunc("GET /v1/models/{model}", h.handle(h.getModel))
	mux.HandleFunc("POST /v1/chat/completions", h.handle(h.createChatCompletion))
	mux.HandleFunc("POST /v1/responses", h.handle(h.createResponse))
	mux.HandleFunc("GET /v1/responses/{id}", h.handle(h.getResponse))
}

// maxV1Body is the limit of a request body in bytes. A long history with images fits.
const maxV1Body = 32 << 20

// handle authenticates the caller, who must be a member, and writes errors of f in the format of OpenAI.
func (h *openaiHandlers) handle(f func(w http.ResponseWriter, r *http.Request,
	who reeve.Principal) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.streams.enter() {
			h.errors.writeV1(w, r, errStopping)
			return
		}
		defer h.streams.leave()
		ctx, cancel := h.streams.context(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		who, err := h.identifyRequest(r)
		if err == nil && !who.Role.Allows(reeve.Member) {
			err = reeve.Errorf(reeve.Forbidden, "the role %s may not talk to agents", who.Role).
				Hintf("use a token with the role %s", reeve.Member)
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxV1Body)
			err = f(w, r, who)
		}
		if err != nil {
			h.errors.writeV1(w, r, err)
		}
	}
}

// identifyRequest returns the caller. The workspace is X-Workspace-Id, the OpenAI project, or the only workspace of the
// token. It fails if the token is valid in several workspaces and the request names none.
func (h *openaiHandlers) identifyRequest(r *http.Request) (reeve.Principal, error) {
	if r.Header.Get("X-Workspace-Id") == "" {
		name := r.Header.Get("OpenAI-Project")
		if name == "" {
			_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			s := secret{reeve.BearerToken, strings.TrimSpace(token)}
			switch c, err := h.auth.getCredential(r.Context(), s); {
			case err != nil || len(c.Workspaces) == 0:
			case len(c.Workspaces) > 1:
				return reeve.Principal{},
					reeve.Errorf(reeve.Validation, "the token is valid in several workspaces").
						Hintf("set the header OpenAI-Project or X-Workspace-Id to the workspace, or use a token " +
							"of one workspace")
			default:
				name = c.Workspaces[0]
			}
		}
		if name == "" {
			name = "default" // the token is not valid, and authentication fails below
		}
		r.Header.Set("X-Workspace-Id", name)
	}
	return h.auth.identify(r, secret{reeve.BearerToken, bearerToken(r)}, r.Header.Get("X-Workspace-Id"))
}

// v1Problem is an error in the format of OpenAI.
type v1Problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// v1CodedError is an error with a code of OpenAI.
type v1CodedError struct {
	code string
	err  *reeve.Error
}

func (f *v1CodedError) Error() string { return f.err.Error() }
func (f *v1CodedError) Unwrap() error { return f.err }

// isV1 reports whether a path is under /v1 after cleaning.
func isV1(p string) bool {
	p = path.Clean("/" + p)
	return p == "/v1" || strings.HasPrefix(p, "/v1/")
}

// newV1Problem converts an error into the format of OpenAI, and returns its status. Like newProblem, it hides the
// details of internal errors.
func newV1Problem(err error) (v1Problem, int) {
	e := reeve.AsError(err)
	if e.Code == reeve.Internal {
		e = reeve.Errorf(reeve.Internal, "internal error").Hintf("search the server's log for the request id")
	}
	status, ok := statuses[e.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	p := v1Problem{Message: e.Message, Code: strings.ToLower(string(e.Code)), Type: "invalid_request_error"}
	if e.Hint != "" {
		p.Message += " (" + e.Hint + ")"
	}
	param := ""
	if len(e.Fields) > 0 {
		param = e.Fields[0].Path
		p.Param = &param
	}
	switch {
	case e.Code == reeve.Unauthenticated:
		p.Type, p.Code = "authentication_error", "invalid_api_key"
	case e.Code == reeve.NotFound && param == "model":
		p.Code = "model_not_found"
	case e.Code == reeve.NotFound && param == "previous_response_id":
		p.Code, status = "previous_response_not_found", http.StatusBadRequest
	case e.Code == reeve.Unsupported: // clients would retry a server error
		status = http.StatusBadRequest
	case e.Code == reeve.RateLimited:
		p.Type, p.Code = "rate_limit_error", "rate_limit_exceeded"
	case status >= 500:
		p.Type = "server_error"
	}
	if fault, ok := errors.AsType[*v1CodedError](err); ok {
		p.Code = fault.code
	}
	return p, status
}

// writeV1 sends an error in the format of OpenAI.
func (e errorWriter) writeV1(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = reeve.Errorf(reeve.TooLarge, "the request body is too large").Hintf("send at most %d MiB", maxV1Body>>20)
	}
	err = e.streams.endError(r.Context(), err)
	logServerFailure(r.Context(), err)
	p, status := newV1Problem(err)
	after := reeve.AsError(err).RetryAfter
	if status == http.StatusTooManyRequests {
		after = max(after, time.Second)
	}
	if after > 0 {
		w.Header().Set("Retry-After", formatRetryAfter(after))
	}
	writeV1JSON(w, status, map[string]any{"error": p})
}

// writeV1JSON sends a JSON document.
func writeV1JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = marshal(w, v) // v can be encoded
}

// decodeV1Request decodes a request into v. It fails if the rules do not allow a parameter.
func decodeV1Request(r *http.Request, rules map[string]v1Rule, v any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var parameters map[string]json.RawMessage
	err = unmarshal(b, &parameters)
	if err == nil {
		if err := checkV1Parameters(parameters, rules); err != nil {
			return err
		}
		err = unmarshal(b, v)
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		return newV1Invalid(t.Field, "%s cannot be a %s", t.Field, t.Value)
	}
	if err != nil {
		return reeve.Errorf(reeve.Validation, "the request body is not a JSON object of parameters: %v",
			reeve.AsError(err).Message)
	}
	return nil
}

// getAgent returns the active agent with the name of a model.
func (h *openaiHandlers) getAgent(ctx context.Context, who reeve.Principal, name string) (a reeve.Agent, err error) {
	if name == "" {
		return a, &reeve.Error{Code: reeve.Validation, Message: "model is missing",
			Fields: []reeve.Field{{Path: "model"}}}
	}
	err = h.db.View(ctx, func(snap *store.Snap) error {
		a, err = snap.Agents().GetAgent(ctx, who.Workspace, name)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && a.Lifecycle != reeve.AgentActive {
		err = &reeve.Error{Code: reeve.NotFound,
			Message: fmt.Sprintf("model %q not found: no active agent has this name", name),
			Hint:    "list the models with GET /v1/models", Fields: []reeve.Field{{Path: "model"}}}
	}
	return a, err
}

// v1ModelInfo describes an agent as a model.
type v1ModelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func newV1ModelInfo(a reeve.Agent) v1ModelInfo {
	return v1ModelInfo{ID: a.Name, Object: "model", Created: a.CreatedAt.Unix(), OwnedBy: "reeve"}
}

func (h *openaiHandlers) listModels(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	list := []v1ModelInfo{}
	err := h.db.View(r.Context(), func(snap *store.Snap) error {
		const page = 500
		for after, more := "", true; more; {
			agents, err := snap.Agents().ListAgents(r.Context(), who.Workspace, after, page)
			if err != nil {
				return err
			}
			for _, a := range agents {
				if after = a.Name; a.Lifecycle == reeve.AgentActive && a.Mode.Allows(reeve.ReasonUser) {
					list = append(list, newV1ModelInfo(a))
				}
			}
			more = len(agents) == page
		}
		return nil
	})
	if err == nil {
		writeV1JSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	}
	return err
}

func (h *openaiHandlers) getModel(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	a, err := h.getAgent(r.Context(), who, r.PathValue("model"))
	if err == nil {
		writeV1JSON(w, http.StatusOK, newV1ModelInfo(a))
	}
	return err
}
