package guest

import (
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"reeve/internal/sandbox/js/wire"
)

// A script with a return at its top level is compiled as the body of an async function.
const (
	bodyHead = "(async () => {"
	bodyTail = "\n})()"
)

// source is the JavaScript of a script, with the means to map positions back to the script as written. TypeScript is
// translated in the worker, so a source that crashes the translator affects only its own run.
type source struct {
	file         string // file name in the engine's stack traces
	text         string
	wrapped      bool       // text was wrapped in a function after translation
	mapping      *sourceMap // nil for JavaScript
	wrappedFirst bool       // the TypeScript was wrapped in a function before translation
}

// newSource returns the JavaScript of a script, or the syntax error that the translation of TypeScript found.
func newSource(name, language, text string) (*source, *wire.Fault) {
	s := &source{file: scriptFile(name), text: text}
	if language != "ts" {
		return s, nil
	}
	out, problem := stripTypes(text)
	if problem != nil { // the reason may be a return at the top level
		if second, p := stripTypes(bodyHead + text + bodyTail); p == nil {
			out, problem, s.wrappedFirst = second, nil, true
		}
	}
	if problem != nil {
		return nil, problem
	}
	s.text = string(out.Code)
	s.mapping = newSourceMap(out.Map)
	return s, nil
}

// stripTypes translates TypeScript to JavaScript without checking types.
func stripTypes(text string) (api.TransformResult, *wire.Fault) {
	out := api.Transform(text, api.TransformOptions{
		Loader: api.LoaderTS, Target: api.ES2022, Sourcemap: api.SourceMapExternal, Charset: api.CharsetUTF8,
		LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent,
		TsconfigRaw: `{"compilerOptions":{"useDefineForClassFields":true,"verbatimModuleSyntax":true}}`,
	})
	if len(out.Errors) == 0 {
		return out, nil
	}
	f := &wire.Fault{Failure: wire.Syntax, Name: "SyntaxError", Message: out.Errors[0].Text}
	if at := out.Errors[0].Location; at != nil {
		f.Stack = []wire.Place{{Line: at.Line, Column: at.Column + 1}}
	}
	return out, f
}

// wrap makes the text the body of an async function.
func (s *source) wrap() { s.text, s.wrapped = bodyHead+s.text+bodyTail, true }

// scriptFile returns a script's name without the characters that parseFrame treats as separators.
func scriptFile(name string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || strings.ContainsRune("():", c) {
			return '_'
		}
		return c
	}, name)
}

// parseStack parses the engine's stack trace and returns the frames of the script, with positions in the script as
// written.
func (s *source) parseStack(stack string) []wire.Place {
	if s == nil {
		return nil
	}
	var out []wire.Place
	for line := range strings.Lines(stack) {
		if f, ok := s.parseFrame(strings.TrimSpace(line)); ok && len(out) < wire.MaxPlaces {
			out = append(out, f)
		}
	}
	return out
}

// parseFrame parses "at name (file:line:column)" or "at file:line:column". It returns false for a line that is not a
// frame of the script.
func (s *source) parseFrame(line string) (wire.Place, bool) {
	line, ok := strings.CutPrefix(line, "at ")
	if !ok {
		return wire.Place{}, false
	}
	name := ""
	if i := strings.LastIndex(line, " ("); i >= 0 && strings.HasSuffix(line, ")") {
		name, line = line[:i], line[i+2:len(line)-1]
	}
	line, ok = strings.CutPrefix(line, s.file+":")
	if !ok {
		return wire.Place{}, false
	}
	l, c, _ := strings.Cut(line, ":")
	f := wire.Place{Function: name}
	var err error
	if f.Line, err = strconv.Atoi(l); err != nil {
		return wire.Place{}, false
	}
	if f.Column, err = strconv.Atoi(c); err != nil {
		return wire.Place{}, false
	}
	if name == "<eval>" || name == "<anonymous>" {
		f.Function = ""
	}
	if s.wrapped && f.Line == 1 {
		f.Column -= len(bodyHead)
	}
	if s.mapping != nil {
		f.Line, f.Column = s.mapping.findOriginal(f.Line, f.Column)
	}
	if s.wrappedFirst && f.Line == 1 {
		f.Column -= len(bodyHead)
	}
	f.Column = max(f.Column, 1)
	return f, f.Line > 0
}
