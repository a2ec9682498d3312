package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/test/kit"
)

// A hanging database does not keep a server from stopping, although commits wait for it.
func TestStopWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	database, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	address, hold, lost := storetest.Hang(t)
	database.Host, database.RawQuery = address, "sslmode=disable"
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey, cfg.Listen = database.String(), strings.Repeat("ab", 32), "127.0.0.1:0"
	h, err := host.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Run(ctx, func(url string) { ready <- url }) }()
	at := <-ready
	token, err := os.ReadFile(filepath.Join(cfg.Dir, "owner.token"))
	if err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	for i := range 8 { // each has a commit under way when the database begins to hang
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				body := strings.NewReader(fmt.Sprintf(`{"name":"agent-%d-%d"}`, i, n))
				r, err := http.NewRequestWithContext(ctx, "POST", at+"/api/agents", body)
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
				r.Header.Set("X-Workspace-Id", "default")
				r.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					return
				}
				if res.StatusCode == http.StatusCreated {
					made.Add(1)
				}
				_ = res.Body.Close()
			}
		}()
	}
	kit.Eventually(t, "agents are made", func() bool { return made.Load() >= 40 })
	hold(true)
	<-lost
	stop()
	select {
	case <-ended: // with an error: it could not say goodbye
	case <-time.After(25 * time.Second):
		t.Fatal("the server does not stop")
	}
}
