package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/api"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
)

const (
	subprotocol        = "reeve"   // the subprotocol of the server
	tokenSubprotocol   = "bearer." // prefix of a subprotocol that carries a token, because browsers cannot set headers
	socketWriteTimeout = 10 * time.Second
)

// conversationSockets serves conversations over WebSockets.
type conversationSockets struct {
	db       *store.DB
	gate     *gate.Gate
	chat     *chat.Service
	auth     *authenticator
	permits  streamPermitIssuer
	redactor viewRedactor
	canceler turnCanceler
	streams  *Streams
	errors   errorWriter
	log      *slog.Logger
}

// socketConn is a WebSocket connection whose writes and pings have a timeout.
type socketConn struct{ conn *websocket.Conn }

// socketClient is a client that is connected to a conversation by a WebSocket.
type socketClient struct {
	*conversationSockets
	socketConn
	r            *http.Request
	who          reeve.Principal
	secret       secret
	conversation string
	after        int64 // last sequence number that the client has; -1 for only new frames
	reader       *chat.Reader
}

// ServeHTTP connects a client to a conversation.
func (s *conversationSockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := &socketClient{conversationSockets: s, r: r, conversation: r.PathValue("id"), secret: socketSecret(r)}
	after, err := l.checkRequest()
	if err != nil {
		s.errors.write(w, r, err)
		return
	}
	l.after = after
	if l.reader, err = s.chat.Broadcaster.Subscribe(r.Context(), l.conversation, after); err != nil {
		s.errors.write(w, r, err)
		return
	}
	defer l.reader.Close()
	if !s.streams.enter() {
		s.errors.write(w, r, reeve.Errorf(reeve.Unavailable, "the server is stopping"))
		return
	}
	defer s.streams.leave()
	// originGuard has checked the origin.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{subprotocol},
		InsecureSkipVerify: true})
	if err != nil {
		return // Accept has sent the error
	}
	l.socketConn = socketConn{conn}
	l.serve()
}

// socketSecret returns the secret of a handshake: the token of the Authorization header or of a subprotocol, or the
// cookie of the console.
func socketSecret(r *http.Request) secret {
	token := bearerToken(r)
	for _, p := range strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if t, ok := strings.CutPrefix(strings.TrimSpace(p), tokenSubprotocol); ok && token == "" {
			token = t
		}
	}
	if token == "" {
		return secretOf(r)
	}
	return secret{reeve.BearerToken, token}
}

// checkRequest checks the handshake, the token and the access to the conversation. It returns the sequence number after
// which the client resumes.
func (l *socketClient) checkRequest() (after int64, err error) {
	if !strings.EqualFold(l.r.Header.Get("Upgrade"), "websocket") {
		return 0, reeve.Errorf(reeve.Validation, "this route needs a WebSocket").
			Hintf("connect with a WebSocket client, or read %s", strings.Replace(eventsPath, "{id}", l.conversation, 1))
	}
	if err := checkHandshake(l.r); err != nil {
		return 0, err
	}
	if l.who, err = l.auth.identifySocket(l.r, l.secret); err != nil {
		return 0, err
	}
	if err := checkConversationAccess(l.r.Context(), l.db, l.who, l.conversation); err != nil {
		return 0, err
	}
	return parseAfter(l.r.URL.Query())
}

// checkHandshake makes the checks of the WebSocket library first, because the library reports errors as plain text.
func checkHandshake(r *http.Request) error {
	invalid := func(header, message, expected string) error {
		return &reeve.Error{Code: reeve.Validation, Message: "invalid WebSocket handshake: " + header + " " + message,
			Hint:   "use a WebSocket client",
			Fields: []reeve.Field{{Path: "header/" + header, Message: message, Expected: expected}}}
	}
	if !r.ProtoAtLeast(1, 1) {
		return reeve.Errorf(reeve.Validation, "invalid WebSocket handshake: the protocol is %s", r.Proto).
			Hintf("use a WebSocket client; a proxy must connect to the server with HTTP/1.1")
	}
	if !slices.ContainsFunc(strings.Split(strings.Join(r.Header.Values("Connection"), ","), ","),
		func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), "Upgrade") }) {
		return invalid("Connection", "has no Upgrade", "Upgrade")
	}
	if v := r.Header.Get("Sec-WebSocket-Version"); v != "13" {
		return invalid("Sec-WebSocket-Version", "is not supported", "13")
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(strings.Join(keys, ","))); err != nil ||
		len(key) != 16 {
		return invalid("Sec-WebSocket-Key", "is not valid", "one value of 16 bytes in base64")
	}
	return nil
}

// identifySocket returns the principal of a WebSocket's client. It is called for each frame, because the token may be
// revoked while the client is connected.
func (a *authenticator) identifySocket(r *http.Request, s secret) (reeve.Principal, error) {
	workspace := r.Header.Get("X-Workspace-Id")
	if workspace == "" {
		workspace = r.URL.Query().Get("workspace")
	}
	return a.identify(r, s, workspace)
}

// serve sends and receives frames until the client disconnects or the server closes the connection.
func (l *socketClient) serve() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.r.Context()))
	defer func() { _ = l.conn.CloseNow() }()
	l.conn.SetReadLimit(-1)              // readFrame limits the size, so that the client receives an error frame
	at, last := l.after, l.reader.Last() // the missing frames follow
	if at < 0 {
		at = last
	}
	if l.sendFrame(ctx, reeve.Frame{Type: reeve.FrameConnected, ConversationID: l.conversation, Seq: at,
		LastSeq: last}) != nil {
		cancel()
		return
	}
	var work errgroup.Group
	work.Go(func() error { defer cancel(); l.sendFrames(ctx); return nil })
	work.Go(func() error { defer cancel(); l.watchPermit(ctx); return nil })
	l.readFrames(ctx)
	cancel()
	_ = work.Wait() // both return nil
}

// sendFrames sends the frames of the conversation.
func (l *socketClient) sendFrames(ctx context.Context) {
	for {
		frames, err := l.reader.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				l.log.Error("cannot read frames for client", "conversation", l.conversation, "error", err)
				_ = l.conn.Close(websocket.StatusInternalError, "cannot read frames; reconnect")
			}
			return
		}
		for _, f := range frames {
			data, err := l.redactor.redactFrame(ctx, l.who, f)
			if err != nil || l.write(ctx, data) != nil {
				return
			}
		}
	}
}

// write sends one frame. A client that accepts no data before the timeout loses its connection, and can reconnect and
// resume.
func (c socketConn) write(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, socketWriteTimeout)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// sendFrame sends a frame to this client only.
func (l *socketClient) sendFrame(ctx context.Context, f reeve.Frame) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return l.write(ctx, b)
}

// watchPermit closes the connection when the server stops, the client does not respond to a ping, or the client may no
// longer listen.
func (l *socketClient) watchPermit(ctx context.Context) {
	permit, err := l.permits.issue(ctx, l.who, l.conversation)
	defer permit.close()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-l.streams.closing.Done():
			_ = l.conn.Close(websocket.StatusGoingAway, "the server is stopping; reconnect and resume")
			return
		case <-permit.checkDue.Done():
			if err = permit.check(ctx); err == nil && l.ping(ctx) != nil {
				return
			}
		}
	}
	_ = l.conn.Close(websocket.StatusPolicyViolation, "no longer authorized")
}

// ping returns an error if the client does not respond in time.
func (c socketConn) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, socketWriteTimeout)
	defer cancel()
	return c.conn.Ping(ctx)
}

// readFrames handles the client's frames one after another.
func (l *socketClient) readFrames(ctx context.Context) {
	for {
		b, err := l.readFrame(ctx)
		if err == nil {
			err = l.handleFrame(ctx, b)
		}
		var lost *connectionLost
		switch {
		case err == nil:
		case errors.As(err, &lost):
			return
		default:
			if l.sendFrame(ctx, l.newErrorFrame(err)) != nil {
				return
			}
			if reeve.CodeOf(err) == reeve.TooLarge && b == nil {
				_ = l.conn.Close(websocket.StatusMessageTooBig, "a frame has at most "+
					strconv.Itoa(chat.BodyLimit>>20)+" MiB")
				return
			}
		}
	}
}

// connectionLost is the error of a connection that has ended.
type connectionLost struct{ error }

// readFrame reads one frame. A frame that is too large is not read to its end.
func (l *socketClient) readFrame(ctx context.Context) ([]byte, error) {
	kind, r, err := l.conn.Reader(ctx)
	if err != nil {
		return nil, &connectionLost{err}
	}
	b, err := io.ReadAll(io.LimitReader(r, chat.BodyLimit+1))
	switch {
	case err != nil:
		return nil, &connectionLost{err}
	case len(b) > chat.BodyLimit:
		return nil, reeve.Errorf(reeve.TooLarge, "the frame is too large").
			Hintf("send at most %d MiB", chat.BodyLimit>>20)
	case kind != websocket.MessageText:
		return b, reeve.Errorf(reeve.Validation, "binary frames are not supported").
			Hintf("send text frames with JSON; encode attachments in base64")
	}
	return b, nil
}

// handleFrame decodes a client's frame and executes it.
func (l *socketClient) handleFrame(ctx context.Context, b []byte) error {
	f, err := decodeClientFrame(b)
	if err != nil {
		return err
	}
	who, err := l.auth.identifySocket(l.r, l.secret)
	if err != nil {
		return err
	}
	if f.Type == api.ClientPing {
		if err := l.sendFrame(ctx, reeve.Frame{Type: reeve.FramePong, Seq: l.reader.Last()}); err != nil {
			return &connectionLost{err}
		}
		return nil
	}
	if !who.Role.Allows(reeve.Member) {
		return reeve.Errorf(reeve.Forbidden, "the role %s may only listen", who.Role).
			Hintf("use a token with the role %s", reeve.Member)
	}
	switch f.Type {
	case api.ClientMessage:
		_, _, err = l.chat.BeginTurn(ctx, who, l.conversation, f.ID, f.TurnRequest)
	case api.ClientCancel:
		_, err = l.canceler.cancel(ctx, who, l.conversation, f.TurnID)
	case api.ClientApprove, api.ClientDeny:
		_, err = decideApproval(ctx, l.db, l.gate, who, f.ApprovalID,
			api.DecisionRequest{Decision: string(f.Type), Comment: f.Comment})
	}
	return err
}

// newErrorFrame returns the frame that reports an error of the client's own frame.
func (l *socketClient) newErrorFrame(err error) reeve.Frame {
	p := newProblem(l.r.Context(), err)
	f := reeve.Frame{Type: reeve.FrameError, ConversationID: l.conversation, Code: p.Code, Message: p.Detail,
		Hint: p.Hint}
	for _, e := range p.Errors {
		if e.Path != "" && !strings.Contains(f.Message, e.Path) {
			f.Message += fmt.Sprintf("; %s %s", e.Path, e.Message)
		}
	}
	return f
}
