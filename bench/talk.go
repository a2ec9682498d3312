package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"reeve"
)

// What conversations must keep to.
const (
	turnLimit   = 15.0  // ms of our own per turn, median
	turnRate    = 200.0 // turns per second
	firstLimit  = 3.0   // ms until the first token, besides the provider's own
	addedLimit  = 50.0  // ms that a token may take to its client, 99 of 100
	talkMemory  = 300.0 // MB of a server with all of them open
	tokenPerSec = 20
)

// talk measures conversations: a server with a model that answers at once, in a process of its own, and real clients.
func talk(ctx context.Context, c config, t *table) error {
	s, w, err := talkTo(ctx, filepath.Join(c.dir, "talk"))
	if err != nil {
		return err
	}
	if err := errors.Join(w.measure(ctx, c, t), s.stop()); err != nil {
		return err
	}
	return long(ctx, c, t)
}

func (w *talker) measure(ctx context.Context, c config, t *table) error {
	if err := w.post(ctx, "/api/agents", map[string]any{"name": "bench", "config": map[string]any{"instructions": "You are measured."}}, nil); err != nil {
		return err
	}
	if err := w.turns(ctx, c, t); err != nil {
		return err
	}
	return w.sockets(ctx, c, t)
}

// talker drives a server over its API.
type talker struct {
	server *server
	client *http.Client
	token  string
}

func newTalker(s *server, token string) *talker {
	return &talker{server: s, token: token, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (w *talker) request(ctx context.Context, path string, body any) (*http.Request, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.url+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("X-Workspace-Id", "default")
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

func (w *talker) post(ctx context.Context, path string, body, into any) error {
	r, err := w.request(ctx, path, body)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return errors.Join(err, fmt.Errorf("%s: %s: %s", path, resp.Status, b))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// conversation opens one.
func (w *talker) conversation(ctx context.Context) (string, error) {
	var c reeve.Conversation
	err := w.post(ctx, "/api/conversations", map[string]any{"agent": "bench"}, &c)
	return c.ID, err
}

// turn says something and follows the turn to its end. It gives the time to the first token and to the end.
func (w *talker) turn(ctx context.Context, conversation, text string) (first, whole time.Duration, err error) {
	start := time.Now()
	err = w.follow(ctx, conversation, text, func(f reeve.Frame) error {
		if f.Type == reeve.FrameToken && first == 0 {
			first = time.Since(start)
		}
		return nil
	})
	return first, time.Since(start), err
}

// follow says something and gives the turn's frames as they come, to its end.
func (w *talker) follow(ctx context.Context, conversation, text string, on func(reeve.Frame) error) error {
	r, err := w.request(ctx, "/api/conversations/"+conversation+"/turns", map[string]any{"content": text})
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := w.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var f reeve.Frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			return err
		}
		if err := on(f); err != nil {
			return err
		}
		switch {
		case f.Type != reeve.FrameComplete:
		case f.State != reeve.RunCompleted:
			return fmt.Errorf("a turn ended as %s: %s", f.State, f.Message)
		default:
			return nil
		}
	}
	return errors.Join(errors.New("a turn's stream ended before it"), lines.Err())
}

// turns measures single turns, and many at once.
func (w *talker) turns(ctx context.Context, c config, t *table) error {
	id, err := w.conversation(ctx)
	if err != nil {
		return err
	}
	n := pick(c, 300, 60)
	var firsts, wholes []float64
	for i := range n + 10 {
		first, _, err := w.turn(ctx, id, "speak")
		if err != nil {
			return err
		}
		_, whole, err := w.turn(ctx, id, "call")
		if err != nil {
			return err
		}
		if i >= 10 {
			firsts, wholes = append(firsts, ms(first)), append(wholes, ms(whole))
		}
	}
	t.add(row{Section: "talk", Name: "a turn with a tool call, p50", Unit: "ms", Ours: median(wholes), Against: "limit", Peer: turnLimit, Ratio: median(wholes) / turnLimit, Target: 1, AtMost: true})
	t.add(row{Section: "talk", Name: "first token after a model that answers at once, p50", Unit: "ms", Ours: median(firsts), Against: "limit", Peer: firstLimit,
		Ratio: median(firsts) / firstLimit, Target: 1, AtMost: true})
	const callers = 16
	deadline := time.Now().Add(pick(c, 10*time.Second, 3*time.Second))
	var mu sync.Mutex
	done := 0
	start := time.Now()
	group, inner := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			id, err := w.conversation(inner)
			for err == nil && time.Now().Before(deadline) {
				if _, _, err = w.turn(inner, id, "call"); err == nil {
					mu.Lock()
					done++
					mu.Unlock()
				}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	rate := float64(done) / time.Since(start).Seconds()
	t.add(row{Section: "talk", Name: fmt.Sprint("turns with a tool call, ", callers, " at once"), Unit: "turns/s", Ours: rate, Against: "at least", Peer: turnRate, Ratio: rate / turnRate, Target: 1})
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// sockets measures many conversations that stream at once, each to a client of its own.
func (w *talker) sockets(ctx context.Context, c config, t *table) error {
	n, tokens := pick(c, 1000, 200), pick(c, 200, 100)
	var mu sync.Mutex
	var added []float64
	lost := 0
	group, inner := errgroup.WithContext(ctx)
	for range n {
		group.Go(func() error {
			late, missing, err := w.listen(inner, tokens)
			mu.Lock()
			defer mu.Unlock()
			added, lost = append(added, late...), lost+missing
			return err
		})
	}
	most := 0.0
	over := make(chan struct{})
	go func() {
		defer close(over)
		for inner.Err() == nil {
			if mb, err := w.server.resident(); err == nil {
				most = max(most, mb)
			}
			select {
			case <-inner.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	err := group.Wait()
	<-over
	if err != nil {
		return err
	}
	slices.Sort(added)
	p99 := added[len(added)*99/100]
	name := fmt.Sprintf("%d conversations at %d tokens/s", n, tokenPerSec)
	t.add(row{Section: "talk", Name: name + ", p99 added", Unit: "ms", Ours: p99, OursMedian: median(added), Against: "limit", Peer: addedLimit, Ratio: p99 / addedLimit, Target: 1, AtMost: true})
	t.add(row{Section: "talk", Name: name + ", frames lost or out of order", Unit: "frames", Ours: float64(lost), Against: "of", Peer: float64(n * tokens), Ratio: float64(lost), Target: 0.5, AtMost: true})
	t.add(row{Section: "talk", Name: name + ", resident", Unit: "MB", Ours: most, Against: "limit", Peer: talkMemory, Ratio: most / talkMemory, Target: 1, AtMost: true})
	return nil
}

// listen opens a conversation and a socket, lets the agent stream, and says how late each token came and how many did not come in order.
func (w *talker) listen(ctx context.Context, tokens int) (late []float64, missing int, err error) {
	id, err := w.conversation(ctx)
	if err != nil {
		return nil, 0, err
	}
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(w.server.url, "http")+"/conversations/"+id+"?workspace=default",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + w.token}}})
	if err != nil {
		return nil, 0, err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	if err := conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"message","content":"stream %d"}`, tokens)); err != nil {
		return nil, 0, err
	}
	next, seq := 0, int64(0)
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return late, missing, err
		}
		now := time.Now()
		var f reeve.Frame
		if err := json.Unmarshal(b, &f); err != nil {
			return late, missing, err
		}
		if f.Type == reeve.FrameConnected {
			continue
		}
		if f.Seq <= seq {
			missing++
		}
		seq = f.Seq
		switch f.Type {
		case reeve.FrameToken:
			place, sent, _ := strings.Cut(strings.TrimSpace(f.Text), "@")
			if n, err := strconv.Atoi(place); err != nil || n != next {
				missing++
			}
			next++
			at, err := strconv.ParseInt(sent, 10, 64)
			if err != nil {
				return late, missing, err
			}
			late = append(late, ms(now.Sub(time.Unix(0, at))))
		case reeve.FrameComplete:
			return late, missing + tokens - next, nil
		case reeve.FrameError:
			return late, missing, errors.New(f.Message)
		case reeve.FrameConnected, reeve.FrameStarted, reeve.FrameTool, reeve.FrameResult, reeve.FrameMessage, reeve.FrameApproval, reeve.FramePong, reeve.FrameMedia:
		}
	}
}

// startTalk starts this program again as the server: see talkserver.go.
func startTalk(ctx context.Context, dir string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, self)}
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), talkDir+"="+dir), os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.url = strings.TrimSpace(line)
	return s, err
}
