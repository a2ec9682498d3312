// Toolgen makes tools of plain Go functions. It reads one package, finds the functions whose doc comment holds a
// //reeve:tool line and writes a file with a function that returns them as []reeve.Tool.
//
//	toolgen [-o tools_gen.go] [-func Tools] [-check] [dir]
//
// Put this line into the package and run go generate:
//
//	//go:generate go tool toolgen
//
// # Functions
//
// A tool is a top-level function of one of these forms, in a file that is not a test:
//
//	func F(ctx context.Context, a A, b B, ...) (R, error)
//	func F(ctx context.Context, a A, b B, ...) error
//	func F(ctx context.Context, args S) (R, error)   // S a struct: its own tags give the schema
//
// The tool's id is the function's name in snake_case, each argument is named after its parameter in snake_case, and the
// doc comment is the description; where it begins with the function's name, as doc comments do, the id is put in its
// place. A line of the form
//
//   - name: text
//
// in the doc comment describes the parameter of that Go name and is left out of the description; indented lines below
// belong to it. A name that is no parameter is an error. A function that gives only an error answers "done".
//
// Arguments are strings, bools, integers, floats, time.Time (RFC 3339), any (whatever JSON says), structs, and slices,
// arrays and maps with string keys of these. A pointer makes an argument optional. What JSON and the schema would
// understand differently is refused: []byte, time.Duration, types that decode themselves, types that contain
// themselves.
//
// # Directive
//
//	//reeve:tool key=value key="value with spaces" ...
//
// The keys, all optional:
//
//	id          what callers say; the function's name in snake_case
//	name        what people read; the id
//	effect      read, local, keyed, verifiable or unsafe; unsafe
//	tier        read_only, side_effecting or privileged; what the effect asks for
//	risk        low, medium or high; what the effect asks for
//	category    a slug; general
//	capability  a slug; none
//	timeout     a Go duration; 30s
//	retry       how often to try in all, 1 to 10; 1
//	verify      the reeve.Verifier of an effect=verifiable tool, a function of the package
//
// # Errors
//
// Every problem is printed as file:line:col: message. With any, nothing is written and the exit code is 1; wrong usage
// is 2. With -check nothing is ever written, and the exit code is 1 when the file is not what would be written.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run is main with its surroundings as arguments, so that tests need no process.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("toolgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: toolgen [-o tools_gen.go] [-func Tools] [-check] [dir]")
		flags.PrintDefaults()
	}
	out := flags.String("o", "tools_gen.go", "write this `file` of the package")
	name := flags.String("func", "Tools", "call the generated function `name`")
	check := flags.Bool("check", false, "write nothing; fail when the file is not up to date")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	usage := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "toolgen: "+format+"\n", args...)
		return 2
	}
	dir := "."
	switch flags.NArg() {
	case 0:
	case 1:
		dir = flags.Arg(0)
	default:
		return usage("one directory at a time, not %d", flags.NArg())
	}
	if *out != filepath.Base(*out) || !strings.HasSuffix(*out, ".go") || strings.HasSuffix(*out, "_test.go") {
		return usage("-o %s: not the name of a Go file of the package", *out)
	}
	if !token.IsIdentifier(*name) || *name == "_" || *name == "init" || *name == "main" {
		return usage("-func %s: not a name for a function", *name)
	}
	if err := generate(dir, *out, *name, *check); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// generate does what run was asked for. Its error may be many lines: one for each problem.
func generate(dir, out, name string, check bool) error {
	src, err := load(dir, out)
	if err != nil {
		return err
	}
	tools := src.tools(name)
	if err := src.problems.err(); err != nil {
		return err
	}
	if len(tools) == 0 {
		return fmt.Errorf("toolgen: %s: no function has a %s line in its doc comment", dir, directive)
	}
	want, err := emit(src.pkg, name, tools)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, out)
	have, err := os.ReadFile(file)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && bytes.Equal(have, want):
		return nil // the file keeps its time, so nothing is built again
	case check:
		return fmt.Errorf("%s:1:1: not up to date: run go generate", file)
	case len(bytes.TrimSpace(have)) > 0 && !generated(have):
		return fmt.Errorf("%s:1:1: was not written by toolgen: remove it or choose another name with -o", file)
	}
	return os.WriteFile(file, want, 0o644)
}
