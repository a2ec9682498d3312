// Command bench measures Reeve beside a peer or a limit and prints one line per figure:
//
//	make bench
//	cd bench && go run . -short -run items
//
// Rates depend on the machine and on what else runs on it. Ratios are the result: both sides of a comparison are
// measured in the same run, in alternating slices of time, so that a busy machine slows both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"reeve/host"
	"reeve/internal/sandbox/confine"
)

// config says how much to measure, and where to put databases.
type config struct {
	short  bool
	rounds int           // slices that each side of a comparison gets
	slice  time.Duration // length of a slice
	dir    string        // scratch directory
}

// pick returns full, or small with -short.
func pick[T any](c config, full, small T) T {
	if c.short {
		return small
	}
	return full
}

// sections lists what can be measured, in the order in which it runs.
var sections = []struct {
	name string
	run  func(context.Context, config, *table)
}{
	{"calls", measureCalls},
	{"runs", measureRuns},
	{"turns", measureTurns},
	{"items", measureItems},
	{"search", measureSearch},
}

func main() {
	confine.Serve() // the sandbox starts this program again as its worker
	work := run
	if dir := os.Getenv(serveDir); dir != "" {
		work = func() error { return serve(dir) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	var c config
	which := flag.String("run", strings.Join(names, ","), "sections to run, separated by commas")
	flag.BoolVar(&c.short, "short", false, "measure less, to see that everything works; the figures mean little")
	flag.IntVar(&c.rounds, "rounds", 0, "slices that each side of a comparison gets (default 10, with -short 3)")
	flag.DurationVar(&c.slice, "slice", 0, "length of a slice (default 600ms, with -short 500ms)")
	flag.Parse()
	if c.rounds == 0 {
		c.rounds = pick(c, 10, 3)
	}
	if c.slice == 0 {
		c.slice = pick(c, 600*time.Millisecond, 500*time.Millisecond)
	}
	chosen := strings.Split(*which, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no section %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	host.CollectGarbage() // as reeve serve does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.dir, err = os.MkdirTemp("", "reeve-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if postgresServer() == "" {
		fmt.Println("PostgreSQL is left out. To measure it as well: REEVE_PG_FSYNC=on scripts/postgres run ...")
	}
	fmt.Println(machine())
	t := &table{}
	for _, s := range sections {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		t.begin(s.name)
		err := caught(func() { s.run(ctx, c, t) })
		t.print(os.Stdout)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Println(t.verdict())
	return nil
}

// failure is an error that ends a section.
type failure struct{ error }

// check ends the section if there is an error. Other goroutines than the section's own return errors instead.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the section as check does.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// warn reports an error of stopping or closing something, which ends nothing.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// caught runs a section and returns the error that ended it.
func caught(section func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	section()
	return nil
}
