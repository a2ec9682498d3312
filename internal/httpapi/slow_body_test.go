package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"reeve"
	"reeve/internal/notify"
)

// pipeListener is a listener for in-memory connections, which work in a synctest bubble.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipeListener) Close() error   { close(l.conns); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// A body may arrive slowly, and a handler may take long. A body that stalls or is far too slow is refused.
func TestBadInput_SlowBodies(t *testing.T) {
	for name, c := range map[string]struct {
		piece       int
		pause       time.Duration // before each piece; 0 sends no piece
		handlerTime time.Duration // duration of the handler after it has read the body
		role        reeve.Role    // of the client
		want        int
	}{
		"slow":      {80 << 10, 10 * time.Second, time.Minute, reeve.Member, 200},
		"stalled":   {80 << 10, 31 * time.Second, 0, reeve.Member, http.StatusGatewayTimeout},
		"trickling": {10, 5 * time.Second, 0, reeve.Member, http.StatusGatewayTimeout},
		"unread":    {10, 0, 0, reeve.Viewer, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				installProblems()
				mux := http.NewServeMux()
				type input struct{ RawBody []byte }
				post := route{http.MethodPost, "/x", "createNote", "x", "x", reeve.Member, 0}
				handle(humago.New(mux, openAPIConfig("")), post,
					func(ctx context.Context, _ reeve.Principal, in *input) (*body[string], error) {
						if !notify.Sleep(ctx, c.handlerTime) {
							return nil, ctx.Err()
						}
						return &body[string]{fmt.Sprint(len(in.RawBody))}, nil
					})
				srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					limitBodyTime(mux).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey,
						reeve.Principal{Role: c.role})))
				})}
				clientConn, serverConn := net.Pipe()
				l := pipeListener{make(chan net.Conn, 1)}
				l.conns <- serverConn
				var all sync.WaitGroup
				all.Go(func() { _ = srv.Serve(l) })
				all.Go(func() {
					_, err := fmt.Fprintf(clientConn,
						"POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\nContent-Length: "+
							"%d\r\n\r\n", 10*c.piece)
					for n := 0; n < 10 && err == nil && c.pause > 0 && notify.Sleep(t.Context(), c.pause); n++ {
						_, err = clientConn.Write(make([]byte, c.piece))
					}
				})
				res, err := http.ReadResponse(bufio.NewReader(clientConn), nil)
				if err != nil || res.StatusCode != c.want {
					t.Errorf("%+v, %v", res, err)
				}
				_ = clientConn.Close()
				if err := srv.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				all.Wait()
			})
		})
	}
}

// A slow body also times out for a request with an Idempotency-Key.
func TestIdempotencyKey_SlowBodyTimesOut(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/x",
		iotest.ErrReader(reeve.Errorf(reeve.Timeout, "the request body arrived too slowly")))
	if _, err := newKeyedRequest(r, reeve.Principal{}, "k"); reeve.CodeOf(err) != reeve.Timeout {
		t.Error(err)
	}
}
