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
	bodyIdleTimeout = 30 * time.Second // longest pause while a body is read
	minBodyRate     = 4 << 10          // bytes per second that a body must reach on average after that
)

// limitBodyTime fails reads of a body that pauses for bodyIdleTimeout or is slower than minBodyRate on average. A large
// body over a slow connection may take as long as its size needs.
func limitBodyTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{ReadCloser: r.Body, conn: http.NewResponseController(w), startedAt: reeve.Monotonic()}
			// net/http itself reads the body of a refused request before it sends the response
			_ = body.conn.SetReadDeadline(body.startedAt.Add(bodyIdleTimeout))
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a request body whose reads have a deadline.
type timedBody struct {
	io.ReadCloser
	conn      *http.ResponseController
	startedAt time.Time
	received  int64
}

func (p *timedBody) Read(b []byte) (int, error) {
	end := p.startedAt.Add(bodyIdleTimeout + time.Duration(p.received)*time.Second/minBodyRate)
	if idleEnd := reeve.Monotonic().Add(bodyIdleTimeout); idleEnd.Before(end) {
		end = idleEnd
	}
	_ = p.conn.SetReadDeadline(end) // fails only without a connection, as in tests
	n, err := p.ReadCloser.Read(b)
	p.received += int64(n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &reeve.Error{Code: reeve.Timeout, Message: "the request body arrived too slowly",
			Hint: "use a faster connection or send a smaller body", Err: err}
	case err != nil:
		// the body has ended: the deadline must not cut off the response
		_ = p.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}
