package guest

import (
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"reeve/internal/sandbox/js/wire"
)

// A script with a return at its top level is read as the body of an async function.
const (
	bodyHead = "(async () => {"
	bodyTail = "\n})()"
)

// source is a script as the engine reads it, which knows its way back to the script as it was written. TypeScript is
// turned into JavaScript in the worker, not in the host: a source made to break a parser breaks only its own run.
type source struct {
	file    string // in the engine's stacks
	text    string
	wrapped bool       // the text was wrapped in a function for the engine
	mapping *sourceMap // nil for JavaScript
	shifted bool       // what was translated had been wrapped before
}

// newSource gives the text for the engine, or the fault that a translation found.
func newSource(name, language, text string) (*source, *wire.Fault) {
	s := &source{file: scriptFile(name), text: text}
	if language != "ts" {
		return s, nil
	}
	out, problem := strip(text)
	if problem != nil { // perhaps because of a return at the top level
		if second, p := strip(bodyHead + text + bodyTail); p == nil {
			out, problem, s.shifted = second, nil, true
		}
	}
	if problem != nil {
		return nil, problem
	}
	s.text = string(out.Code)
	s.mapping = newSourceMap(out.Map)
	return s, nil
}

// strip removes types.
func strip(text string) (api.TransformResult, *wire.Fault) {
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

// wrap makes the text the body of a function.
func (s *source) wrap() { s.text, s.wrapped = bodyHead+s.text+bodyTail, true }

// scriptFile is a script's name in a form that survives in a stack.
func scriptFile(name string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || strings.ContainsRune("():", c) {
			return '_'
		}
		return c
	}, name)
}

// frames reads the engine's stack and keeps what is the script's own, in the script's own lines.
func (s *source) frames(stack string) []wire.Place {
	if s == nil {
		return nil
	}
	var out []wire.Place
	for line := range strings.Lines(stack) {
		if f, ok := s.frame(strings.TrimSpace(line)); ok && len(out) < wire.MaxPlaces {
			out = append(out, f)
		}
	}
	return out
}

// frame reads "at name (file:line:column)" or "at file:line:column".
func (s *source) frame(line string) (wire.Place, bool) {
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
		f.Line, f.Column = s.mapping.original(f.Line, f.Column)
	}
	if s.shifted && f.Line == 1 {
		f.Column -= len(bodyHead)
	}
	f.Column = max(f.Column, 1)
	return f, f.Line > 0
}
