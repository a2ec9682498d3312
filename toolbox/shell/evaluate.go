package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash runs more than the commands in its syntax tree. A number or a variable name can have an index, and an index can
// contain a command: if x is 'a[$(rm x)]', then $((x)), test -v "$x" and ${!x} all run rm. A policy that restricts
// programs therefore accepts only values in such places that are known in advance.

// protectedVariables change which program a name means, are executed, or evaluate their value as arithmetic.
var protectedVariables = []string{"PATH", "IFS", "ENV", "SHELLOPTS", "PS4", "CDPATH", "HISTCMD", "OPTIND", "RANDOM",
	"SRANDOM",
	"__reeve_command"}

// isProtected reports whether a line may not set the variable.
func isProtected(name string) bool {
	return slices.Contains(protectedVariables, name) || strings.HasPrefix(name, "BASH") ||
		strings.HasPrefix(name, "LD_")
}

// variableBuiltins are the builtins that set or look up the variables that their arguments name.
var variableBuiltins = []string{"[", "declare", "export", "getopts", "local", "printf", "read", "readonly", "set",
	"shopt",
	"test", "typeset", "unset", "wait"}

// shellVariables are variables that bash itself sets to text.
var shellVariables = []string{"_", "COPROC", "DIRSTACK", "FUNCNAME", "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY"}

var (
	numberPattern = regexp.MustCompile(`^-?[0-9]*$|^-?0[xX][0-9A-Fa-f]+$|^[0-9]+#[0-9A-Za-z]+$`)
	rangePattern  = regexp.MustCompile(`^\{-?[0-9]+\.\.-?[0-9]+(\.\.-?[0-9]+)?\}$`)
	targetPattern = regexp.MustCompile(`^([A-Za-z_][A-Za-z_0-9]*)(?:$|[\[=+])`)
	plainIndex    = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*\[(?:[0-9]+|[@*])\](?:=|$)`)
	// attributes that evaluate values or refer to another variable
	evaluatingAttribute = regexp.MustCompile(`^-[A-Za-z]*[in]`)
	// options that read arguments as assignments or rewrite lines
	rewritingOption = regexp.MustCompile(`^-[A-Za-z]*[kH]|^(?:keyword|histexpand)$`)
)

const numberHint = "assign a number in the same line (i=0), or use expr, seq or [ ], which accept numbers only"

// numericVariables returns the variables that a line sets, with true for those that it only ever sets to numbers.
func numericVariables(line syntax.Node) map[string]bool {
	found, empty := map[string]bool{}, &lineChecker{}
	record := func(name string, isNumber bool) {
		if name == "" {
			return
		}
		before, known := found[name]
		found[name] = isNumber && (before || !known) && !isProtected(name)
	}
	for _, name := range shellVariables {
		record(name, false)
	}
	syntax.Walk(line, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				record(n.Name.Value, !n.Append && n.Index == nil && n.Array == nil &&
					(n.Value == nil || empty.isNumber(n.Value)))
			} else if n.Value != nil {
				for _, name := range targetNames(textOrEmpty(n.Value)) {
					record(name, false)
				}
			}
		case *syntax.WordIter:
			record(n.Name.Value, len(n.Items) > 0 &&
				!slices.ContainsFunc(n.Items, func(w *syntax.Word) bool {
					return !rangePattern.MatchString(w.Lit()) && !empty.isNumber(w)
				}))
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && n.Op == syntax.Assgn {
				record(w.Lit(), true)
			}
		case *syntax.ParamExp:
			if assignsVariable(n) {
				record(n.Param.Value, false)
			}
		case *syntax.Redirect:
			if n.N != nil {
				record(strings.Trim(n.N.Value, "{}"), false)
			}
		case *syntax.CoprocClause:
			if n.Name != nil {
				record(n.Name.Lit(), false)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 || !slices.ContainsFunc([][]string{variableBuiltins, runners, interpreters},
				func(list []string) bool { return slices.Contains(list, path.Base(textOrEmpty(n.Args[0]))) }) {
				break
			}
			for _, a := range n.Args[1:] {
				for _, name := range targetNames(textOrEmpty(a)) {
					record(name, false)
				}
			}
		}
		return true
	})
	return found
}

// targetNames returns the variables that an argument may name: the whole argument, or the text after an option as in
// read -aname.
func targetNames(text string) (names []string) {
	for i := range text {
		if m := targetPattern.FindStringSubmatch(text[i:]); m != nil {
			names = append(names, m[1])
		}
		if text[0] != '-' {
			break
		}
	}
	return names
}

// assignsVariable reports whether an expansion assigns its variable, as ${a:=b} does.
func assignsVariable(n *syntax.ParamExp) bool {
	return n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
}

// isNumber reports whether a word is a number in every case.
func (j *lineChecker) isNumber(w *syntax.Word) bool {
	return j.numeric[w.Lit()] || j.areNumeric(w.Parts)
}

func (j *lineChecker) areNumeric(parts []syntax.WordPart) bool {
	return !slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		switch part := part.(type) {
		case *syntax.Lit:
			return !numberPattern.MatchString(part.Value)
		case *syntax.DblQuoted:
			return part.Dollar || !j.areNumeric(part.Parts)
		case *syntax.ArithmExp:
			return false // checked separately
		case *syntax.ParamExp:
			if part.Param == nil || part.Excl || part.Slice != nil || part.Repl != nil || part.Exp != nil {
				return true
			}
			return !part.Length && (part.Index != nil || !j.numeric[part.Param.Value] &&
				!strings.Contains("#?$!", part.Param.Value))
		}
		return true
	})
}

// checkEvaluation checks the places where bash evaluates text outside of commands.
func (j *lineChecker) checkEvaluation(n syntax.Node) {
	if !j.restrictsPrograms() {
		return
	}
	switch n := n.(type) {
	case *syntax.ArithmExp:
		j.checkArithmetic(n.X)
	case *syntax.ArithmCmd:
		j.checkArithmetic(n.X)
	case *syntax.LetClause:
		j.checkArithmetic(n.Exprs...)
	case *syntax.CStyleLoop:
		j.checkArithmetic(n.Init, n.Cond, n.Post)
	case *syntax.BinaryTest:
		x, _ := n.X.(*syntax.Word)
		y, _ := n.Y.(*syntax.Word)
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && x != nil && y != nil {
			j.checkArithmetic(x, y)
		}
	case *syntax.UnaryTest:
		if w, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) {
			j.checkVariableName(w)
		}
	case *syntax.ParamExp:
		j.checkExpansion(n)
	case *syntax.DblQuoted:
		if n.Dollar {
			j.refuse(n, `write "…" without the $`, "the translation of this text cannot be determined in advance")
		}
	case *syntax.WordIter:
		j.checkSet(n, n.Name.Value)
	case *syntax.CoprocClause:
		if n.Name != nil {
			j.checkVariableName(n.Name)
		}
	case *syntax.Redirect:
		if n.N != nil {
			name := strings.Trim(n.N.Value, "{}")
			if strings.Contains(name, "[") {
				j.refuse(n, "name a variable without an index",
					"the value of this index cannot be determined in advance")
			}
			j.checkSet(n, name)
		}
	case *syntax.FuncDecl:
		if n.Name == nil {
			j.refuse(n, "give the function one name", "a function has no name or several names")
			return
		}
		// otherwise a forbidden name could run where the function is not defined
		j.checkProgram(n, n.Name.Value, nil)
	}
}

// checkSet refuses to set a variable that decides which programs run.
func (j *lineChecker) checkSet(n syntax.Node, name string) {
	if j.restrictsPrograms() && isProtected(name) {
		j.refuse(n, "call programs by their names", "the variable %s decides which programs run", name)
	}
}

// checkArithmetic accepts numbers and variables that hold only numbers.
func (j *lineChecker) checkArithmetic(list ...syntax.ArithmExpr) {
	for _, x := range list {
		switch x := x.(type) {
		case *syntax.BinaryArithm:
			j.checkArithmetic(x.X, x.Y)
		case *syntax.UnaryArithm:
			j.checkArithmetic(x.X)
		case *syntax.ParenArithm:
			j.checkArithmetic(x.X)
		case *syntax.Word:
			if !j.isNumber(x) {
				j.refuse(x, numberHint, "the value of this word cannot be determined in advance, and bash runs "+
					"commands in text that is used as a number")
			}
		}
	}
}

// checkIndex checks the index of a variable.
func (j *lineChecker) checkIndex(x syntax.ArithmExpr) {
	if !isAllIndex(x) {
		j.checkArithmetic(x)
	}
}

// isAllIndex reports whether an index means all elements.
func isAllIndex(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// checkExpansion checks the effects of ${} besides its value.
func (j *lineChecker) checkExpansion(n *syntax.ParamExp) {
	j.checkIndex(n.Index)
	if n.Slice != nil {
		j.checkArithmetic(n.Slice.Offset, n.Slice.Length)
	}
	if assignsVariable(n) {
		j.checkSet(n, n.Param.Value)
	}
	const hint = "name the variable itself"
	switch {
	case n.Excl && n.Names == 0 && (!isAllIndex(n.Index) || n.Exp != nil || n.Slice != nil || n.Repl != nil):
		j.refuse(n, hint, "the variable that this expands cannot be determined in advance")
	case n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word.Lit() == "P":
		j.refuse(n, hint, "this expansion runs commands that it finds in text")
	}
}

// checkAssign checks one assignment. In an associative array (keyed), the indices are plain words.
func (j *lineChecker) checkAssign(n syntax.Node, a *syntax.Assign, keyed bool) {
	if !j.restrictsPrograms() {
		return
	}
	if a.Name == nil {
		j.checkVariableName(a.Value)
		return
	}
	j.checkSet(n, a.Name.Value)
	j.checkIndex(a.Index)
	if a.Array != nil && !keyed {
		for _, e := range a.Array.Elems {
			j.checkIndex(e.Index)
		}
	}
}

// checkDeclaration checks declare and similar builtins.
func (j *lineChecker) checkDeclaration(n *syntax.DeclClause) {
	keyed := false
	for _, a := range n.Args {
		if a.Name == nil {
			text := textOrEmpty(a.Value)
			keyed = keyed || strings.HasPrefix(text, "-") && strings.Contains(text, "A")
			j.checkAttribute(a, n.Variant.Value, text)
		}
		j.checkAssign(n, a, keyed)
	}
}

// checkAttribute checks an option of declare and similar builtins.
func (j *lineChecker) checkAttribute(n syntax.Node, program, option string) {
	if j.restrictsPrograms() && evaluatingAttribute.MatchString(option) &&
		slices.Contains([]string{"declare", "local", "typeset"}, program) {
		j.refuse(n, "declare the variable without it", "the attribute %q evaluates text", option)
	}
}

// checkVariableName checks an argument that may name a variable. The name must be known in advance.
func (j *lineChecker) checkVariableName(w *syntax.Word) {
	text, ok := literalText(w)
	if !ok && !j.isNumber(w) {
		j.refuse(w, "write the names out",
			"this text names a variable, and which one is only known when the command runs")
	}
	for _, name := range targetNames(text) {
		j.checkSet(w, name)
	}
	if strings.Contains(text, "[") && !plainIndex.MatchString(text) {
		j.refuse(w, "write a number as the index", "the value of this index cannot be determined in advance")
	}
}

// checkBuiltin checks the arguments of a builtin that sets or looks up variables.
func (j *lineChecker) checkBuiltin(name string, args []*syntax.Word) {
	switch name {
	case "test", "[":
		j.checkTest(args)
	case "printf":
		j.checkPrintf(args)
	case "set", "shopt":
		for _, a := range args {
			text, ok := literalText(a)
			if text == "--" {
				return
			}
			if !ok || rewritingOption.MatchString(text) {
				j.refuse(a, "write the options out, and put other arguments after --",
					"the effect of this option cannot be determined in advance")
			}
		}
	default:
		for _, a := range args {
			j.checkAttribute(a, name, textOrEmpty(a))
			j.checkVariableName(a)
		}
	}
}

// checkTest checks test and [. The argument after -v is a variable name, and so is one after a word that may expand to
// -v.
func (j *lineChecker) checkTest(args []*syntax.Word) {
	name := false
	for _, a := range args {
		text, ok := literalText(a)
		ok = ok || j.isNumber(a)
		if !ok && !isSingleArgument(a) {
			j.refuse(a, "put quotes around it", "the number of words in this cannot be determined in advance")
		}
		if name {
			j.checkVariableName(a)
		}
		name = !ok || text == "-v" || text == "-R"
	}
}

// countFormat matches the printf format %n, which sets a variable to the number of bytes written so far.
var countFormat = regexp.MustCompile(`%[-+ #'0-9.*hjlLqtz]*n`)

// checkPrintf checks printf, which sets a variable with -v and with the format %n.
func (j *lineChecker) checkPrintf(args []*syntax.Word) {
	for len(args) > 0 {
		text, ok := literalText(args[0])
		switch {
		case !ok && !startsWithText(args[0]):
			j.refuse(args[0], `write the format out: printf '%s\n' "$a"`,
				"whether this sets a variable cannot be determined in advance")
			return
		case text == "-v" && len(args) > 1:
			j.checkVariableName(args[1])
			args = args[2:]
		case strings.HasPrefix(text, "-v"):
			j.checkVariableName(args[0])
			args = args[1:]
		case text == "--" && len(args) > 1:
			args = args[1:]
			if text, ok = literalText(args[0]); !ok && !isSingleArgument(args[0]) {
				j.refuse(args[0], "put quotes around it", "the number of words in this cannot be determined in advance")
			}
			fallthrough
		default:
			if !ok || countFormat.MatchString(strings.ReplaceAll(text, "%%", "")) {
				for _, a := range args[1:] {
					j.checkVariableName(a)
				}
			}
			return
		}
	}
}

// startsWithText reports whether a word begins with text, so that it cannot be an option.
func startsWithText(w *syntax.Word) bool {
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) > 0 {
		part = q.Parts[0]
	}
	lit, ok := part.(*syntax.Lit)
	return ok && isSingleArgument(w) && lit.Value != "" && !strings.ContainsAny(lit.Value[:1], `-\~`)
}

// isSingleArgument reports whether a word expands to exactly one argument, whatever its variables contain.
func isSingleArgument(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		switch part := part.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(part.Value, "*?[{")
		case *syntax.SglQuoted:
			return false
		case *syntax.DblQuoted:
			return slices.ContainsFunc(part.Parts, func(inner syntax.WordPart) bool {
				p, ok := inner.(*syntax.ParamExp)
				return ok && (p.Param == nil || p.Param.Value == "@" || p.Names != 0 || isAllIndex(p.Index))
			})
		}
		return true
	})
}
