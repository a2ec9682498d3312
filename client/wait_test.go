package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/internal/notify"
)

// TestPoll checks that poll waits a while for a server that has answered before, and not for one that never has.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := reeve.Errorf(reeve.Unavailable, "no Reeve server answers")
		for met, looks := range map[bool]int{true: 2, false: 1} {
			n, began := 0, reeve.Monotonic()
			err := poll(t.Context(), "not found", met, func() (bool, error) { n++; return false, gone })
			if took := reeve.Since(began); reeve.CodeOf(err) != reeve.Unavailable || n < looks ||
				met != (took >= pollDowntime) || took > 2*pollDowntime {
				t.Errorf("met %v: %v after %d looks in %s", met, err, n, took)
			}
		}
	})
}

// steady is a transport that sends two frames and then a keepalive every 15 seconds. It counts the connections.
func steady(connections *int) http.RoundTripper {
	return carrier(func(r *http.Request) (*http.Response, error) {
		*connections++
		body, w := io.Pipe()
		context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
		go func() {
			texts := []string{"data: {\"type\":\"approval_required\",\"seq\":1}\n\n",
				"data: {\"type\":\"turn_complete\",\"seq\":2}\n\n"}
			if r.URL.Query().Get("after") == "1" {
				texts = texts[1:]
			}
			for err := error(nil); err == nil; {
				text := ": still here\n\n"
				if len(texts) > 0 {
					text, texts = texts[0], texts[1:]
				}
				_, err = fmt.Fprint(w, text)
				notify.Sleep(r.Context(), 15*time.Second)
			}
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{"X-Request-Id": {"req_1"}}, Body: body}, nil
	})
}

type carrier func(*http.Request) (*http.Response, error)

func (f carrier) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestFollow_APersonThinks checks that a callback may block for minutes: Follow then continues on the same connection,
// or on a new one if the connection was lost meanwhile.
func TestFollow_APersonThinks(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			connections := 0
			server := steady(&connections)
			var cut func()
			c, err := New(Config{URL: "http://localhost:1",
				HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
					ctx, cancel := context.WithCancel(r.Context())
					cut = cancel
					return server.RoundTrip(r.WithContext(ctx))
				})}})
			if err != nil {
				t.Fatal(err)
			}
			var seen []int64
			err = c.Conversations().Follow(t.Context(), "conv_1", 0, func(f reeve.Frame) error {
				if seen = append(seen, f.Seq); f.Seq == 2 {
					return ErrStop
				}
				notify.Sleep(t.Context(), 3*time.Minute)
				if lost {
					cut()
					synctest.Wait()
				}
				return nil
			})
			if want := map[bool]int{false: 1, true: 2}[lost]; err != nil || fmt.Sprint(seen) != "[1 2]" ||
				connections != want {
				t.Errorf("lost %v: got frames %v over %d connections, %v", lost, seen, connections, err)
			}
		})
	}
}
