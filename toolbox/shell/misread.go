package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The tree is not the shell's own, and in a few places the shell reads a line otherwise. What stands there is refused
// unless nothing is forbidden: nobody has judged what the shell makes of it.

// descriptor begins a word by which the shell, but not the tree, has a redirection set an element of a variable:
// {a[i]}>f.
var descriptor = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z_0-9]*\[`)

// misread refuses what the shell reads otherwise than the tree shows it.
func (j *judge) misread(n syntax.Node) {
	if j.free() {
		return
	}
	switch n := n.(type) {
	case *syntax.Comment:
		if before := j.line[:n.Pos().Offset()]; before != "" &&
			(!strings.ContainsAny(before[len(before)-1:], " \t\n;") || strings.HasSuffix(before, "\\\n")) {
			j.refuse(n, "write a space before the #", "the shell may take this for a part of the word before it")
		}
		if strings.HasSuffix(n.Text, "\n") { // to the tree the next line goes on with this one
			j.refuse(n, "leave out the backslash",
				"a comment ends with a backslash, and the shell runs the next line by itself")
		}
	case *syntax.CoprocClause: // only what is no simple command has a name
		if n.Name != nil && !compound(n.Stmt.Cmd) {
			j.refuse(n, "put it into { }", "the shell takes this name for the program")
		}
	case *syntax.Redirect:
		if n.Op != syntax.DplOut && n.Op != syntax.DplIn {
			return
		}
		text, ok := literal(n.Word)
		// once it knows that this is no number, the shell reads it again
		if (!ok || strings.ContainsAny(text, "$`()<>")) && !j.number(n.Word) {
			j.refuse(n, "write the number out, or > and the file",
				"what this is worked out to cannot be told beforehand")
		}
		if strings.HasPrefix(text, "-") && text != "-" { // >&-rm
			j.refuse(n, "write a space after the -", "the shell takes what follows the - for a word of its own")
		}
	// between double quotes, and in a here-document, a single quote in it is text to the shell, and what it encloses
	// for the tree is not
	case *syntax.ParamExp:
		for _, w := range words(n) {
			j.quotes(n, w)
		}
	case *syntax.ExtGlob: // to the tree it is text up to a bracket, which may be quoted
		if strings.ContainsAny(n.Pattern.Value, "'\"\\$`<>") {
			j.refuse(n, "put it into a variable first", "a pattern in brackets holds quotes, or what the shell runs")
		}
	case *syntax.Word:
		if len(n.Parts) == 0 {
			return
		}
		if lit, ok := n.Parts[0].(*syntax.Lit); ok &&
			descriptor.MatchString(strings.ReplaceAll(lit.Value, "\\\n", "")) {
			j.refuse(n, "put quotes around it",
				"the shell may take this for the number of an open file, in a variable whose index it works out")
		}
	case *syntax.CallExpr: // without the option extglob, this is a group that is negated
		if len(n.Args) == 0 || len(n.Args[0].Parts) == 0 {
			return
		}
		if _, ok := n.Args[0].Parts[0].(*syntax.ExtGlob); ok {
			j.refuse(n, "write a space after the !", "the shell may run what is in these brackets")
		}
	}
}

// words are the texts that an expansion may give in place of its variable's.
func words(n *syntax.ParamExp) (list []*syntax.Word) {
	if n.Exp != nil {
		list = append(list, n.Exp.Word)
	}
	if n.Repl != nil {
		list = append(list, n.Repl.Orig, n.Repl.With)
	}
	return list
}

// quotes refuses single quotes around anything that would mean something without them. In a command within, quotes are
// the shell's again.
func (j *judge) quotes(at syntax.Node, w *syntax.Word) {
	if w == nil {
		return
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.SglQuoted:
			if strings.ContainsAny(n.Value, "$`\\\"}") {
				j.refuse(at, "put the text into a variable first", "the shell may run what is in these quotes")
			}
		}
		return true
	})
}

// compound tells whether a command is more than a program and its arguments.
func compound(c syntax.Command) bool {
	switch c.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
		*syntax.TestClause, *syntax.ArithmCmd:
		return true
	}
	return false
}
