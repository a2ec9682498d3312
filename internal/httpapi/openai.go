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

// The OpenAI-compatible routes: an agent is a model, and a request is a turn in a conversation of its own. Their
// errors, bodies and streams are OpenAI's, so that clients need not change.

// openaiHandlers serves the OpenAI-compatible routes.
type openaiHandlers struct {
	db       *store.DB
	chat     *chat.Service
	auth     *authenticator
	permits  permitIssuer
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

// maxV1Body is the most bytes of a request: a long history with pictures fits.
const maxV1Body = 32 << 20

// handle finds out who calls, and answers errors as OpenAI does.
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
			err = reeve.Errorf(reeve.Forbidden, "a token with role %s cannot talk to agents", who.Role)
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

// identifyRequest is identity for clients that do not know of workspaces: a token of one workspace is of that one, and for a
// token of several they name it as a project.
func (h *openaiHandlers) identifyRequest(r *http.Request) (reeve.Principal, error) {
	if r.Header.Get("X-Workspace-Id") == "" {
		name := r.Header.Get("OpenAI-Project")
		if name == "" {
			_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			switch c, err := h.auth.getCredential(r.Context(), strings.TrimSpace(token)); {
			case err != nil || len(c.Workspaces) == 0:
			case len(c.Workspaces) > 1:
				return reeve.Principal{},
					reeve.Errorf(reeve.Validation, "the token is of several workspaces, and the request names none").
						Hintf("send the header OpenAI-Project or X-Workspace-Id with the workspace, or use a token " +
							"of one")
			default:
				name = c.Workspaces[0]
			}
		}
		if name == "" {
			name = "default" // whoever has no valid token is told so, whatever the workspace
		}
		r.Header.Set("X-Workspace-Id", name)
	}
	return h.auth.identifyRequest(r)
}

// v1Problem is OpenAI's error.
type v1Problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// v1CodedError is an error of a request's, with the code that OpenAI has for it.
type v1CodedError struct {
	code string
	err  *reeve.Error
}

func (f *v1CodedError) Error() string { return f.err.Error() }
func (f *v1CodedError) Unwrap() error { return f.err }

// isV1 tells whether a path is one where OpenAI's clients call, however it is written.
func isV1(p string) bool {
	p = path.Clean("/" + p)
	return p == "/v1" || strings.HasPrefix(p, "/v1/")
}

// newV1Problem is an error as OpenAI's clients know it, with its status. What is internal stays inside, as in problem.
func newV1Problem(err error) (v1Problem, int) {
	e := reeve.AsError(err)
	if e.Code == reeve.Internal {
		e = reeve.Errorf(reeve.Internal,
			"internal error").Hintf("the server's log has the details under the request id")
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
	case e.Code == reeve.Unsupported: // a server error would be tried again
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

func (e errorWriter) writeV1(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = reeve.Errorf(reeve.TooLarge, "the request has more than %d bytes", maxV1Body)
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

// writeV1JSON answers with a JSON document.
func writeV1JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = marshal(w, v) // whoever does not listen any more has gone
}

// decodeV1Request decodes a request, and refuses parameters that the rules do not allow.
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
		return reeve.Errorf(reeve.Validation, "the body is not a JSON object of parameters: %v",
			reeve.AsError(err).Message)
	}
	return nil
}

// getAgent finds the agent that a model's name means.
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
		err = &reeve.Error{Code: reeve.NotFound, Message: fmt.Sprintf("there is no agent %q to be used as a model",
			name),
			Hint: "GET /v1/models lists those that there are", Fields: []reeve.Field{{Path: "model"}}}
	}
	return a, err
}

// v1ModelInfo is an agent as a model.
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
				if after = a.Name; a.Lifecycle == reeve.AgentActive && a.Mode.Wakes(reeve.ReasonUser) {
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
