package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/api"
)

// measureTurns measures conversations over WebSockets. The model answers immediately, so all the time is Reeve's.
func measureTurns(ctx context.Context, c config, t *table) {
	idleMemory(ctx, c, t)
	s := startBenchServer(ctx, filepath.Join(c.dir, "turns"))
	defer s.stop()
	s.addAgent(ctx, agentName)
	s.singleTurns(ctx, c, t)
	s.manyTurns(ctx, c, t)
	s.manySockets(ctx, c, t)
	longConversation(ctx, c, t)
}

// idleMemory measures the memory of the idle server.
func idleMemory(ctx context.Context, c config, t *table) {
	s, _ := startReeve(ctx, buildReeve(ctx, c), filepath.Join(c.dir, "idle"), "")
	defer s.stop()
	time.Sleep(5 * time.Second) // long enough to collect the garbage of the start
	t.limit("idle server", "MB", s.memory("VmRSS"), 60)
}

func (s *server) addAgent(ctx context.Context, name string, tools ...string) {
	must(s.api.Agents().Create(ctx, api.AgentRequest{Name: &name}))
	for _, tool := range tools {
		must(s.api.Agents().Attach(ctx, name, api.AttachRequest{ToolID: tool}))
	}
}

// socket is a WebSocket to a conversation.
type socket struct {
	*websocket.Conn
	conversation string
	seq          int64
	disordered   int // frames received out of order
}

// openConversation creates a conversation and connects to it.
func (s *server) openConversation(ctx context.Context) (*socket, error) {
	talk, err := s.api.Conversations().Create(ctx, reeve.ConversationRequest{Agent: agentName})
	if err != nil {
		return nil, err
	}
	return s.dial(ctx, talk.ID)
}

func (s *server) dial(ctx context.Context, conversation string) (*socket, error) {
	u := "ws" + strings.TrimPrefix(s.url, "http") + "/conversations/" + conversation + "?workspace=default"
	conn, _, err := websocket.Dial(ctx, u,
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + s.token}}})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	return &socket{Conn: conn, conversation: conversation}, nil
}

// turn sends a message and reads frames until the turn is complete. It returns the time to the first token and the
// total time.
func (s *socket) turn(ctx context.Context, text string, token func(reeve.Frame) error) (
	first, whole time.Duration, err error) {
	start := time.Now()
	if err := s.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"type":"message","content":%q}`, text)); err != nil {
		return 0, 0, err
	}
	for {
		_, b, err := s.Read(ctx)
		if err != nil {
			return first, 0, err
		}
		var f reeve.Frame
		if err := json.Unmarshal(b, &f); err != nil {
			return first, 0, err
		}
		if f.Type == reeve.FrameConnected {
			s.seq = f.Seq
			continue
		}
		if f.Seq <= s.seq {
			s.disordered++
		}
		s.seq = f.Seq
		switch f.Type {
		case reeve.FrameToken:
			if first == 0 {
				first = time.Since(start)
			}
			if token != nil {
				if err := token(f); err != nil {
					return first, 0, err
				}
			}
		case reeve.FrameError:
			return first, 0, errors.New(f.Message)
		case reeve.FrameComplete:
			if f.State != reeve.RunCompleted {
				return first, 0, fmt.Errorf("a turn ended as %s: %s", f.State, f.Message)
			}
			return first, time.Since(start), nil
		default: // the other frames of a turn
		}
	}
}

// singleTurns measures one turn at a time.
func (s *server) singleTurns(ctx context.Context, c config, t *table) {
	k := must(s.openConversation(ctx))
	defer k.CloseNow()
	var firsts, wholes []float64
	const warmUp = 10
	for i := range warmUp + pick(c, 300, 30) {
		first, _, err := k.turn(ctx, "speak", nil)
		check(err)
		_, whole, err := k.turn(ctx, "call", nil)
		check(err)
		if i >= warmUp {
			firsts, wholes = append(firsts, milliseconds(first)), append(wholes, milliseconds(whole))
		}
	}
	t.limit("first token after the model's, p50", "ms", median(firsts), 10)
	t.limit("a turn with a tool call, p50", "ms", median(wholes), 15)
}

// manyTurns measures turns with a tool call in 16 conversations at once.
func (s *server) manyTurns(ctx context.Context, c config, t *table) {
	const atOnce = 16
	var done atomic.Int64
	start, d := time.Now(), pick(c, 10*time.Second, 2*time.Second)
	group, inner := errgroup.WithContext(ctx)
	for range atOnce {
		group.Go(func() error {
			k, err := s.openConversation(inner)
			if err != nil {
				return err
			}
			defer k.CloseNow()
			for time.Since(start) < d {
				if _, _, err := k.turn(inner, "call", nil); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	check(group.Wait())
	rate := float64(done.Load()) / time.Since(start).Seconds()
	t.floor(fmt.Sprintf("turns with a tool call, %d at once", atOnce), "turns/s", rate, 200)
}

// manySockets streams tokens in many conversations at once, each to a separate socket.
func (s *server) manySockets(ctx context.Context, c config, t *table) {
	sockets, tokens := pick(c, 1000, 100), pick(c, 200, 40)
	var mu sync.Mutex
	var delays []float64
	lost := 0
	group, inner := errgroup.WithContext(ctx)
	for range sockets {
		group.Go(func() error {
			late, missing, err := s.stream(inner, tokens)
			mu.Lock()
			defer mu.Unlock()
			delays, lost = append(delays, late...), lost+missing
			return err
		})
	}
	check(group.Wait())
	name := fmt.Sprintf("%d sockets at %d tokens/s", sockets, tokensPerSecond)
	t.limit(name+", token delay, p99", "ms", percentile(delays, 99), 50)
	t.add(row{name: name + ", tokens lost", unit: "tokens", against: "sent", ours: float64(lost),
		peer:  float64(sockets * tokens),
		ratio: float64(lost) / float64(sockets*tokens), target: atMost(0)})
	t.limit(name+", peak memory", "MB", s.memory("VmHWM"), 300)
}

// stream makes the model stream tokens to a new socket. It returns the delay of each token, and the number of tokens
// that were lost or out of order.
func (s *server) stream(ctx context.Context, tokens int) (delays []float64, missing int, err error) {
	k, err := s.openConversation(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer k.CloseNow()
	_, _, err = k.turn(ctx, fmt.Sprint("stream ", tokens), func(f reeve.Frame) error {
		now := time.Now()
		number, made, _ := strings.Cut(strings.TrimSpace(f.Text), "@")
		if n, err := strconv.Atoi(number); err != nil || n != len(delays) {
			missing++
		}
		at, err := strconv.ParseInt(made, 10, 64)
		delays = append(delays, milliseconds(now.Sub(time.Unix(0, at))))
		return err
	})
	return delays, missing + k.disordered + tokens - len(delays), err
}

// longConversation compares turns in a conversation of many messages with turns in one of a thousand.
func longConversation(ctx context.Context, c config, t *table) {
	d := database{engine: onSQLite, dir: filepath.Join(c.dir, "long")}
	many := pick(c, 1_000_000, 50_000)
	s := startBenchServer(ctx, d.dir)
	s.addAgent(ctx, agentName)
	conversations := []string{s.firstTurn(ctx), s.firstTurn(ctx)}
	s.stop()
	for i, n := range []int{1000, many} {
		multiplyTurns(ctx, d, conversations[i], i, n/2)
	}
	s = startBenchServer(ctx, d.dir)
	defer s.stop()
	sides := make([]side, 2)
	for i, id := range conversations {
		k := must(s.dial(ctx, id))
		defer k.CloseNow()
		sides[i] = repeat(pick(c, 30, 10), func(ctx context.Context, _ int) error {
			_, _, err := k.turn(ctx, "speak", nil)
			return err
		})
	}
	got := must(alternate(ctx, c, sides...))
	t.compare(fmt.Sprintf("a turn after %d messages", many), "µs", got[1], "after 1000", got[0], atMost(1.2))
}

// firstTurn creates a conversation with one turn.
func (s *server) firstTurn(ctx context.Context) (conversation string) {
	k := must(s.openConversation(ctx))
	defer k.CloseNow()
	_, _, err := k.turn(ctx, "speak", nil)
	check(err)
	return k.conversation
}

// multiplyTurns copies the only turn of a conversation: its run and its two messages.
func multiplyTurns(ctx context.Context, d database, conversation string, series, turns int) {
	past := fmt.Sprintf("'%%_01a00000000000%d%%'", series)
	multiply(ctx, d, "runs", "session_id = '"+conversation+"' AND id NOT LIKE "+past, turns, map[string]string{
		"id": pastID("run", series, "i"), "run_key": pastID("key", series, "i"),
		"started_at": "started_at - 2000000000 + i", "finished_at": "finished_at - 2000000000 + i"})
	multiply(ctx, d, "messages", "thread_id LIKE '%:session:"+conversation+"' AND id NOT LIKE "+past, turns,
		map[string]string{
			"id":     pastID("msg", series, "2 * i + CASE WHEN kind = 'user' THEN 0 ELSE 1 END"),
			"run_id": pastID("run", series, "i"), "created_at": "created_at - 2000000000 + i"})
}
