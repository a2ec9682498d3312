package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve/api"
)

// TestCrashEval_I20 kills the server and the command at random moments while the command asks forty questions. In the
// end each is answered and was asked once.
func TestCrashEval_I20(t *testing.T) {
	t.Parallel()
	const questions, kills = 40, 8
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	r := newRig(t)
	dir := t.TempDir()
	script, tasks, results := filepath.Join(dir, "model.yaml"), filepath.Join(dir, "tasks.jsonl"),
		filepath.Join(dir, "results")
	var lines strings.Builder
	for i := range questions {
		fmt.Fprintf(&lines, "{\"id\":\"q%d\",\"question\":\"Say %d\",\"answer\":\"It is Say %d\"}\n", i, i, i)
	}
	err := errors.Join(os.WriteFile(tasks, []byte(lines.String()), 0o644),
		os.WriteFile(script, []byte(
			"answers:\n  - when: {said: Say}\n    text: \"It is {{said}}\"\n    delay: 100ms\n"), 0o644))
	listen, listenErr := reserveAddress()
	if err := errors.Join(err, listenErr); err != nil {
		t.Fatal(err)
	}
	env := []string{"REEVE_LISTEN=" + listen, "REEVE_MODEL_SCRIPT=" + script}
	w, err := r.newWorld(ctx, sqliteEngine(t),
		func(c caller) error { return c.do(ctx, "POST", "/api/agents", object{"name": "clerk"}, nil) })
	if err != nil {
		t.Fatal(err)
	}
	var server, command *process
	for killed, done := 0, false; !done; {
		if server == nil {
			if server, err = r.serve(w, env...); err == nil {
				err = server.waitUntilReady(ctx)
			}
		}
		if command == nil && err == nil {
			command, err = r.family.start(r.serverEnv(w), r.program, "eval", tasks, "--agent", "clerk", "--out",
				results, "--json")
		}
		if err != nil {
			t.Fatal(err)
		}
		moment := time.NewTimer(50*time.Millisecond + rand.N(500*time.Millisecond))
		if killed >= kills {
			moment.Stop()
		}
		select {
		case <-command.gone:
			if done = command.err == nil; !done && !strings.Contains(command.log.String(), `"code":"UNAVAILABLE"`) {
				t.Fatalf("the command failed: %v: %s", command.err, &command.log)
			}
			if !done {
				command = nil // it found no server to begin with
			}
		case <-moment.C:
			if killed++; killed%2 == 0 {
				server.kill()
				server = nil
			} else {
				command.kill()
				command = nil
			}
		case <-ctx.Done():
			t.Fatalf("it did not end: %s\n%s", &command.log, &server.log)
		}
	}
	c, err := w.owner(server, unlimited)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	var runs api.RunList
	for next := ""; ; next = runs.Next {
		runs = api.RunList{}
		if err := c.do(ctx, "GET", "/api/runs?limit=100&cursor="+next, nil, &runs); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs.Runs {
			said[run.Input]++
		}
		if runs.Next == "" {
			break
		}
	}
	for i := range questions {
		if n := said[fmt.Sprintf("Say %d", i)]; n != 1 {
			t.Errorf("question %d was asked %d times", i, n)
		}
	}
	b, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		var o struct {
			Task  string
			Exact bool
		}
		if json.Unmarshal([]byte(line), &o) == nil && o.Exact {
			right[o.Task] = true
		}
	}
	if len(right) != questions {
		t.Errorf("%d of %d answers are right", len(right), questions)
	}
}
