package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
)

const (
	theSecret = "s3cr3t/+value"
	anyArgs   = `{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"},
		"tags":{"type":"array"},"o":{"type":"object"}}}`
)

// localBuilder returns a builder that may reach this machine and has one secret.
func localBuilder() *Builder {
	return &Builder{Guard: Guard{Allow: []string{"127.0.0.1"}},
		Secrets: func(_ context.Context, workspace, name string) (string, error) {
			if workspace == "ws" && name == "KEY" {
				return theSecret + "\n", nil
			}
			return "", reeve.Errorf(reeve.NotFound, "no such secret")
		}}
}

// row returns an HTTP tool as it is stored in the catalogue.
func row(effect reeve.Effect, spec string) reeve.Tool {
	return reeve.Tool{ID: "t", Description: "d", Kind: reeve.HTTPTool, Effect: effect,
		Parameters: json.RawMessage(anyArgs), Spec: json.RawMessage(spec)}
}

func mustBuild(t *testing.T, b *Builder, effect reeve.Effect, spec string) reeve.Tool {
	t.Helper()
	tool, err := b.Build(row(effect, spec))
	if err != nil {
		t.Fatalf("build: %v %+v", err, reeve.AsError(err).Fields)
	}
	return tool
}

func call(args string) *reeve.Invocation {
	return &reeve.Invocation{Workspace: "ws", Operation: "op_1", Attempt: 1, Args: json.RawMessage(args)}
}

// run builds a tool and calls it once.
func run(t *testing.T, effect reeve.Effect, spec, args string) (any, error) {
	t.Helper()
	return mustBuild(t, localBuilder(), effect, spec).Handler(t.Context(), call(args))
}

func wantCode(t *testing.T, err error, code reeve.Code) *reeve.Error {
	t.Helper()
	var e *reeve.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error is %v, want %s", err, code)
	}
	return e
}

// requestLog records the requests that a server received.
type requestLog struct {
	mu   sync.Mutex
	list []*http.Request
	body []string
}

func (s *requestLog) add(r *http.Request) int {
	var b strings.Builder
	_, _ = fmt.Fprint(&b, readAll(r))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.body = append(s.list, r), append(s.body, b.String())
	return len(s.list)
}

func (s *requestLog) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

func readAll(r *http.Request) string {
	b := make([]byte, 0, 512)
	for {
		buf := make([]byte, 512)
		n, err := r.Body.Read(buf)
		b = append(b, buf[:n]...)
		if err != nil {
			return string(b)
		}
	}
}

// serve handles every request with h and records it.
func serve(t *testing.T, h http.HandlerFunc) (string, *requestLog) {
	t.Helper()
	s := &requestLog{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.add(r)
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, s
}

func reply(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// listen accepts connections and passes each to f.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { f(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

// newResolver returns a resolver that answers with the addresses that lookup returns.
func newResolver(t *testing.T, lookup func(name string) []string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo(answerDNS(buf[:n], lookup), from)
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

// answerDNS returns the response to the DNS query q.
func answerDNS(q []byte, lookup func(string) []string) []byte {
	end, name := 12, ""
	for q[end] != 0 {
		l := int(q[end])
		name += string(q[end+1:end+1+l]) + "."
		end += 1 + l
	}
	end += 5
	qtype := binary.BigEndian.Uint16(q[end-4:])
	var records []byte
	count := 0
	addrs := lookup(strings.TrimSuffix(name, "."))
	for _, s := range addrs {
		a := netip.MustParseAddr(s)
		if a.Is4() != (qtype == 1) || qtype != 1 && qtype != 28 {
			continue
		}
		records = append(records, 0xc0, 12, 0, byte(qtype), 0, 1, 0, 0, 0, 0, 0, byte(len(a.AsSlice())))
		records = append(records, a.AsSlice()...)
		count++
	}
	flags := []byte{0x81, 0x80}
	if addrs == nil {
		flags[1] = 0x83 // no such name
	}
	out := append([]byte{q[0], q[1], flags[0], flags[1], 0, 1, 0, byte(count), 0, 0, 0, 0}, q[12:end]...)
	return append(out, records...)
}

// shortContext returns a context with a short timeout, for waits that never succeed.
func shortContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
