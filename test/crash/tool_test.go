package crash_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
)

// toolServer is a model and a web server in one. The second part of a text and the first download block until the
// client is gone.
type toolServer struct {
	mu      sync.Mutex
	seen    map[string]int
	blocked chan string
}

func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	what := r.URL.Path
	switch {
	case strings.Contains(string(body), "part 1 of 2"):
		what = "part 1"
	case strings.Contains(string(body), "part 2 of 2"):
		what = "part 2"
	}
	s.mu.Lock()
	s.seen[what]++
	first := s.seen[what] == 1
	s.mu.Unlock()
	switch {
	case what == "/file":
		w.Header().Set("Content-Length", "2000000")
		_, _ = w.Write(make([]byte, 1_000_000))
		w.(http.Flusher).Flush()
		if first {
			s.block(r, what)
			return
		}
		_, _ = w.Write(make([]byte, 1_000_000))
	case what == "part 1" || what == "part 2":
		if what == "part 2" && first {
			s.block(r, what)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},"+
			"\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":50}}\n\ndata: [DONE]\n\n",
			`{"found":["`+what+`"]}`)
	default:
		http.NotFound(w, r)
	}
}

// block reports what is blocked and waits until the client is gone.
func (s *toolServer) block(r *http.Request, what string) {
	s.blocked <- what
	<-r.Context().Done()
}

func (s *toolServer) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[what]
}

const toolScript = `
const data = await Text.extract({ text: 'word '.repeat(12000), schema: { type: 'object', properties: { found: { type: 'array', items: { type: 'string' } } } } });
await Items.withItem('file', 'File', async (ctx) => { if (!ctx.item.isDone) await Web.download({ url: URL_OF_FILE, path: '/shared/file.bin' }); });
data.found.join()`

// TestM16_KillDuringExtractAndDownload kills the server while a text is extracted and while a file is downloaded. The
// part that the model has read is not paid again, and no part of a file is left.
func TestM16_KillDuringExtractAndDownload(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		s := &toolServer{seen: map[string]int{}, blocked: make(chan string, 8)}
		far := httptest.NewServer(s)
		t.Cleanup(far.Close)
		if err := r.killDuringTools(t.Context(), e, s, far.URL); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

func (r *rig) killDuringTools(ctx context.Context, e *engine, s *toolServer, far string) error {
	w, err := e.newEmptyWorld()
	if err != nil {
		return err
	}
	config := "model:\n  default: acme/x\n  servers:\n    acme: {base_url: \"" + far + "\"}\n"
	if err := os.WriteFile(filepath.Join(w.dir, "reeve.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	start := func() (*process, caller, error) {
		p, err := r.serve(w, "REEVE_HTTP_ALLOW=127.0.0.1", "REEVE_WEB_ROBOTS=ignore")
		if err == nil {
			err = p.waitUntilReady(ctx)
		}
		if err != nil {
			return p, caller{}, err
		}
		c, err := w.owner(p, unlimited)
		return p, c, err
	}
	p, c, err := start()
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/automations", object{"name": "reader",
		"source": strings.Replace(toolScript, "URL_OF_FILE", "'"+far+"/file'", 1),
		"tools":  []string{"text_extract", "web_download"}}, nil); err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/automations/reader/runs", object{}, nil); err != nil {
		return err
	}
	for _, want := range []string{"part 2", "/file"} {
		select {
		case what := <-s.blocked:
			if what != want {
				return fmt.Errorf("%s is blocked, not %s", what, want)
			}
		case <-ctx.Done():
			return fmt.Errorf("waited too long for %s", want)
		}
		p.kill()
		if p, c, err = start(); err != nil {
			return err
		}
	}
	defer p.kill()
	var op reeve.Operation
	if err := poll(ctx, "the download to be looked up", func() (bool, error) {
		var list api.OperationList
		if err := c.do(ctx, "GET", "/api/operations", nil, &list); err != nil || len(list.Operations) != 1 {
			return false, err
		}
		op = list.Operations[0]
		left, err := filepath.Glob(filepath.Join(w.dir, "workspaces", "*", "shared", "*"))
		hidden, _ := filepath.Glob(filepath.Join(w.dir, "workspaces", "*", "shared", ".*"))
		return len(left)+len(hidden) == 0 && op.Tool == "web_download", err
	}); err != nil {
		return err
	}
	if op.State != reeve.Dispatched && op.State != reeve.Prepared {
		return fmt.Errorf("the operation is %s", op.State)
	}
	if a, b := s.count("part 1"), s.count("part 2"); a != 1 || b != 2 {
		return fmt.Errorf("part 1 was asked %d times and part 2 %d times", a, b)
	}
	return nil
}
