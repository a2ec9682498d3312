package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The syntax tree comes from a Go parser, and in a few places bash parses a line differently. A policy with any
// restriction refuses such syntax, because the check would not see what bash runs.

// descriptorWord matches a word that bash, unlike the parser, reads as a redirection into an element of an array:
// {a[i]}>f.
var descriptorWord = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z_0-9]*\[`)

// checkAmbiguousSyntax refuses syntax that bash parses differently from the syntax tree.
func (j *lineChecker) checkAmbiguousSyntax(n syntax.Node) {
	if j.isUnrestricted() {
		return
	}
	switch n := n.(type) {
	case *syntax.Comment:
		if before := j.line[:n.Pos().Offset()]; before != "" &&
			(!strings.ContainsAny(before[len(before)-1:], " \t\n;") || strings.HasSuffix(before, "\\\n")) {
			j.refuse(n, "write a space before the #", "the shell may read this as part of the previous word")
		}
		if strings.HasSuffix(n.Text, "\n") { // the parser joins the next line to this one
			j.refuse(n, "leave out the backslash",
				"a comment ends with a backslash, but the shell runs the next line separately")
		}
	case *syntax.CoprocClause: // in bash only a compound command has a name
		if n.Name != nil && !isCompound(n.Stmt.Cmd) {
			j.refuse(n, "put the command into { }", "the shell reads this name as the program")
		}
	case *syntax.Redirect:
		if n.Op != syntax.DplOut && n.Op != syntax.DplIn {
			return
		}
		text, ok := literalText(n.Word)
		// bash expands a word again that is not a number
		if (!ok || strings.ContainsAny(text, "$`()<>")) && !j.isNumber(n.Word) {
			j.refuse(n, "write the number out, or > and the file",
				"the value of this word cannot be determined in advance")
		}
		if strings.HasPrefix(text, "-") && text != "-" { // >&-rm
			j.refuse(n, "write a space after the -", "the shell reads the text after the - as a separate word")
		}
	// In double quotes and here-documents, bash reads a single quote inside an expansion as text and expands what it
	// encloses. The parser does not.
	case *syntax.ParamExp:
		for _, w := range expansionWords(n) {
			j.checkQuotes(n, w)
		}
	case *syntax.ExtGlob: // the parser reads text up to a bracket, which may be quoted
		if strings.ContainsAny(n.Pattern.Value, "'\"\\$`<>") {
			j.refuse(n, "put it into a variable first", "a pattern in brackets contains quotes or a command")
		}
	case *syntax.Word:
		if len(n.Parts) == 0 {
			return
		}
		if lit, ok := n.Parts[0].(*syntax.Lit); ok &&
			descriptorWord.MatchString(strings.ReplaceAll(lit.Value, "\\\n", "")) {
			j.refuse(n, "put quotes around it",
				"the shell may read this as a file descriptor in an array element and evaluate the index")
		}
	case *syntax.CallExpr: // without extglob, bash reads a negated group
		if len(n.Args) == 0 || len(n.Args[0].Parts) == 0 {
			return
		}
		if _, ok := n.Args[0].Parts[0].(*syntax.ExtGlob); ok {
			j.refuse(n, "write a space after the !", "the shell may run the text in these brackets")
		}
	}
}

// expansionWords returns the words that an expansion may produce instead of the variable's value.
func expansionWords(n *syntax.ParamExp) (list []*syntax.Word) {
	if n.Exp != nil {
		list = append(list, n.Exp.Word)
	}
	if n.Repl != nil {
		list = append(list, n.Repl.Orig, n.Repl.With)
	}
	return list
}

// checkQuotes refuses single quotes around text that has a meaning without them. It skips command substitutions, where
// bash reads quotes normally.
func (j *lineChecker) checkQuotes(at syntax.Node, w *syntax.Word) {
	if w == nil {
		return
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.SglQuoted:
			if strings.ContainsAny(n.Value, "$`\\\"}") {
				j.refuse(at, "put the text into a variable first", "the shell may run the text in these quotes")
			}
		}
		return true
	})
}

// isCompound reports whether a command is more than a program with arguments.
func isCompound(c syntax.Command) bool {
	switch c.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause,
		*syntax.TestClause, *syntax.ArithmCmd:
		return true
	}
	return false
}
