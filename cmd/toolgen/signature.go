package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"reeve"
)

// words is the import path of the package that generated code speaks in.
const words = "reeve"

// tool is a marked function.
type tool struct {
	pos    token.Pos            // of the function's name
	fn     string               // the function's name
	decl   reeve.Tool           // what directive and doc comment say
	said   map[string]token.Pos // the keys of the directive
	verify string               // the function that looks up what happened, or nothing
	params []param              // the arguments, unless they are a struct of their own
	args   types.Type           // that struct
	result types.Type           // nil when there is only an error
}

// param is an argument: a field of the struct that arguments are decoded into.
type param struct {
	field    string // in Go
	name     string // in JSON
	doc      string
	typ      types.Type
	optional bool
}

// tools finds the marked functions and notes everything that is wrong with them. They come sorted by id, so that moving
// a function changes nothing.
func (s *source) tools(funcName string) []tool {
	var list []tool
	for _, f := range s.files {
		docs := map[*ast.CommentGroup]*ast.FuncDecl{}
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok && fd.Doc != nil {
				docs[fd.Doc] = fd
			}
		}
		for _, group := range f.Comments {
			fd := docs[group]
			marks := s.marks(group, fd)
			if fd == nil || len(marks) == 0 {
				continue
			}
			for _, m := range marks[1:] {
				s.add(m.Pos(), "%s has two %s lines", fd.Name.Name, directive)
			}
			list = append(list, s.tool(fd, marks[0]))
		}
	}
	if len(list) > 0 {
		s.reserved(funcName)
	}
	byID := map[string]tool{}
	for _, t := range list {
		if first, ok := byID[t.decl.ID]; ok {
			s.add(t.pos, "the id %s is taken by %s at %s", t.decl.ID, first.fn, s.fset.Position(first.pos))
			continue
		}
		byID[t.decl.ID] = t
	}
	slices.SortFunc(list, func(a, b tool) int { return cmp.Compare(a.decl.ID, b.decl.ID) })
	return list
}

// marks gives the directives of a comment, and notes those that mark no function and those that were misspelt: a
// comment that does nothing in silence would be a tool that is missing in silence.
func (s *source) marks(group *ast.CommentGroup, fd *ast.FuncDecl) []*ast.Comment {
	var list []*ast.Comment
	for _, c := range group.List {
		word, _, _ := strings.Cut(strings.ReplaceAll(c.Text, "\t", " "), " ")
		switch {
		case word == directive && fd == nil:
			s.add(c.Pos(), "%s belongs in the doc comment of a top-level function", directive)
		case word == directive:
			list = append(list, c)
		case strings.HasPrefix(word, "//reeve:"):
			s.add(c.Pos(), "unknown directive %s: only %s is known", word, directive)
		case fd != nil && strings.HasPrefix(c.Text, "// reeve:tool"):
			s.add(c.Pos(), "write %s, with no space after the slashes", directive)
		}
	}
	return list
}

// reserved notes names of the package that generated code could not do without.
func (s *source) reserved(funcName string) {
	scope := s.pkg.Scope()
	for _, name := range scope.Names() {
		_, predeclaredType := types.Universe.Lookup(name).(*types.TypeName)
		switch {
		case name == funcName:
			s.add(scope.Lookup(name).Pos(), "%s is what the generated function is called: rename this or use -func",
				name)
		case predeclaredType || name == "nil":
			s.add(scope.Lookup(name).Pos(), "the package declares its own %s, which generated code needs as Go has it",
				name)
		}
	}
}

// tool reads one marked function.
func (s *source) tool(fd *ast.FuncDecl, mark *ast.Comment) tool {
	t := tool{pos: fd.Name.Pos(), fn: fd.Name.Name, said: map[string]token.Pos{}}
	t.decl.ID = snake(t.fn)
	s.apply(&t, s.settings(mark.Text[len(directive):], mark.Pos()+token.Pos(len(directive))))
	doc := readComment(fd.Doc)
	t.decl.Description = doc.text
	if rest, ok := strings.CutPrefix(doc.text, t.fn); ok &&
		(rest == "" || strings.ContainsRune(" ,.:;\n", rune(rest[0]))) {
		t.decl.Description = t.decl.ID + rest
	}
	if doc.text == "" {
		s.add(t.pos, "%s needs a doc comment: it is all a model knows of the tool", t.fn)
	}
	s.validate(&t)
	s.verifier(&t)
	s.signature(&t, fd, doc.items)
	return t
}

// verifier checks the function that an effect=verifiable tool names.
func (s *source) verifier(t *tool) {
	pos, named := t.said["verify"]
	switch verifiable := t.decl.Effect == reeve.Verifiable; {
	case verifiable && !named:
		s.add(t.said["effect"], "effect=verifiable needs verify=, the function that looks up what happened")
		return
	case !verifiable && named:
		s.add(pos, "verify is only for effect=verifiable")
		return
	case !named:
		return
	}
	const want = "func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error)"
	fn, ok := s.pkg.Scope().Lookup(t.verify).(*types.Func)
	if !ok {
		s.add(pos, "verify=%s: the package has no such function", t.verify)
		return
	}
	sig := fn.Signature()
	unnamed := func(list *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range list.Variables() {
			vars = append(vars, types.NewVar(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	plain := types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic())
	have := types.TypeString(plain, (*types.Package).Path)
	if have = strings.ReplaceAll(have, "interface{}", "any"); have != want || sig.TypeParams() != nil {
		s.add(pos, "verify=%s: want a %s, not a %s", t.verify, want, have)
	}
}

// signature checks a function's form and fills in arguments and result.
func (s *source) signature(t *tool, fd *ast.FuncDecl, items []item) {
	if fd.Recv != nil {
		s.add(fd.Recv.Pos(), "%s is a method: a tool is a plain function", t.fn)
	}
	if fd.Type.TypeParams != nil {
		s.add(fd.Type.TypeParams.Pos(), "%s has type parameters: a tool has one schema", t.fn)
		return // its types mean nothing until it is instantiated
	}
	if t.fn == "_" || fd.Recv == nil && (t.fn == "init" || t.fn == "main" && s.pkg.Name() == "main") {
		s.add(t.pos, "a function named %s cannot be called", t.fn)
		return
	}
	fn, ok := s.info.Defs[fd.Name].(*types.Func)
	if !ok {
		s.unresolved(fd.Name, t.fn) // declared twice, for one
		return
	}
	s.arguments(t, fd, fn.Signature(), items)
	s.results(t, fd, fn.Signature())
}

// results checks that a function gives (R, error) or error.
func (s *source) results(t *tool, fd *ast.FuncDecl, sig *types.Signature) {
	res := sig.Results()
	if res.Len() == 0 {
		s.add(t.pos, "%s must return an error, alone or after its result", t.fn)
		return
	}
	last := res.At(res.Len() - 1).Type()
	exprs := spread(fd.Type.Results)
	isError := func(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
	if !isError(last) {
		s.add(exprs[res.Len()-1].Pos(), "the last result of %s must be error, not %s", t.fn, s.text(last))
	}
	if res.Len() > 2 {
		s.add(exprs[2].Pos(), "%s has %d results: a tool has one and an error", t.fn, res.Len())
	}
	if res.Len() != 2 {
		return
	}
	t.result = res.At(0).Type()
	if isError(t.result) {
		s.add(exprs[0].Pos(), "the result of %s is an error: errors are only returned last", t.fn)
		return
	}
	s.shape(exprs[0], "the result of "+t.fn, t.result, true)
}

// arguments checks what comes after the context.
func (s *source) arguments(t *tool, fd *ast.FuncDecl, sig *types.Signature, items []item) {
	vars, exprs := sig.Params(), spread(fd.Type.Params)
	from := 0
	if vars.Len() > 0 && named(vars.At(0).Type(), "context", "Context") {
		from = 1
	} else if vars.Len() > 0 && types.Unalias(vars.At(0).Type()) == types.Typ[types.Invalid] && contextExpr(exprs[0]) {
		from = 1
		s.unresolved(exprs[0], "the first parameter of "+t.fn)
	} else {
		s.add(fd.Type.Params.Pos(), "the first parameter of %s must be a context.Context", t.fn)
	}
	docs := map[string]item{}
	for _, it := range items {
		if first, ok := docs[it.name]; ok {
			s.add(it.pos, "%s is described twice, first at %s", it.name, s.fset.Position(first.pos))
			continue
		}
		docs[it.name] = it
	}
	own := vars.Len() == from+1 && !sig.Variadic() && ownStruct(vars.At(from).Type())
	seen := map[string]string{}
	fields := names{}
	for i := from; i < vars.Len(); i++ {
		v, expr := vars.At(i), exprs[i]
		what := fmt.Sprintf("parameter %s of %s", v.Name(), t.fn)
		doc := docs[v.Name()].text
		if !own {
			delete(docs, v.Name())
		}
		if from == 0 && named(v.Type(), "context", "Context") {
			continue // in the wrong place, which has been said
		}
		if sig.Variadic() && i == vars.Len()-1 {
			s.add(expr.Pos(), "%s is variadic: take a slice", what)
			continue
		}
		if own {
			s.shape(expr, what, v.Type(), false)
			t.args = v.Type()
			break
		}
		if v.Name() == "" || v.Name() == "_" {
			s.add(cmp.Or(v.Pos(), expr.Pos()), "a parameter of %s has no name: the argument is named after it", t.fn)
			s.shape(expr, "a parameter of "+t.fn, v.Type(), false)
			continue
		}
		_, optional := types.Unalias(v.Type()).Underlying().(*types.Pointer)
		p := param{name: snake(v.Name()), doc: doc, typ: v.Type(), optional: optional}
		switch other, taken := seen[p.name]; {
		case !argumentName(p.name):
			s.add(v.Pos(), "%s: %q is no name for an argument: use ASCII letters and digits", what, p.name)
		case taken:
			s.add(v.Pos(), "%s is the argument %s, as is %s", what, p.name, other)
		default:
			p.field = fields.pick(camel(p.name))
		}
		seen[p.name] = v.Name()
		if ptr, ok := types.Unalias(v.Type()).(*types.Pointer); ok && vars.Len() == from+1 && ownStruct(ptr.Elem()) {
			s.add(expr.Pos(), "%s is a pointer to a struct: take the struct itself", what)
		}
		s.shape(expr, what, v.Type(), false)
		t.params = append(t.params, p)
	}
	for _, it := range items {
		switch _, left := docs[it.name]; {
		case left && own:
			s.add(it.pos, "%s takes a struct: describe %s in a doc tag of its field", t.fn, it.name)
		case left:
			s.add(it.pos, "%s has no parameter %s to describe", t.fn, it.name)
		}
		delete(docs, it.name)
	}
}

// ownStruct tells whether a type's fields are the arguments, rather than the type being one argument.
func ownStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok && !named(t, "time", "Time")
}

// named tells whether a type is the one of that name, by whatever alias.
func named(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}

// contextExpr tells whether an expression that could not be resolved was meant to be a context, so that one mistake, an
// import that is missing, is not reported as another.
func contextExpr(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Context"
}

// spread gives the type expression of each parameter or result, in step with their types.
func spread(list *ast.FieldList) []ast.Expr {
	var exprs []ast.Expr
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			exprs = append(exprs, f.Type)
		}
	}
	return exprs
}

// text names a type as the package's author would.
func (s *source) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		return p.Name()
	})
}
