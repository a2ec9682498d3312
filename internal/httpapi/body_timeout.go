package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"reeve"
)

const (
	bodyIdleTimeout = 30 * time.Second // how long a body may stand still
	minBodyRate    = 4 << 10          // bytes a second that it must bring on the whole, beyond that
)

// limitBodyTime lets a body take as long as its size needs over a slow line, while it comes on. One that stands still, or
// trickles so that it would hold its connection for good, is given up.
func limitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{ReadCloser: r.Body, conn: http.NewResponseController(w), startedAt: reeve.Monotonic()}
			// net/http reads what nobody here does, as of one who is refused, before it answers
			_ = body.conn.SetReadDeadline(body.startedAt.Add(bodyIdleTimeout))
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

type timedBody struct {
	io.ReadCloser
	conn  *http.ResponseController
	startedAt time.Time
	received   int64
}

func (p *timedBody) Read(b []byte) (int, error) {
	end := p.startedAt.Add(bodyIdleTimeout + time.Duration(p.received)*time.Second/minBodyRate)
	if still := reeve.Monotonic().Add(bodyIdleTimeout); still.Before(end) {
		end = still
	}
	_ = p.conn.SetReadDeadline(end) // what is no connection has no deadline
	n, err := p.ReadCloser.Read(b)
	p.received += int64(n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &reeve.Error{Code: reeve.Timeout, Message: "the body came too slowly",
			Hint: "try again over a faster line, or with less", Err: err}
	case err != nil:
		// it is over: from now on the connection is only watched, for as long as the answer takes
		_ = p.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}
