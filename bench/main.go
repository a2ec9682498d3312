// Command bench measures Reeve against peers and limits, side by side in one run, and prints ratios:
//
//	make bench
//	cd bench && go run . -quick -run overhead,peers
//
// Absolute figures belong to the machine and its neighbours of the moment. Ratios are the result: whatever is compared takes
// turns in short slices, so that noise hits both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"reeve/host"
	"reeve/internal/sandbox/confine"
)

// config is how much is measured.
type config struct {
	quick  bool
	rounds int            // turns that each side of a comparison takes
	slice  time.Duration  // length of a turn
	dir    string         // scratch directory on a real disk, gone afterwards unless it was named
	only   *regexp.Regexp // parts of the section wakes that are measured, by engine and name
}

// pick is full, or small in quick mode.
func pick[T any](c config, full, small T) T {
	if c.quick {
		return small
	}
	return full
}

// sections in the order they run. Memory comes first: it looks at this process's heap.
var sections = []section{
	{"memory", memory, true},
	{"overhead", overhead, true},
	{"peers", peers, true},
	{"scale", scale, true},
	{"script", script, false},
	{"python", python, false},
	{"hands", hands, false},
	{"talk", talk, false},
	{"delegate", delegate, false},
	{"wakes", wakes, true},
	{"items", items, false},
	{"mail", mail, false},
}

type section struct {
	name     string
	run      func(context.Context, config, *table) error
	postgres bool // it also measures PostgreSQL
}

// choose gives the sections of a list of names; an empty one means all.
func choose(list string) (chosen []section, err error) {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	for _, s := range sections {
		if len(names) == 0 || slices.Contains(names, s.name) {
			if s.postgres && postgresServer() == "" {
				return nil, fmt.Errorf("%s needs PostgreSQL: run make bench (REEVE_PG_FSYNC=on scripts/postgres run ...)", s.name)
			}
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}

func main() {
	confine.Serve()
	if dir := os.Getenv(talkDir); dir != "" {
		if err := serveTalk(dir); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var c config
	which := flag.String("run", "", "sections to run, separated by commas; all when left out")
	asJSON := flag.Bool("json", false, "print one JSON document instead of a table")
	profile := flag.String("cpuprofile", "", "write a CPU profile of the whole run to this file")
	flag.BoolVar(&c.quick, "quick", false, "measure less: about a minute")
	flag.IntVar(&c.rounds, "rounds", 0, "turns that each side takes (default 10, quick 4)")
	flag.DurationVar(&c.slice, "slice", 0, "length of a turn (default 600ms, quick 300ms)")
	flag.StringVar(&c.dir, "dir", "", "scratch directory to keep; mail that was imported into it is searched again, and not imported (default: a new one, removed afterwards)")
	only := flag.String("only", "", "parts of wakes to measure, a regular expression: SQLite firing, PostgreSQL claiming, ...; all when left out")
	flag.Parse()
	if c.rounds == 0 {
		c.rounds = pick(c, 10, 4)
	}
	if c.slice == 0 {
		c.slice = pick(c, 600*time.Millisecond, 300*time.Millisecond)
	}
	if c.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	chosen, err := choose(*which)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		host.CollectGarbage() // as reeve serve does
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := findPostmaster(ctx); err != nil && postgresServer() != "" {
		fmt.Fprintln(os.Stderr, "bench: the processor time of PostgreSQL is not counted:", err)
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "reeve-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	} else if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	t := &table{Started: time.Now().UTC().Format(time.RFC3339), Processors: runtime.NumCPU(), Load: []string{load()}}
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "%s ...\n", s.name)
		if err := s.run(ctx, c, t); err != nil {
			t.print(os.Stderr, s.name) // what there is
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.Load = append(t.Load, load())
		if !*asJSON {
			t.print(os.Stdout, s.name)
		}
	}
	if *asJSON {
		return t.json(os.Stdout)
	}
	fmt.Println(t.verdict())
	return nil
}

// load is how busy the machine was in the last minute: a run beside busy neighbours is worth less, and its reader should know.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Fields(string(b))[0]
}
