package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reeve"
)

// policy is what an agent's command lines may be made of.
type policy struct {
	allow, deny []string // programs; "*" in allow means all
	operators   []string // see operators
}

// The operators that can be switched.
const (
	pipes        = "pipe"         // a | b
	lists        = "list"         // a; b, a && b, a || b, ! a, and more than one line
	redirections = "redirect"     // a > b, a < b, and texts in place
	substitution = "substitution" // $(a), `a`, <(a), ${a}, $((a))
	background   = "background"   // a &
	control      = "control"      // if, for, while, case, functions, groups, tests
	assignment   = "assignment"   // A=b
)

func operators() []string {
	return []string{assignment, background, control, lists, pipes, redirections, substitution}
}

// runners run what their arguments say. Where programs are listed, they must be allowed by name, and their arguments
// are judged too.
var runners = []string{"builtin", "busybox", "chroot", "command", "coproc", "doas", "env", "exec", "find", "ionice",
	"jobs", "nice", "nohup", "parallel", "setsid", "stdbuf", "sudo",
	"time", "timeout", "toybox", "unshare", "watch", "xargs"}

// interpreters run text that no look at the line can judge. Where programs are listed, they must be allowed by name.
var interpreters = []string{".", "alias", "ash", "awk", "bash", "bind", "compgen", "complete", "dash", "enable", "eval",
	"fc", "gawk", "hash", "ksh", "let", "lua", "mapfile", "mawk", "node", "perl", "php", "python", "python2", "python3",
	"readarray", "ruby", "sh", "source", "trap", "zsh"}

// folders are where a program may be named by its path; elsewhere anything may bear its name.
var folders = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}

// noProgram is what the shell takes for an option or an assignment where the tree may show a program: time -- rm,
// coproc a=b rm.
var noProgram = regexp.MustCompile(`^-|^[A-Za-z_][A-Za-z_0-9]*\+?=`)

// listed tells whether it matters which programs are run.
func (p policy) listed() bool { return len(p.deny) > 0 || !slices.Contains(p.allow, "*") }

// free tells whether nothing is forbidden, so that it does not matter how a line is read.
func (p policy) free() bool {
	return !p.listed() && !slices.ContainsFunc(operators(),
		func(o string) bool { return !slices.Contains(p.operators, o) })
}

func parse(line string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(language), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
}

// check refuses a command line that policy forbids. It names the first thing that is wrong, and where.
func (p policy) check(line string) error {
	file, err := parse(line)
	if err != nil {
		return reeve.Errorf(reeve.Validation, "the command cannot be read: %v", err).
			Hintf("check its quotes and brackets")
	}
	j := &judge{policy: p, line: line, numbers: numbers(file)}
	if !p.free() && strings.Contains(line, "\r") {
		j.refuse(file, "end lines with a newline alone", "it holds a carriage return, which the shell takes for text")
	}
	if len(file.Stmts) == 0 {
		return reeve.Errorf(reeve.Validation, "there is no command in this line")
	}
	if len(file.Stmts) > 1 {
		j.operator(file.Stmts[1], lists)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n != nil && j.err == nil {
			j.node(n)
		}
		return j.err == nil
	})
	return j.err
}

// judge goes over one syntax tree.
type judge struct {
	policy
	line    string
	numbers map[string]bool // see numbers
	err     error
}

func (j *judge) refuse(n syntax.Node, hint, format string, args ...any) {
	if j.err == nil {
		at := n.Pos()
		j.err = reeve.Errorf(reeve.Denied, "line %d, column %d: "+format,
			append([]any{at.Line(), at.Col()}, args...)...).Hintf("%s", hint)
	}
}

func (j *judge) operator(n syntax.Node, name string) {
	if !slices.Contains(j.operators, name) {
		j.refuse(n, "make a call for each command, or ask for the operator to be switched on in the agent's settings "+
			"for shell_exec", "the operator %q is switched off", name)
	}
}

func (j *judge) node(n syntax.Node) {
	j.misread(n)
	j.evaluated(n)
	switch n := n.(type) {
	case *syntax.Stmt:
		j.statement(n)
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			j.operator(n, pipes)
		} else {
			j.operator(n, lists)
		}
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp:
		j.operator(n, substitution)
	case *syntax.Lit:
		j.text(n, n.Value)
	case *syntax.SglQuoted:
		j.text(n, n.Value)
	case *syntax.CallExpr:
		j.call(n)
	case *syntax.DeclClause:
		j.operator(n, assignment)
		j.declaration(n)
		if n.Variant != nil {
			j.program(n, n.Variant.Value, nil)
		}
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl, *syntax.Block,
		*syntax.Subshell, *syntax.TestClause,
		*syntax.ArithmCmd, *syntax.LetClause, *syntax.TimeClause, *syntax.CoprocClause, *syntax.TestDecl:
		j.operator(n, control)
	}
}

// hidden is a command in the index of a variable, which is no command to the syntax: some of the shell's own programs
// (printf -v, test -v, read, unset), and arithmetic, run it all the same.
var hidden = regexp.MustCompile("(?s)\\[.*(\\$[({]|`)")

// text judges what stands in a line as it is.
func (j *judge) text(n syntax.Node, value string) {
	if hidden.MatchString(value) && (j.listed() || !slices.Contains(j.operators, substitution)) {
		j.refuse(n, "write it without a command in square brackets", "it holds a command in the index of a variable")
	}
}

func (j *judge) statement(n *syntax.Stmt) {
	if n.Background || n.Coprocess || n.Disown {
		j.operator(n, background)
	}
	if n.Negated || n.Semicolon.IsValid() && !n.Background && !n.Coprocess && !n.Disown {
		j.operator(n, lists)
	}
	if len(n.Redirs) > 0 {
		j.operator(n, redirections)
	}
}

func (j *judge) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		j.operator(n, assignment)
		j.assign(n, a, false)
	}
	if len(n.Args) == 0 || !j.listed() {
		return
	}
	word, ok := literal(n.Args[0])
	if !ok {
		j.refuse(n, "name the program itself", "which program this runs cannot be told beforehand")
		return
	}
	j.program(n, word, n.Args[1:])
}

// program judges one command by its name, and by what it runs itself.
func (j *judge) program(n syntax.Node, word string, args []*syntax.Word) {
	name := path.Base(word)
	known := name == word || slices.Contains(folders, path.Dir(word))
	const hint = "the agent's settings for shell_exec list what it may run"
	switch {
	case !j.listed():
		return
	case noProgram.MatchString(word):
		j.refuse(n, "name the program itself", "which program this runs cannot be told beforehand")
	case slices.Contains(j.deny, name) || slices.Contains(j.deny, word):
		j.refuse(n, hint, "the command %q is denied", word)
	case slices.Contains(j.allow, word):
	case known && slices.Contains(j.allow, name):
	case slices.Contains(runners, name) || slices.Contains(interpreters, name):
		j.refuse(n, hint, "the command %q runs other commands, and is not allowed by name", word)
	case known && slices.Contains(j.allow, "*"):
	default:
		j.refuse(n, hint, "the command %q is not allowed", word)
	}
	if slices.Contains(takers, name) {
		j.takes(name, args)
	}
	if j.err != nil || !slices.Contains(runners, name) {
		return
	}
	for i, a := range args {
		text, ok := literal(a)
		if !ok {
			j.refuse(a, "write the arguments out", "what %q runs cannot be told beforehand", word)
		} else if base := path.Base(text); slices.Contains(j.deny, base) || slices.Contains(j.deny, text) {
			j.refuse(a, hint, "the command %q is denied", text)
		} else if slices.Contains(takers, text) {
			j.takes(text, args[i+1:])
		} else if set, _, ok := strings.Cut(text, "="); ok {
			j.set(a, set)
		}
	}
}

// literal is what a word says, if that can be told without running anything.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, "*?[{~") && w.Lit() != "[" { // the program of that name
				return "", false
			}
			b.WriteString(unescape(part.Value))
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.Contains(lit.Value, `\`) {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// spelled is what a word says, or nothing if that cannot be told.
func spelled(w *syntax.Word) string {
	text, _ := literal(w)
	return text
}

// unescape takes away the backslashes of an unquoted word.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
