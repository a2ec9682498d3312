package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The shell runs more than the commands that its syntax shows. What it takes for a number or for the name of a variable
// may have an index, and an index may hold a command: whoever puts 'a[' and '$(rm x)]' together has it run by $((x)),
// by test -v "$x", by ${!x}. So where programs are listed, such places take what can be told beforehand.

// variables change which program a name means, are run, or have what they are set to worked out as a number.
var variables = []string{"PATH", "IFS", "ENV", "SHELLOPTS", "PS4", "CDPATH", "HISTCMD", "OPTIND", "RANDOM", "SRANDOM",
	"__reeve_command"}

// decides tells whether a variable may not be set.
func decides(name string) bool {
	return slices.Contains(variables, name) || strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "LD_")
}

// takers are programs of the shell's own that set what their arguments name, or look it up.
var takers = []string{"[", "declare", "export", "getopts", "local", "printf", "read", "readonly", "set", "shopt",
	"test", "typeset", "unset", "wait"}

// implied are set by the shell itself, to text.
var implied = []string{"_", "COPROC", "DIRSTACK", "FUNCNAME", "MAPFILE", "OLDPWD", "OPTARG", "PWD", "REPLY"}

var (
	digits     = regexp.MustCompile(`^-?[0-9]*$|^-?0[xX][0-9A-Fa-f]+$|^[0-9]+#[0-9A-Za-z]+$`)
	span       = regexp.MustCompile(`^\{-?[0-9]+\.\.-?[0-9]+(\.\.-?[0-9]+)?\}$`)
	target     = regexp.MustCompile(`^([A-Za-z_][A-Za-z_0-9]*)(?:$|[\[=+])`)
	plainIndex = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*\[(?:[0-9]+|[@*])\](?:=|$)`)
	// attributes that have values worked out, or lead to another variable
	turned = regexp.MustCompile(`^-[A-Za-z]*[in]`)
	// options that make assignments of arguments, or lines of other lines
	rewritten = regexp.MustCompile(`^-[A-Za-z]*[kH]|^(?:keyword|histexpand)$`)
)

const numberHint = "give it a number in the same line (i=0), or use expr, seq and [ ], which take numbers only"

// numbers tells which variables a line sets, and whether only ever to numbers.
func numbers(line syntax.Node) map[string]bool {
	found, none := map[string]bool{}, &judge{}
	give := func(name string, number bool) {
		if name == "" {
			return
		}
		before, known := found[name]
		found[name] = number && (before || !known) && !decides(name)
	}
	for _, name := range implied {
		give(name, false)
	}
	syntax.Walk(line, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && !n.Naked {
				give(n.Name.Value, !n.Append && n.Index == nil && n.Array == nil &&
					(n.Value == nil || none.number(n.Value)))
			} else if n.Value != nil {
				for _, name := range targets(spelled(n.Value)) {
					give(name, false)
				}
			}
		case *syntax.WordIter:
			give(n.Name.Value, len(n.Items) > 0 &&
				!slices.ContainsFunc(n.Items, func(w *syntax.Word) bool {
					return !span.MatchString(w.Lit()) &&
						!none.number(w)
				}))
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && n.Op == syntax.Assgn {
				give(w.Lit(), true)
			}
		case *syntax.ParamExp:
			if sets(n) {
				give(n.Param.Value, false)
			}
		case *syntax.Redirect:
			if n.N != nil {
				give(strings.Trim(n.N.Value, "{}"), false)
			}
		case *syntax.CoprocClause:
			if n.Name != nil {
				give(n.Name.Lit(), false)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 || !slices.ContainsFunc([][]string{takers, runners, interpreters},
				func(list []string) bool { return slices.Contains(list, path.Base(spelled(n.Args[0]))) }) {
				break
			}
			for _, a := range n.Args[1:] {
				for _, name := range targets(spelled(a)) {
					give(name, false)
				}
			}
		}
		return true
	})
	return found
}

// targets gives the variables that an argument may name: itself, or what stands behind its option, as in read -aname.
func targets(text string) (names []string) {
	for i := range text {
		if m := target.FindStringSubmatch(text[i:]); m != nil {
			names = append(names, m[1])
		}
		if text[0] != '-' {
			break
		}
	}
	return names
}

// sets tells whether an expansion sets its variable: ${a:=b}.
func sets(n *syntax.ParamExp) bool {
	return n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
}

// number tells whether a word is a number whatever the line does.
func (j *judge) number(w *syntax.Word) bool {
	return j.numbers[w.Lit()] || j.figures(w.Parts)
}

func (j *judge) figures(parts []syntax.WordPart) bool {
	return !slices.ContainsFunc(parts, func(part syntax.WordPart) bool {
		switch part := part.(type) {
		case *syntax.Lit:
			return !digits.MatchString(part.Value)
		case *syntax.DblQuoted:
			return part.Dollar || !j.figures(part.Parts)
		case *syntax.ArithmExp:
			return false // it is judged by itself
		case *syntax.ParamExp:
			if part.Param == nil || part.Excl || part.Slice != nil || part.Repl != nil || part.Exp != nil {
				return true
			}
			return !part.Length && (part.Index != nil || !j.numbers[part.Param.Value] &&
				!strings.Contains("#?$!", part.Param.Value))
		}
		return true
	})
}

// evaluated judges what the shell works out where no command stands.
func (j *judge) evaluated(n syntax.Node) {
	if !j.listed() {
		return
	}
	switch n := n.(type) {
	case *syntax.ArithmExp:
		j.arithmetic(n.X)
	case *syntax.ArithmCmd:
		j.arithmetic(n.X)
	case *syntax.LetClause:
		j.arithmetic(n.Exprs...)
	case *syntax.CStyleLoop:
		j.arithmetic(n.Init, n.Cond, n.Post)
	case *syntax.BinaryTest:
		x, _ := n.X.(*syntax.Word)
		y, _ := n.Y.(*syntax.Word)
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr && x != nil && y != nil {
			j.arithmetic(x, y)
		}
	case *syntax.UnaryTest:
		if w, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar) {
			j.named(w)
		}
	case *syntax.ParamExp:
		j.expansion(n)
	case *syntax.DblQuoted:
		if n.Dollar {
			j.refuse(n, `write "…" without the $`, "what this text is translated to cannot be told beforehand")
		}
	case *syntax.WordIter:
		j.set(n, n.Name.Value)
	case *syntax.CoprocClause:
		if n.Name != nil {
			j.named(n.Name)
		}
	case *syntax.Redirect:
		if n.N != nil {
			name := strings.Trim(n.N.Value, "{}")
			if strings.Contains(name, "[") {
				j.refuse(n, "name a variable without an index",
					"what this index is worked out to cannot be told beforehand")
			}
			j.set(n, name)
		}
	case *syntax.FuncDecl:
		if n.Name == nil {
			j.refuse(n, "give it one name", "a function has no name, or more than one")
			return
		}
		// or a name that is not allowed could be run where it is not defined yet, or no more
		j.program(n, n.Name.Value, nil)
	}
}

// set refuses to set a variable that decides what is run.
func (j *judge) set(n syntax.Node, name string) {
	if j.listed() && decides(name) {
		j.refuse(n, "call programs by their names", "the variable %s decides which programs are run", name)
	}
}

// arithmetic takes numbers, and variables that hold nothing else.
func (j *judge) arithmetic(list ...syntax.ArithmExpr) {
	for _, x := range list {
		switch x := x.(type) {
		case *syntax.BinaryArithm:
			j.arithmetic(x.X, x.Y)
		case *syntax.UnaryArithm:
			j.arithmetic(x.X)
		case *syntax.ParenArithm:
			j.arithmetic(x.X)
		case *syntax.Word:
			if !j.number(x) {
				j.refuse(x, numberHint, "what this is worked out to cannot be told beforehand: arithmetic runs "+
					"commands that it finds in text")
			}
		}
	}
}

// index judges what stands in the brackets of a variable.
func (j *judge) index(x syntax.ArithmExpr) {
	if !all(x) {
		j.arithmetic(x)
	}
}

// all tells whether an index means all that there is.
func all(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// expansion judges what ${} does besides giving a value.
func (j *judge) expansion(n *syntax.ParamExp) {
	j.index(n.Index)
	if n.Slice != nil {
		j.arithmetic(n.Slice.Offset, n.Slice.Length)
	}
	if sets(n) {
		j.set(n, n.Param.Value)
	}
	const hint = "name the variable itself"
	switch {
	case n.Excl && n.Names == 0 && (!all(n.Index) || n.Exp != nil || n.Slice != nil || n.Repl != nil):
		j.refuse(n, hint, "which variable this gives cannot be told beforehand")
	case n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word.Lit() == "P":
		j.refuse(n, hint, "this runs commands that it finds in text")
	}
}

// assign judges one assignment. A keyed one has words for indices.
func (j *judge) assign(n syntax.Node, a *syntax.Assign, keyed bool) {
	if !j.listed() {
		return
	}
	if a.Name == nil {
		j.named(a.Value)
		return
	}
	j.set(n, a.Name.Value)
	j.index(a.Index)
	if a.Array != nil && !keyed {
		for _, e := range a.Array.Elems {
			j.index(e.Index)
		}
	}
}

// declaration judges declare and its kin.
func (j *judge) declaration(n *syntax.DeclClause) {
	keyed := false
	for _, a := range n.Args {
		if a.Name == nil {
			text := spelled(a.Value)
			keyed = keyed || strings.HasPrefix(text, "-") && strings.Contains(text, "A")
			j.attribute(a, n.Variant.Value, text)
		}
		j.assign(n, a, keyed)
	}
}

// attribute judges an option of declare and its kin.
func (j *judge) attribute(n syntax.Node, program, option string) {
	if j.listed() && turned.MatchString(option) && slices.Contains([]string{"declare", "local", "typeset"}, program) {
		j.refuse(n, "declare it without", "the attribute %q has text worked out", option)
	}
}

// named judges an argument that may name a variable. It must say which.
func (j *judge) named(w *syntax.Word) {
	text, ok := literal(w)
	if !ok && !j.number(w) {
		j.refuse(w, "write the names out", "which variable this is about cannot be told beforehand")
	}
	for _, name := range targets(text) {
		j.set(w, name)
	}
	if strings.Contains(text, "[") && !plainIndex.MatchString(text) {
		j.refuse(w, "write a number as the index", "what this index is worked out to cannot be told beforehand")
	}
}

// takes judges the arguments of a program that sets variables or looks them up.
func (j *judge) takes(name string, args []*syntax.Word) {
	switch name {
	case "test", "[":
		j.tested(args)
	case "printf":
		j.printed(args)
	case "set", "shopt":
		for _, a := range args {
			text, ok := literal(a)
			if text == "--" {
				return
			}
			if !ok || rewritten.MatchString(text) {
				j.refuse(a, "write the options out, and what else there is after --",
					"what this option has run cannot be told beforehand")
			}
		}
	default:
		for _, a := range args {
			j.attribute(a, name, spelled(a))
			j.named(a)
		}
	}
}

// tested judges test and [. What comes after -v, or after a word that may turn out to be that, is a name.
func (j *judge) tested(args []*syntax.Word) {
	name := false
	for _, a := range args {
		text, ok := literal(a)
		ok = ok || j.number(a)
		if !ok && !single(a) {
			j.refuse(a, "put quotes around it", "how many words this is cannot be told beforehand")
		}
		if name {
			j.named(a)
		}
		name = !ok || text == "-v" || text == "-R"
	}
}

// counts is a format of printf that sets a variable: to how much was written so far.
var counts = regexp.MustCompile(`%[-+ #'0-9.*hjlLqtz]*n`)

// printed judges printf: with -v it sets a variable, and where its format says %n.
func (j *judge) printed(args []*syntax.Word) {
	for len(args) > 0 {
		text, ok := literal(args[0])
		switch {
		case !ok && !begun(args[0]):
			j.refuse(args[0], `write the format out: printf '%s\n' "$a"`,
				"whether this sets a variable cannot be told beforehand")
			return
		case text == "-v" && len(args) > 1:
			j.named(args[1])
			args = args[2:]
		case strings.HasPrefix(text, "-v"):
			j.named(args[0])
			args = args[1:]
		case text == "--" && len(args) > 1:
			args = args[1:]
			if text, ok = literal(args[0]); !ok && !single(args[0]) {
				j.refuse(args[0], "put quotes around it", "how many words this is cannot be told beforehand")
			}
			fallthrough
		default:
			if !ok || counts.MatchString(strings.ReplaceAll(text, "%%", "")) {
				for _, a := range args[1:] {
					j.named(a)
				}
			}
			return
		}
	}
}

// begun tells whether a word begins with text that makes it no option.
func begun(w *syntax.Word) bool {
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) > 0 {
		part = q.Parts[0]
	}
	lit, ok := part.(*syntax.Lit)
	return ok && single(w) && lit.Value != "" && !strings.ContainsAny(lit.Value[:1], `-\~`)
}

// single tells whether a word is one argument, whatever is in its variables.
func single(w *syntax.Word) bool {
	return !slices.ContainsFunc(w.Parts, func(part syntax.WordPart) bool {
		switch part := part.(type) {
		case *syntax.Lit:
			return strings.ContainsAny(part.Value, "*?[{")
		case *syntax.SglQuoted:
			return false
		case *syntax.DblQuoted:
			return slices.ContainsFunc(part.Parts, func(inner syntax.WordPart) bool {
				p, ok := inner.(*syntax.ParamExp)
				return ok && (p.Param == nil || p.Param.Value == "@" || p.Names != 0 || all(p.Index))
			})
		}
		return true
	})
}
