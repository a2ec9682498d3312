package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/notify"
)

const (
	patience = time.Minute // how long a server may be away before Follow gives up
	silence  = time.Minute // a server that shows no sign of life for that long is away
	longest  = 64 << 20    // bytes of one event
)

// Follow calls f with each frame of a conversation after a sequence number, in order. It returns the first error of f,
// or nil if that is [ErrStop]. After a lost connection it reconnects and continues: f receives every stored frame once.
// Use 0 for all frames and -1 for new frames only. An error with the code [reeve.Stale] means that the conversation has
// no such number, for example after a restore. Then discard all frames and start with 0.
func (s ConversationService) Follow(ctx context.Context, conversation string, after int64,
	f func(reeve.Frame) error) error {
	return s.conn.persist(ctx, func(heard func()) error {
		r := &request{method: http.MethodGet, path: path("conversations", conversation, "events")}
		if after >= 0 {
			r.query = url.Values{"after": {strconv.FormatInt(after, 10)}}
		}
		return s.conn.listen(ctx, r, heard, func(data []byte) error {
			var frame reeve.Frame
			if err := json.Unmarshal(data, &frame); err != nil {
				return unreadable(err)
			}
			if frame.Type == reeve.FrameConnected {
				if after < 0 {
					after = frame.Seq
				}
				return nil
			}
			if err := f(frame); err != nil {
				return &stopped{err}
			}
			after = max(after, frame.Seq)
			return nil
		})
	})
}

// FollowRun calls f with the state of an automation's run, now and after each change, until the run has ended. It
// returns the first error of f, or nil if that is [ErrStop]. After a lost connection it reconnects.
func (s AutomationService) FollowRun(ctx context.Context, automation, run string,
	f func(reeve.AutomationRun) error) error {
	return s.conn.persist(ctx, func(heard func()) error {
		r := &request{method: http.MethodGet, path: path("automations", automation, "runs", run, "events")}
		return s.conn.listen(ctx, r, heard, func(data []byte) error {
			var frame api.RunFrame
			if err := json.Unmarshal(data, &frame); err != nil {
				return unreadable(err)
			}
			err := f(frame.AutomationRun)
			if err == nil && frame.Type == api.RunComplete {
				err = ErrStop
			}
			if err != nil {
				return &stopped{err}
			}
			return nil
		})
	})
}

func unreadable(err error) error {
	return &reeve.Error{Code: reeve.Internal, Message: "the server sent a frame that cannot be read", Err: err}
}

// persist listens, and again when the connection is lost, until it is told to stop or the server has been away for too
// long.
func (c *conn) persist(ctx context.Context, listen func(heard func()) error) error {
	away := reeve.Monotonic()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := listen(func() { pause, away = 100*time.Millisecond, reeve.Monotonic() })
		var own *stopped
		switch {
		case errors.As(err, &own):
			if errors.Is(own.error, ErrStop) {
				return nil
			}
			return own.error
		case ctx.Err() != nil:
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted", Err: ctx.Err()}
		case reeve.CodeOf(err) != reeve.Unavailable && reeve.CodeOf(err) != reeve.RateLimited:
			return err
		case reeve.Since(away) > patience:
			return err
		}
		notify.Sleep(ctx, pause)
	}
}

// ErrStop is what the function given to Follow returns when it has seen enough.
var ErrStop = errors.New("enough")

// stopped is an error of the function given to Follow.
type stopped struct{ error }

// listen returns the data of each event to f, over one connection, and says when f has taken one. However long f takes,
// as when it asks a person, the server is not away meanwhile: nobody reads what it says.
func (c *conn) listen(ctx context.Context, r *request, heard func(), f func(data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	watch := time.AfterFunc(silence, cancel) // a connection that died in silence never ends by itself
	defer watch.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), longest)
	for lines.Scan() {
		// the number and the type are in the frame too
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			watch.Stop()
			if err := f(data); err != nil {
				return err
			}
			heard()
		}
		watch.Reset(silence)
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return &reeve.Error{Code: reeve.Unavailable, Message: "the answer of " + c.base.String() + " broke off: " +
		reason(err), Hint: "try again", Err: err}
}
