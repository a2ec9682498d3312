package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
	"reeve/model"
)

// The OpenAI-compatible routes: an agent is a model, and a request is a turn in a conversation of its own. Their errors, bodies and
// streams are OpenAI's, so that clients need not change.

// openAI registers them.
func (s *server) openAI(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/models", s.v1(s.v1Models))
	mux.HandleFunc("GET /v1/models/{model}", s.v1(s.v1Model))
	mux.HandleFunc("POST /v1/chat/completions", s.v1(s.v1Chat))
	mux.HandleFunc("POST /v1/responses", s.v1(s.v1Respond))
	mux.HandleFunc("GET /v1/responses/{id}", s.v1(s.v1Response))
}

// v1Limit is the most bytes of a request: a long history with pictures fits.
const v1Limit = 32 << 20

// v1 finds out who calls, and answers errors as OpenAI does.
func (s *server) v1(f func(w http.ResponseWriter, r *http.Request, who reeve.Principal) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.Streams.enter() {
			s.v1Error(w, r, reeve.Errorf(reeve.Unavailable, "the server is stopping"))
			return
		}
		defer s.Streams.leave()
		ctx, cancel := s.Streams.context(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		who, err := s.v1Identity(r)
		if err == nil && !who.Role.Allows(reeve.Member) {
			err = reeve.Errorf(reeve.Forbidden, "a token with role %s cannot talk to agents", who.Role)
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, v1Limit)
			err = f(w, r, who)
		}
		if err != nil {
			s.v1Error(w, r, err)
		}
	}
}

// v1Identity is identity for clients that cannot name a workspace: a token of one workspace is of that one.
func (s *server) v1Identity(r *http.Request) (reeve.Principal, error) {
	if r.Header.Get("X-Workspace-Id") == "" {
		name := r.Header.Get("OpenAI-Project")
		if name == "" {
			_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			if c, err := s.credential(r.Context(), strings.TrimSpace(token)); err == nil && len(c.Workspaces) > 0 {
				name = c.Workspaces[0]
			}
		}
		if name == "" {
			name = "default" // whoever has no valid token is told so, whatever the workspace
		}
		r.Header.Set("X-Workspace-Id", name)
	}
	return s.identity(r)
}

// v1Problem is OpenAI's error.
type v1Problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func v1ProblemOf(err error) (v1Problem, int) {
	e := reeve.AsError(err)
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
	case e.Code == reeve.RateLimited:
		p.Type, p.Code = "rate_limit_error", "rate_limit_exceeded"
	case status >= 500:
		p.Type = "server_error"
	}
	return p, status
}

func (s *server) v1Error(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = reeve.Errorf(reeve.TooLarge, "the request has more than %d bytes", v1Limit)
	}
	p, status := v1ProblemOf(err)
	if status >= http.StatusInternalServerError {
		note(r.Context(), err)
	}
	if after := reeve.AsError(err).RetryAfter; after > 0 {
		w.Header().Set("Retry-After", retrySeconds(after))
	}
	s.v1Write(w, status, map[string]any{"error": p})
}

func (s *server) v1Write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = marshal(w, v) // whoever does not listen any more has gone
}

// v1Read decodes a request. Fields that mean nothing to us are left alone: clients send many.
func v1Read(r *http.Request, v any) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	err = unmarshal(b, v)
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return wrongV1(t.Field, "%s cannot be a %s", t.Field, t.Value)
	}
	if err != nil {
		return reeve.Errorf(reeve.Validation, "the body is not right: %v", err)
	}
	return nil
}

// v1Bounds checks how long and how free an answer may be, and gives what it may take; 0 means what the agent's own settings say.
func v1Bounds(temperature *float64, limits map[string]*int) (most int, err error) {
	if temperature != nil && (*temperature < 0 || *temperature > 2) {
		return 0, wrongV1("temperature", "temperature is from 0 to 2, and not %v", *temperature)
	}
	for name, n := range limits {
		if n != nil && *n < 1 {
			return 0, wrongV1(name, "%s is at least 1, and not %d", name, *n)
		}
		if n != nil {
			most = max(most, *n)
		}
	}
	return most, nil
}

// v1Agent finds the agent that a model's name means.
func (s *server) v1Agent(ctx context.Context, who reeve.Principal, name string) (a reeve.Agent, err error) {
	if name == "" {
		return a, &reeve.Error{Code: reeve.Validation, Message: "model is missing", Fields: []reeve.Field{{Path: "model"}}}
	}
	err = s.DB.View(ctx, func(snap *store.Snap) error {
		a, err = snap.GetAgent(ctx, who.Workspace, name)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && a.Lifecycle != reeve.AgentActive {
		err = &reeve.Error{Code: reeve.NotFound, Message: fmt.Sprintf("there is no agent %q to be used as a model", name),
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

func v1ModelOf(a reeve.Agent) v1ModelInfo {
	return v1ModelInfo{ID: a.Name, Object: "model", Created: a.CreatedAt.Unix(), OwnedBy: "reeve"}
}

func (s *server) v1Models(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	list := []v1ModelInfo{}
	err := s.DB.View(r.Context(), func(snap *store.Snap) error {
		agents, err := snap.ListAgents(r.Context(), who.Workspace, "", 1000)
		for _, a := range agents {
			if a.Lifecycle == reeve.AgentActive && a.Mode.Wakes(reeve.ReasonUser) {
				list = append(list, v1ModelOf(a))
			}
		}
		return err
	})
	if err == nil {
		s.v1Write(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	}
	return err
}

func (s *server) v1Model(w http.ResponseWriter, r *http.Request, who reeve.Principal) error {
	a, err := s.v1Agent(r.Context(), who, r.PathValue("model"))
	if err == nil {
		s.v1Write(w, http.StatusOK, v1ModelOf(a))
	}
	return err
}

// v1Turn is a turn that a client of OpenAI's language waits for.
type v1Turn struct {
	server  *server
	who     reeve.Principal
	turn    reeve.Turn
	offered map[string]bool
	reader  *chat.Reader
}

// v1Begin begins one, in a conversation of its own or in one that is there.
func (s *server) v1Begin(ctx context.Context, who reeve.Principal, a reeve.Agent, conversation string, r reeve.TurnRequest, b chat.Brought, offers []model.Tool) (*v1Turn, error) {
	after := int64(0)
	if conversation == "" {
		c, err := s.Desk.Open(ctx, who, "", "openai", reeve.ConversationRequest{Agent: a.ID})
		if err != nil {
			return nil, err
		}
		conversation = c.ID
	} else if err := s.DB.View(ctx, func(snap *store.Snap) (err error) {
		after, err = snap.LastFrame(ctx, conversation)
		return err
	}); err != nil {
		return nil, err
	}
	if len(offers) > 0 {
		list, err := json.Marshal(offers)
		if err != nil {
			return nil, err
		}
		b.Offered = list
	}
	t := &v1Turn{server: s, who: who, offered: map[string]bool{}}
	for _, o := range offers {
		t.offered[o.Name] = true
	}
	var err error
	if t.turn, err = s.Desk.Relay(ctx, who, conversation, r, b); err != nil {
		return nil, err
	}
	t.reader, err = s.Desk.Hub.Subscribe(ctx, conversation, after)
	return t, err
}

// v1Seen is what a client is to be told next.
type v1Seen struct {
	text string
	call *reeve.Frame // a call of a tool that the client offers
	over bool
	fail error
}

// follow tells what the turn says until there is nothing more for this client: the agent has said all, hands a call over, or
// waits for a person. Whoever goes away ends the turn.
func (t *v1Turn) follow(ctx context.Context, tell func(v1Seen) error) error {
	defer t.reader.Close()
	sent, message := "", "" // what was told of the message under way, and the message
	held := false           // a message is made anew: its pieces are held back, as nobody can take back what was told
	for {
		lines, err := t.reader.Next(ctx)
		if err != nil {
			t.leave(ctx)
			return err
		}
		for _, l := range lines {
			var f reeve.Frame
			if err := json.Unmarshal(l.Data, &f); err != nil {
				return err
			}
			if f.TurnID != t.turn.ID {
				continue
			}
			var seen v1Seen
			switch f.Type {
			case reeve.FrameToken:
				switch {
				case f.Discard:
					held, message = sent != "", ""
				case !f.Reasoning:
					if message += f.Text; !held {
						seen.text, sent = f.Text, sent+f.Text
					}
				}
			case reeve.FrameMessage:
				seen.text = rest(f.Text, sent)
				sent, message, held = "", "", false
				seen.over = f.Final
			case reeve.FrameTool:
				if t.offered[f.Tool] {
					seen.call = &f
				}
			case reeve.FrameApproval:
				seen.text = "[" + f.Tool + " waits for a person: " + f.Message + ". It goes on by itself when it is approved: " + f.ApprovalID + "]"
				seen.over = true
			case reeve.FrameError:
				seen.fail = &reeve.Error{Code: f.Code, Message: f.Message, Hint: f.Hint}
			case reeve.FrameComplete:
				seen.over = true
			case reeve.FrameStarted, reeve.FrameResult, reeve.FrameConnected, reeve.FramePong, reeve.FrameMedia:
			}
			if seen.text == "" && seen.call == nil && seen.fail == nil && !seen.over {
				continue
			}
			if err := tell(seen); err != nil {
				t.leave(ctx)
				return err
			}
			if seen.over || seen.fail != nil {
				return nil
			}
		}
	}
}

// rest is what has not been told of a message yet. If what was told was another, which was given up, the whole follows on a new line.
func rest(whole, told string) string {
	if more, ok := strings.CutPrefix(whole, told); ok {
		return more
	}
	return "\n" + whole
}

// leave ends the turn of a client that went away. When it is the server that goes, the turn goes on after the next start.
func (t *v1Turn) leave(ctx context.Context) {
	if t.server.Streams.stopping() {
		return
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := t.server.Wake.Cancel(keep, t.who.Workspace, t.turn.ID); err != nil && reeve.CodeOf(err) != reeve.Conflict {
		note(ctx, err)
	}
}

// sum is what the turn's answers cost, and the last of them.
func (t *v1Turn) sum(ctx context.Context) (u model.Usage, last model.Answer, err error) {
	err = t.server.DB.View(ctx, func(snap *store.Snap) error {
		list, err := snap.RunMessages(ctx, t.who.Workspace, t.turn.ID, "", 5000)
		if err != nil {
			return err
		}
		for _, m := range list {
			var info reeve.MessageInfo
			var a model.Answer
			if m.Kind != reeve.Thought || json.Unmarshal(m.Metadata, &info) != nil || len(info.Answer) == 0 || json.Unmarshal(info.Answer, &a) != nil {
				continue
			}
			u.Input, u.Output, last = u.Input+a.Usage.Input, u.Output+a.Usage.Output, a
			u.CacheRead, u.Reasoning = u.CacheRead+a.Usage.CacheRead, u.Reasoning+a.Usage.Reasoning
		}
		return nil
	})
	return u, last, err
}

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	flush func() error
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &events{w: w, flush: http.NewResponseController(w).Flush}
}

// send writes one event; a name is left out when it is empty.
func (e *events) send(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := io.WriteString(e.w, name+"data: "+string(b)+"\n\n"); err != nil {
		return err
	}
	return e.flush()
}
