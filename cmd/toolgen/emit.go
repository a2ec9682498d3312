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
	imports map[string]string // package name by import path, filled by importName and typeString
	taken   names
	ctx     string
	in      string
	err     string
}

// emit returns the content of the generated file. It is deterministic.
func emit(pkg *types.Package, funcName string, tools []tool) ([]byte, error) {
	// The package may declare a name such as context, so imports and local variables get names that it does not use.
	first := newEmitter(pkg, funcName, nil)
	first.writeBody(funcName, tools) // collects the imports
	e := newEmitter(pkg, funcName, first.imports)
	e.writeBody(funcName, tools)
	body := bytes.Clone(e.Bytes())

	e.Reset()
	fmt.Fprintf(e, "%s\n\npackage %s\n\nimport (\n", header, pkg.Name())
	for _, std := range []bool{true, false} {
		for _, p := range slices.Sorted(maps.Keys(e.imports)) {
			if std == isStandard(p) {
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
		return nil, fmt.Errorf("toolgen: internal error: the generated code is invalid: %w", err)
	}
	return out, nil
}

// newEmitter returns an emitter with names for the imports, in the order of their paths, and for local variables.
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

// isStandard reports whether an import path looks like one of the standard library. It determines only the order of
// the imports.
func isStandard(p string) bool {
	root, _, _ := strings.Cut(p, "/")
	return !strings.Contains(root, ".") && root != reevePath
}

// importName returns the qualified name of an identifier of another package, and adds the import.
func (e *emitter) importName(path, pkgName, name string) string {
	if e.imports[path] == "" {
		e.imports[path] = pkgName
	}
	return e.imports[path] + "." + name
}

func (e *emitter) typeString(t types.Type) string {
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

func (e *emitter) writeBody(funcName string, tools []tool) {
	t := e.importName(reevePath, reevePath, "Tool")
	fmt.Fprintf(e, "// %s returns the tools of this package, sorted by id.\n", funcName)
	fmt.Fprintf(e, "func %s() []%s {\nreturn []%s{\n", funcName, t, t)
	for _, t := range tools {
		e.writeTool(t)
	}
	fmt.Fprintf(e, "}\n}\n")
}

func (e *emitter) writeTool(t tool) {
	d := t.decl
	qualified := func(name string) string { return e.importName(reevePath, reevePath, name) }
	fmt.Fprintf(e, "%s(%s{\n", qualified("MustTool"), qualified("Tool"))
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
	// Write the effect even if it is the default, because reviewers look for it.
	field("Effect", qualified(camelCase(string(d.WithDefaults().Effect))))
	if d.Tier != "" {
		field("Tier", qualified(camelCase(string(d.Tier))))
	}
	text("Capability", d.Capability)
	if d.Risk != "" {
		field("Risk", qualified(camelCase(string(d.Risk))+"Risk"))
	}
	if d.TimeoutMS != 0 {
		field("TimeoutMS", strconv.FormatInt(d.TimeoutMS, 10))
	}
	if d.Retry.Attempts != 0 {
		field("Retry", fmt.Sprintf("%s{Attempts: %d}", qualified("Retry"), d.Retry.Attempts))
	}
	if t.verify != "" {
		field("Verify", t.verify)
	}
	fmt.Fprint(e, "}, ")
	e.writeHandler(t)
	fmt.Fprint(e, "),\n")
}

// writeHandler writes the function argument of MustTool: the function of the tool if it has the right signature, else
// a wrapper.
func (e *emitter) writeHandler(t tool) {
	if t.args != nil && t.result != nil {
		fmt.Fprint(e, t.fn)
		return
	}
	fmt.Fprintf(e, "func(%s %s, %s ", e.ctx, e.importName("context", "context", "Context"), e.in)
	call := t.fn + "(" + e.ctx
	switch {
	case t.args != nil:
		fmt.Fprint(e, e.typeString(t.args))
		call += ", " + e.in
	case len(t.params) == 0:
		fmt.Fprint(e, "struct{}")
	default:
		fmt.Fprint(e, "struct {\n")
		for _, p := range t.params {
			fmt.Fprintf(e, "%s %s %s\n", p.field, e.typeString(p.typ), p.tag())
			call += ", " + e.in + "." + p.field
		}
		fmt.Fprint(e, "}")
	}
	call += ")"
	if t.result != nil {
		fmt.Fprintf(e, ") (%s, error) {\nreturn %s\n}", e.typeString(t.result), call)
		return
	}
	fmt.Fprintf(e, ") (string, error) {\nif %s := %s; %s != nil {\nreturn \"\", %s\n}\nreturn \"done\", nil\n}", e.err,
		call, e.err, e.err)
}

// tag returns the struct tag of a parameter as a Go literal.
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
