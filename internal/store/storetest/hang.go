package storetest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Hang starts a TCP proxy to the test server and returns its address. After hold(true) the proxy drops all data in both
// directions, until hold(false). The channel lost is closed when data is first dropped.
func Hang(t testing.TB) (address string, hold func(bool), lost <-chan struct{}) {
	t.Helper()
	server, err := pgconn.ParseConfig(os.Getenv("REEVE_TEST_POSTGRES"))
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var held atomic.Bool
	first := make(chan struct{})
	closeFirst := sync.OnceFunc(func() { close(first) })
	forward := func(to, from net.Conn) {
		defer func() { _, _ = to.Close(), from.Close() }()
		for b := make([]byte, 32<<10); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if held.Load() {
				closeFirst()
				continue
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("unix", filepath.Join(server.Host, fmt.Sprintf(".s.PGSQL.%d", server.Port)))
			if err != nil {
				_ = c.Close()
				return
			}
			go forward(s, c)
			go forward(c, s)
		}
	}()
	return l.Addr().String(), held.Store, first
}
