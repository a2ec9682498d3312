package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"reeve"
)

// policy is what an agent's command lines may contain.
type policy struct {
	allow, deny []string // programs; "*" in allow means all
	operators   []string // see operators
}

// The operators that settings can allow.
const (
	pipeOp         = "pipe"         // a | b
	listOp         = "list"         // a; b, a && b, a || b, ! a, and more than one line
	redirectOp     = "redirect"     // a > b, a < b, and here-documents
	substitutionOp = "substitution" // $(a), `a`, <(a), ${a}, $((a))
	backgroundOp   = "background"   // a &
	controlOp      = "control"      // if, for, while, case, functions, groups, tests
	assignmentOp   = "assignment"   // A=b
)

func operators() []string {
	return []string{assignmentOp, backgroundOp, controlOp, listOp, pipeOp, redirectOp, substitutionOp}
}

// runners run the programs that their arguments name. A policy that restricts programs must allow them by name, and
// their arguments are checked too.
var runners = []string{"builtin", "busybox", "chroot", "command", "coproc", "doas", "env", "exec", "find", "ionice",
	"jobs", "nice", "nohup", "parallel", "setsid", "stdbuf", "sudo",
	"time", "timeout", "toybox", "unshare", "watch", "xargs"}

// interpreters run text that the line does not show. A policy that restricts programs must allow them by name.
var interpreters = []string{".", "alias", "ash", "awk", "bash", "bind", "compgen", "complete", "dash", "enable", "eval",
	"fc", "gawk", "hash", "ksh", "let", "lua", "mapfile", "mawk", "node", "perl", "php", "python", "python2", "python3",
	"readarray", "ruby", "sh", "source", "trap", "zsh"}

// systemFolders are the folders in which a program may be named by its path. Elsewhere a file may have any name.
var systemFolders = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}

// notProgram matches words that bash reads as an option or an assignment where the tree may show a program: time -- rm,
// coproc a=b rm.
var notProgram = regexp.MustCompile(`^-|^[A-Za-z_][A-Za-z_0-9]*\+?=`)

// restrictsPrograms reports whether the policy allows some programs only, or denies any.
func (p policy) restrictsPrograms() bool { return len(p.deny) > 0 || !slices.Contains(p.allow, "*") }

// isUnrestricted reports whether the policy forbids nothing, so that differences in parsing do not matter.
func (p policy) isUnrestricted() bool {
	return !p.restrictsPrograms() && !slices.ContainsFunc(operators(),
		func(o string) bool { return !slices.Contains(p.operators, o) })
}

func parse(line string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(bashSyntax), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
}

// check refuses a command line that the policy forbids. The error names the first violation and its position.
func (p policy) check(line string) error {
	file, err := parse(line)
	if err != nil {
		return reeve.Errorf(reeve.Validation, "command cannot be parsed: %v", err).
			Hintf("check the quotes and brackets")
	}
	j := &lineChecker{policy: p, line: line, numeric: numericVariables(file)}
	if !p.isUnrestricted() && strings.Contains(line, "\r") {
		j.refuse(file, "end lines with a newline alone",
			"the command contains a carriage return, which the shell reads as text")
	}
	if len(file.Stmts) == 0 {
		return reeve.Errorf(reeve.Validation, "command is empty")
	}
	if len(file.Stmts) > 1 {
		j.checkOperator(file.Stmts[1], listOp)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n != nil && j.err == nil {
			j.checkNode(n)
		}
		return j.err == nil
	})
	return j.err
}

// lineChecker checks one syntax tree against a policy.
type lineChecker struct {
	policy
	line    string
	numeric map[string]bool // see numericVariables
	err     error
}

func (j *lineChecker) refuse(n syntax.Node, hint, format string, args ...any) {
	if j.err == nil {
		at := n.Pos()
		j.err = reeve.Errorf(reeve.Denied, "line %d, column %d: "+format,
			append([]any{at.Line(), at.Col()}, args...)...).Hintf("%s", hint)
	}
}

func (j *lineChecker) checkOperator(n syntax.Node, name string) {
	if !slices.Contains(j.operators, name) {
		j.refuse(n, "make one call per command, or ask for the operator to be enabled in the agent's settings for "+
			"shell_exec", "the operator %q is disabled", name)
	}
}

func (j *lineChecker) checkNode(n syntax.Node) {
	j.checkAmbiguousSyntax(n)
	j.checkEvaluation(n)
	switch n := n.(type) {
	case *syntax.Stmt:
		j.checkStatement(n)
	case *syntax.BinaryCmd:
		if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
			j.checkOperator(n, pipeOp)
		} else {
			j.checkOperator(n, listOp)
		}
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ParamExp, *syntax.ArithmExp:
		j.checkOperator(n, substitutionOp)
	case *syntax.Lit:
		j.checkText(n, n.Value)
	case *syntax.SglQuoted:
		j.checkText(n, n.Value)
	case *syntax.CallExpr:
		j.checkCall(n)
	case *syntax.DeclClause:
		j.checkOperator(n, assignmentOp)
		j.checkDeclaration(n)
		if n.Variant != nil {
			j.checkProgram(n, n.Variant.Value, nil)
		}
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl, *syntax.Block,
		*syntax.Subshell, *syntax.TestClause,
		*syntax.ArithmCmd, *syntax.LetClause, *syntax.TimeClause, *syntax.CoprocClause, *syntax.TestDecl:
		j.checkOperator(n, controlOp)
	}
}

// hiddenCommand matches a command in the index of a variable. The syntax tree does not show it as a command, but
// arithmetic and some builtins (printf -v, test -v, read, unset) run it.
var hiddenCommand = regexp.MustCompile("(?s)\\[.*(\\$[({]|`)")

// checkText refuses literal text with a command in an index.
func (j *lineChecker) checkText(n syntax.Node, value string) {
	if hiddenCommand.MatchString(value) && (j.restrictsPrograms() || !slices.Contains(j.operators, substitutionOp)) {
		j.refuse(n, "write it without a command in square brackets",
			"the text has a command in the index of a variable")
	}
}

func (j *lineChecker) checkStatement(n *syntax.Stmt) {
	if n.Background || n.Coprocess || n.Disown {
		j.checkOperator(n, backgroundOp)
	}
	if n.Negated || n.Semicolon.IsValid() && !n.Background && !n.Coprocess && !n.Disown {
		j.checkOperator(n, listOp)
	}
	if len(n.Redirs) > 0 {
		j.checkOperator(n, redirectOp)
	}
}

func (j *lineChecker) checkCall(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		j.checkOperator(n, assignmentOp)
		j.checkAssign(n, a, false)
	}
	if len(n.Args) == 0 || !j.restrictsPrograms() {
		return
	}
	word, ok := literalText(n.Args[0])
	if !ok {
		j.refuse(n, "name the program itself", "the program that this runs cannot be determined in advance")
		return
	}
	j.checkProgram(n, word, n.Args[1:])
}

// checkProgram checks one command by its name and by the programs that it runs itself.
func (j *lineChecker) checkProgram(n syntax.Node, word string, args []*syntax.Word) {
	name := path.Base(word)
	known := name == word || slices.Contains(systemFolders, path.Dir(word))
	const hint = "the agent's settings for shell_exec list the allowed programs"
	switch {
	case !j.restrictsPrograms():
		return
	case notProgram.MatchString(word):
		j.refuse(n, "name the program itself", "the program that this runs cannot be determined in advance")
	case slices.Contains(j.deny, name) || slices.Contains(j.deny, word):
		j.refuse(n, hint, "the command %q is denied", word)
	case slices.Contains(j.allow, word):
	case known && slices.Contains(j.allow, name):
	case slices.Contains(runners, name) || slices.Contains(interpreters, name):
		j.refuse(n, hint, "the command %q runs other commands and is not allowed by name", word)
	case known && slices.Contains(j.allow, "*"):
	default:
		j.refuse(n, hint, "the command %q is not allowed", word)
	}
	if slices.Contains(variableBuiltins, name) {
		j.checkBuiltin(name, args)
	}
	if j.err != nil || !slices.Contains(runners, name) {
		return
	}
	for i, a := range args {
		text, ok := literalText(a)
		if !ok {
			j.refuse(a, "write the arguments out", "the programs that %q runs cannot be determined in advance", word)
		} else if base := path.Base(text); slices.Contains(j.deny, base) || slices.Contains(j.deny, text) {
			j.refuse(a, hint, "the command %q is denied", text)
		} else if slices.Contains(variableBuiltins, text) {
			j.checkBuiltin(text, args[i+1:])
		} else if set, _, ok := strings.Cut(text, "="); ok {
			j.checkSet(a, set)
		}
	}
}

// literalText returns the text of a word, if it is known without running anything.
func literalText(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(part.Value, "*?[{~") && w.Lit() != "[" { // the program [
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

// textOrEmpty returns the text of a word, or "" if it is not known in advance.
func textOrEmpty(w *syntax.Word) string {
	text, _ := literalText(w)
	return text
}

// unescape removes the backslashes of an unquoted word.
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
