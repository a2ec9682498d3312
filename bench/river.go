package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// river is a River process with queued jobs.
type river struct {
	name string
	side side
	stop func()
}

// startRiver starts River with n workers in a separate process, so that neither side pays for the garbage collection of
// the other. There are two programs, because River's SQLite driver needs an older River. The flags are those of
// peer.Options.
func startRiver(ctx context.Context, c config, engine string, n int, flags ...string) *river {
	name, program, db := "River 0.31", "riversqlite", filepath.Join(c.dir, fmt.Sprintf("river-%d-%d.db", n, len(flags)))
	if engine == onPostgres {
		name, program = "River 0.50", "riverpostgres"
		db = createPostgres(ctx, fmt.Sprintf("river_%d_%d", n, len(flags)))
	}
	file := filepath.Join(c.dir, program)
	if _, err := os.Stat(file); err != nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", file, ".")
		build.Dir, build.Stderr = program, os.Stderr
		check(build.Run())
	}
	cmd := exec.CommandContext(ctx, file, append([]string{"-database", db, "-workers", strconv.Itoa(n)}, flags...)...)
	cmd.Stderr = os.Stderr
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC=400") // about as rarely as in Reeve
	}
	in := must(cmd.StdinPipe())
	out := must(cmd.StdoutPipe())
	check(cmd.Start())
	answers := bufio.NewScanner(out)
	read := func() (float64, error) {
		if !answers.Scan() {
			return 0, errors.Join(errors.New("the River process ended"), answers.Err())
		}
		return strconv.ParseFloat(answers.Text(), 64)
	}
	must(read()) // the first line means that River is ready
	work := func(_ context.Context, d time.Duration) (float64, error) {
		if _, err := fmt.Fprintln(in, d); err != nil {
			return 0, err
		}
		return read()
	}
	return &river{name: name, side: work, stop: func() { warn(errors.Join(in.Close(), cmd.Wait())) }}
}
