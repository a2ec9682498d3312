package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"reeve/bench/turn"
)

// peer is another engine that takes its turns.
type peer struct {
	name   string
	lane   lane
	stop   func() error
	behind int64 // the most ends that were not durable at the end of a turn
}

// startRiver starts River with n workers, as a process of its own: its garbage is not ours. On SQLite it is a module of its own
// too: the proxy has River's SQLite driver only up to 0.31, which does not build with River 0.50. More arguments say what its jobs are.
func startRiver(ctx context.Context, c config, engine string, n int, more ...string) (*peer, error) {
	name, program, args := "River 0.31", "riversqlite", []string{"-file", filepath.Join(c.dir, fmt.Sprintf("river-%d-%d.db", n, len(more)))}
	if engine == "PostgreSQL" {
		u, err := freshDatabase(ctx, fmt.Sprintf("river_%d_%d", n, len(more)))
		if err != nil {
			return nil, err
		}
		name, program, args = "River 0.50", "riverpostgres", []string{"-database", u}
	}
	file := filepath.Join(c.dir, program)
	if _, err := os.Stat(file); err != nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", file, ".")
		build.Dir, build.Stderr = program, os.Stderr
		if err := build.Run(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, file, append(append(args, "-workers", fmt.Sprint(n)), more...)...)
	cmd.Stderr = os.Stderr
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC=400") // about as seldom as we collect our garbage
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	answers := bufio.NewScanner(out)
	read := func() (got turn.Done, err error) {
		if !answers.Scan() {
			return got, errors.Join(errors.New("River ended"), answers.Err())
		}
		return got, json.Unmarshal(answers.Bytes(), &got)
	}
	if _, err := read(); err != nil { // says that it is ready
		return nil, errors.Join(err, cmd.Wait())
	}
	p := &peer{name: name, stop: func() error { return errors.Join(in.Close(), cmd.Wait()) }}
	p.lane = func(_ context.Context, d time.Duration) (float64, error) {
		if _, err := fmt.Fprintln(in, d); err != nil {
			return 0, err
		}
		got, err := read()
		p.behind = max(p.behind, got.Behind)
		return got.Rate, err
	}
	return p, nil
}
