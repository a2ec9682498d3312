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
	maxDowntime = time.Minute // time without a connection after which Follow fails
	maxSilence  = time.Minute // time without data after which the connection counts as lost
	maxEvent    = 64 << 20    // maximum bytes of one event
)

// Follow calls f with each frame of a conversation after a sequence number, in order. It returns the first error of f,
// or nil if that is [ErrStop]. After a lost connection it reconnects and continues: f receives every stored frame once.
// Use 0 for all frames and -1 for new frames only. An error with the code [reeve.Stale] means that the conversation has
// no such number, for example after a restore. Then discard all frames and start with 0.
func (s ConversationService) Follow(ctx context.Context, conversation string, after int64,
	f func(reeve.Frame) error) error {
	return s.conn.reconnect(ctx, func(onEvent func()) error {
		r := &request{method: http.MethodGet, path: path("conversations", conversation, "events")}
		if after >= 0 {
			r.query = url.Values{"after": {strconv.FormatInt(after, 10)}}
		}
		return s.conn.readEvents(ctx, r, onEvent, func(data []byte) error {
			var frame reeve.Frame
			if err := json.Unmarshal(data, &frame); err != nil {
				return frameError(err)
			}
			if frame.Type == reeve.FrameConnected {
				if after < 0 {
					after = frame.Seq
				}
				return nil
			}
			if err := f(frame); err != nil {
				return &callbackError{err}
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
	return s.conn.reconnect(ctx, func(onEvent func()) error {
		r := &request{method: http.MethodGet, path: path("automations", automation, "runs", run, "events")}
		return s.conn.readEvents(ctx, r, onEvent, func(data []byte) error {
			var frame api.RunFrame
			if err := json.Unmarshal(data, &frame); err != nil {
				return frameError(err)
			}
			err := f(frame.AutomationRun)
			if err == nil && frame.Type == api.RunComplete {
				err = ErrStop
			}
			if err != nil {
				return &callbackError{err}
			}
			return nil
		})
	})
}

func frameError(err error) error {
	return &reeve.Error{Code: reeve.Internal, Message: "the server sent an invalid frame", Err: err}
}

// reconnect calls read, and again after a lost connection, until a callback returns an error or the server was
// unreachable for maxDowntime. read calls onEvent after each event.
func (c *conn) reconnect(ctx context.Context, read func(onEvent func()) error) error {
	lastEvent := reeve.Monotonic()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := read(func() { pause, lastEvent = 100*time.Millisecond, reeve.Monotonic() })
		var fromCallback *callbackError
		switch {
		case errors.As(err, &fromCallback):
			if errors.Is(fromCallback.error, ErrStop) {
				return nil
			}
			return fromCallback.error
		case ctx.Err() != nil:
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted", Err: ctx.Err()}
		case reeve.CodeOf(err) != reeve.Unavailable && reeve.CodeOf(err) != reeve.RateLimited:
			return err
		case reeve.Since(lastEvent) > maxDowntime:
			return err
		}
		notify.Sleep(ctx, pause)
	}
}

// ErrStop ends Follow without an error when its callback returns it.
var ErrStop = errors.New("stop")

// callbackError is an error that the callback of Follow returned.
type callbackError struct{ error }

// readEvents calls f with the data of each event of one connection, and onEvent after each call. A slow f, for example
// one that asks a person, does not count as silence of the server.
func (c *conn) readEvents(ctx context.Context, r *request, onEvent func(), f func(data []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	watch := time.AfterFunc(maxSilence, cancel) // a dead connection may never report an error
	defer watch.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	for lines.Scan() {
		// The other lines of an event repeat fields of the frame.
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			watch.Stop()
			if err := f(data); err != nil {
				return err
			}
			onEvent()
		}
		watch.Reset(maxSilence)
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return c.truncatedError(err)
}
