// Command bench measures Reeve against peers and limits and prints one line per figure:
//
//	make bench
//	cd bench && go run . -short -run items
//
// Rates depend on the machine and its load, so compare the ratios. Both sides of a comparison are measured in the same
// run, in alternating slices of time, so that a busy machine slows down both.
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

// config sets the amount of work and the directory of the databases.
type config struct {
	short   bool
	rounds  int           // slices that each side of a comparison gets
	slice   time.Duration // length of a slice
	dir     string        // scratch directory
	data    []string      // folders of questions with relevance judgements
	vectors string        // file that keeps the vectors of texts between runs; empty for none
}

// pick returns full, or small with -short.
func pick[T any](c config, full, small T) T {
	if c.short {
		return small
	}
	return full
}

// sections lists the sections in the order in which they run.
var sections = []struct {
	name string
	run  func(context.Context, config, *table)
}{
	{"calls", measureCalls},
	{"runs", measureRuns},
	{"turns", measureTurns},
	{"items", measureItems},
	{"search", measureSearch},
	{"memory-recall", measureRecall},
}

func main() {
	confine.Serve() // the sandbox starts this program as its worker
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
	flag.BoolVar(&c.short, "short", false, "run a quick check of the benchmarks; the figures mean little")
	flag.IntVar(&c.rounds, "rounds", 0, "slices that each side of a comparison gets (default 10, with -short 3)")
	flag.DurationVar(&c.slice, "slice", 0, "length of a slice (default 600ms, with -short 500ms)")
	data := flag.String("data", "", "folders of judged questions for memory-recall, or files of LoCoMo and LongMemEval, separated by commas")
	flag.StringVar(&c.vectors, "vectors", "", "file that keeps the vectors of memory-recall's texts between runs")
	flag.Parse()
	c.data = strings.FieldsFunc(*data, func(r rune) bool { return r == ',' })
	if c.rounds == 0 {
		c.rounds = pick(c, 10, 3)
	}
	if c.slice == 0 {
		c.slice = pick(c, 600*time.Millisecond, 500*time.Millisecond)
	}
	chosen := strings.Split(*which, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown section %q; use one of %s", name, strings.Join(names, ", "))
		}
	}
	host.TuneGarbageCollector() // as reeve serve does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.dir, err = os.MkdirTemp("", "reeve-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if postgresServer() == "" {
		fmt.Println("PostgreSQL is skipped. To include it, run: REEVE_PG_FSYNC=on scripts/postgres run ...")
	}
	fmt.Println(machine())
	t := &table{}
	for _, s := range sections {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		t.startSection(s.name)
		err := runSection(func() { s.run(ctx, c, t) })
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

// check panics with a failure, which ends the section, if err is not nil. Call it only in the goroutine of the section.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the section like check.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// warn prints an error of stopping or closing something and continues.
func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// runSection runs a section and returns the error that ended it.
func runSection(section func()) (err error) {
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
