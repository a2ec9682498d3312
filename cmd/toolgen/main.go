// Toolgen generates Reeve tools from Go functions. It reads one package, finds the functions whose doc comment contains
// a //reeve:tool line, and writes a file with a function that returns them as []reeve.Tool.
//
//	toolgen [-o tools_gen.go] [-func Tools] [-check] [dir]
//
// Add this line to the package and run go generate:
//
//	//go:generate go tool toolgen
//
// # Functions
//
// A tool is a top-level function with one of these signatures, in a file that is not a test:
//
//	func F(ctx context.Context, a A, b B, ...) (R, error)
//	func F(ctx context.Context, a A, b B, ...) error
//	func F(ctx context.Context, args S) (R, error)   // S is a struct; its tags define the schema
//
// The id of the tool is the name of the function in snake_case. The name of an argument is the name of its parameter
// in snake_case. The doc comment is the description of the tool; if it starts with the name of the function, the id
// replaces that name. A line of the form
//
//   - name: text
//
// in the doc comment describes the Go parameter name, together with the indented lines below it. These lines are not
// part of the description of the tool. It is an error if there is no such parameter. A function that returns only an
// error has the result "done".
//
// Arguments can be strings, bools, integers, floats, time.Time (RFC 3339), any (any JSON value), structs, and slices,
// arrays and maps with string keys of these. A pointer makes an argument optional. Types whose JSON form differs from
// their schema are errors: []byte, time.Duration, types with their own JSON decoding, and recursive types.
//
// # Directive
//
//	//reeve:tool key=value key="value with spaces" ...
//
// All keys are optional:
//
//	id          id of the tool (default: the name of the function in snake_case)
//	name        name shown to people (default: the id)
//	effect      read, local, keyed, verifiable or unsafe (default unsafe)
//	tier        read_only, side_effecting or privileged (default: derived from the effect)
//	risk        low, medium or high (default: derived from the effect)
//	category    a slug (default general)
//	capability  a slug (default: none)
//	timeout     a Go duration (default 30s)
//	retry       maximum number of attempts, 1 to 10 (default 1)
//	verify      name of a reeve.Verifier function in the package; required for effect=verifiable
//
// # Errors
//
// Toolgen prints every problem as file:line:col: message. If there are problems, it writes nothing and exits with code
// 1. It exits with code 2 if the command line is invalid. With -check, it never writes, and exits with code 1 if the
// generated file is not up to date.
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

// run executes toolgen with the arguments args and returns the exit code.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("toolgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: toolgen [-o tools_gen.go] [-func Tools] [-check] [dir]")
		flags.PrintDefaults()
	}
	out := flags.String("o", "tools_gen.go", "name of the generated `file`")
	name := flags.String("func", "Tools", "`name` of the generated function")
	check := flags.Bool("check", false, "write nothing, and fail if the file is not up to date")
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
		return usage("expected at most one directory, got %d", flags.NArg())
	}
	if *out != filepath.Base(*out) || !strings.HasSuffix(*out, ".go") || strings.HasSuffix(*out, "_test.go") {
		return usage("-o %s: must be the name of a Go file in the package, not of a test", *out)
	}
	if !token.IsIdentifier(*name) || *name == "_" || *name == "init" || *name == "main" {
		return usage("-func %s: must be a valid name for a function", *name)
	}
	if err := generate(dir, *out, *name, *check); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// generate generates the file, or with check compares it. Its error has one line for each problem.
func generate(dir, out, name string, check bool) error {
	src, err := load(dir, out)
	if err != nil {
		return err
	}
	tools := src.findTools(name)
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
		return nil // keep the modification time, so that nothing is rebuilt
	case check:
		return fmt.Errorf("%s:1:1: not up to date; run go generate", file)
	case len(bytes.TrimSpace(have)) > 0 && !isGenerated(have):
		return fmt.Errorf("%s:1:1: not written by toolgen; remove the file or set another name with -o", file)
	}
	return os.WriteFile(file, want, 0o644)
}
