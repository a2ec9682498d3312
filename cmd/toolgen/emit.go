package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// emitter writes the generated file.
type emitter struct {
	bytes.Buffer
	pkg     *types.Package
	imports map[string]string // the package name to import each path by; what is written decides which there are
	taken   names
	ctx     string
	in      string
	err     string
}

// emit gives the file. The same package gives the same bytes.
func emit(pkg *types.Package, funcName string, tools []tool) ([]byte, error) {
	// Names that are not the package's own are chosen around it: it may well have a function called context.
	first := newEmitter(pkg, funcName, nil)
	first.body(funcName, tools) // only to see what is imported
	e := newEmitter(pkg, funcName, first.imports)
	e.body(funcName, tools)
	body := bytes.Clone(e.Bytes())

	e.Reset()
	fmt.Fprintf(e, "%s\n\npackage %s\n\nimport (\n", header, pkg.Name())
	for _, std := range []bool{true, false} {
		for _, p := range slices.Sorted(maps.Keys(e.imports)) {
			if std == standard(p) {
				name := ""
				if e.imports[p] != path.Base(p) {
					name = e.imports[p] + " "
				}
				fmt.Fprintf(e, "%s%q\n", name, p)
			}
		}
		fmt.Fprintln(e)
	}
	fmt.Fprintf(e, ")\n\n%s", body)
	out, err := format.Source(e.Bytes())
	if err != nil {
		return nil, fmt.Errorf("toolgen: what it wrote is not Go, which is a fault of its own: %w", err)
	}
	return out, nil
}

// newEmitter chooses names: of the imports in the order of their paths, then of what is local to a function.
func newEmitter(pkg *types.Package, funcName string, imports map[string]string) *emitter {
	e := &emitter{pkg: pkg, imports: map[string]string{}, taken: names{funcName: true}}
	for _, name := range slices.Concat(pkg.Scope().Names(), types.Universe.Names()) {
		e.taken[name] = true
	}
	for _, p := range slices.Sorted(maps.Keys(imports)) {
		e.imports[p] = e.taken.pick(imports[p])
	}
	e.ctx, e.in, e.err = e.taken.pick("ctx"), e.taken.pick("in"), e.taken.pick("err")
	return e
}

// standard tells whether a path is of the standard library, to the eye of somebody who reads the imports.
func standard(p string) bool {
	root, _, _ := strings.Cut(p, "/")
	return !strings.Contains(root, ".") && root != words
}

// use names something of another package, and so imports it.
func (e *emitter) use(path, pkgName, name string) string {
	if e.imports[path] == "" {
		e.imports[path] = pkgName
	}
	return e.imports[path] + "." + name
}

func (e *emitter) typ(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == e.pkg {
			return ""
		}
		if e.imports[p.Path()] == "" {
			e.imports[p.Path()] = p.Name()
		}
		return e.imports[p.Path()]
	})
}

func (e *emitter) body(funcName string, tools []tool) {
	t := e.use(words, words, "Tool")
	fmt.Fprintf(e, "// %s gives the tools of this package, in the order of their ids.\n", funcName)
	fmt.Fprintf(e, "func %s() []%s {\nreturn []%s{\n", funcName, t, t)
	for _, t := range tools {
		e.tool(t)
	}
	fmt.Fprintf(e, "}\n}\n")
}

func (e *emitter) tool(t tool) {
	d := t.decl
	word := func(name string) string { return e.use(words, words, name) }
	fmt.Fprintf(e, "%s(%s{\n", word("MustTool"), word("Tool"))
	field := func(name, value string) { fmt.Fprintf(e, "%s: %s,\n", name, value) }
	text := func(name, value string) {
		if value != "" {
			field(name, strconv.Quote(value))
		}
	}
	text("ID", d.ID)
	text("Name", d.Name)
	text("Description", d.Description)
	text("Category", d.Category)
	// said even when the directive does not: it is what a reviewer looks for
	field("Effect", word(camel(string(d.WithDefaults().Effect))))
	if d.Tier != "" {
		field("Tier", word(camel(string(d.Tier))))
	}
	text("Capability", d.Capability)
	if d.Risk != "" {
		field("Risk", word(camel(string(d.Risk))+"Risk"))
	}
	if d.TimeoutMS != 0 {
		field("TimeoutMS", strconv.FormatInt(d.TimeoutMS, 10))
	}
	if d.Retry.Attempts != 0 {
		field("Retry", fmt.Sprintf("%s{Attempts: %d}", word("Retry"), d.Retry.Attempts))
	}
	if t.verify != "" {
		field("Verify", t.verify)
	}
	fmt.Fprint(e, "}, ")
	e.handler(t)
	fmt.Fprint(e, "),\n")
}

// handler writes the function that MustTool takes: the tool itself where its form is right already.
func (e *emitter) handler(t tool) {
	if t.args != nil && t.result != nil {
		fmt.Fprint(e, t.fn)
		return
	}
	fmt.Fprintf(e, "func(%s %s, %s ", e.ctx, e.use("context", "context", "Context"), e.in)
	call := t.fn + "(" + e.ctx
	switch {
	case t.args != nil:
		fmt.Fprint(e, e.typ(t.args))
		call += ", " + e.in
	case len(t.params) == 0:
		fmt.Fprint(e, "struct{}")
	default:
		fmt.Fprint(e, "struct {\n")
		for _, p := range t.params {
			fmt.Fprintf(e, "%s %s %s\n", p.field, e.typ(p.typ), p.tag())
			call += ", " + e.in + "." + p.field
		}
		fmt.Fprint(e, "}")
	}
	call += ")"
	if t.result != nil {
		fmt.Fprintf(e, ") (%s, error) {\nreturn %s\n}", e.typ(t.result), call)
		return
	}
	fmt.Fprintf(e, ") (string, error) {\nif %s := %s; %s != nil {\nreturn \"\", %s\n}\nreturn \"done\", nil\n}", e.err,
		call, e.err, e.err)
}

// tag gives a field's tag as a Go literal.
func (p param) tag() string {
	name := p.name
	if p.optional {
		name += ",omitempty"
	}
	tag := fmt.Sprintf("json:%q", name)
	if p.doc != "" {
		tag += fmt.Sprintf(" doc:%q", p.doc)
	}
	if strconv.CanBackquote(tag) {
		return "`" + tag + "`"
	}
	return strconv.Quote(tag)
}
