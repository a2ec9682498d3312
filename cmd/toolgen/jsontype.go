package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"strconv"
	"strings"
)

// shape notes why values of a type cannot be arguments or a result. Arguments are held to what the schema will say of
// them: a type whose JSON form differs from its schema would refuse every call.
func (s *source) shape(expr ast.Expr, what string, t types.Type, result bool) {
	w := walk{result: result, text: s.text, bad: func(path, format string, args ...any) {
		s.add(expr.Pos(), "%s%s: %s", what, path, fmt.Sprintf(format, args...))
	}}
	w.unresolved = func(path string) { s.unresolved(expr, what+path) }
	w.visit(t, "")
}

// unresolved passes on what the type checker said of an expression, or that it said nothing there.
func (s *source) unresolved(expr ast.Expr, what string) {
	said := false
	for _, e := range s.typeErrs {
		if expr.Pos() <= e.Pos && e.Pos < expr.End() {
			s.add(e.Pos, "%s", e.Msg)
			said = true
		}
	}
	if !said {
		s.add(expr.Pos(), "%s has a type that is not known: does the package compile?", what)
	}
	for _, e := range s.typeErrs { // an import that is missing is the likely cause, and elsewhere
		if strings.HasPrefix(e.Msg, "could not import") {
			s.add(e.Pos, "%s", e.Msg)
		}
	}
}

// walk goes through a type the way encoding/json and the schema's inference do.
type walk struct {
	result     bool
	text       func(types.Type) string
	bad        func(path, format string, args ...any)
	unresolved func(path string)
	within     []types.Type
}

func (w *walk) visit(t types.Type, path string) {
	t = types.Unalias(t)
	if n, ok := t.(*types.Named); ok {
		for _, outer := range w.within {
			if types.Identical(outer, n) {
				if !w.result {
					w.bad(path, "%s contains itself, which a schema cannot say", w.text(n))
				}
				return
			}
		}
		if len(w.within) > 30 { // a generic type that grows with each turn
			w.bad(path, "%s is nested too deeply", w.text(n))
			return
		}
		w.within = append(w.within, n)
		defer func() { w.within = w.within[:len(w.within)-1] }()
	}
	if !w.itself(t, path) {
		w.parts(t, path)
	}
}

// itself deals with types that say how they look in JSON, and tells whether that settles it.
func (w *walk) itself(t types.Type, path string) bool {
	if named(t, "time", "Time") {
		return true
	}
	switch t.Underlying().(type) {
	case *types.Interface, *types.Pointer:
		return false
	}
	methods := types.NewMethodSet(types.NewPointer(t))
	has := func(name string) bool { return methods.Lookup(nil, name) != nil }
	if w.result {
		return has("MarshalJSON") || has("MarshalText")
	}
	_, isBasic := t.Underlying().(*types.Basic)
	isText := isBasic && t.Underlying().(*types.Basic).Info()&types.IsString != 0
	switch {
	case named(t, "time", "Duration"):
		w.bad(path, "a time.Duration is a number of nanoseconds in JSON: take a number of a unit that the name says")
	case has("UnmarshalJSON"), has("UnmarshalText") && !isText:
		w.bad(path, "%s decodes itself, so its schema is not known", w.text(t))
	default:
		return false
	}
	return true
}

func (w *walk) parts(t types.Type, path string) {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.Invalid:
			w.unresolved(path)
		case u.Info()&types.IsComplex != 0, u.Kind() == types.UnsafePointer, u.Kind() == types.Uintptr:
			w.bad(path, "%s has no JSON form", w.text(t))
		}
	case *types.Pointer:
		if _, ok := u.Elem().Underlying().(*types.Pointer); ok && !w.result {
			w.bad(path, "a pointer to a pointer: one makes it optional")
			return
		}
		w.visit(u.Elem(), path)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			if !w.result {
				w.bad(path, "%s is base64 in JSON and a list in the schema: take a string", w.text(t))
			}
			return
		}
		w.visit(u.Elem(), path+"[]")
	case *types.Array:
		w.visit(u.Elem(), path+"[]")
	case *types.Map:
		w.key(u.Key(), path)
		w.visit(u.Elem(), path+"[]")
	case *types.Struct:
		for i := range u.NumFields() {
			w.field(u.Field(i), reflect.StructTag(u.Tag(i)), path)
		}
	case *types.Interface:
		if !w.result && !u.Empty() {
			w.bad(path, "%s is an interface: only any can be decoded", w.text(t))
		}
	default: // channels and functions
		w.bad(path, "%s has no JSON form", w.text(t))
	}
}

// key checks the key type of a map.
func (w *walk) key(t types.Type, path string) {
	b, ok := t.Underlying().(*types.Basic)
	switch {
	case ok && b.Kind() == types.Invalid:
		w.unresolved(path)
	case ok && b.Info()&types.IsString != 0:
	case w.result && (ok && b.Info()&types.IsInteger != 0 || types.NewMethodSet(t).Lookup(nil, "MarshalText") != nil):
	default:
		w.bad(path, "a map with keys of type %s: keys are strings in JSON", w.text(t))
	}
}

func (w *walk) field(f *types.Var, tag reflect.StructTag, path string) {
	name, options, hasOptions := strings.Cut(tag.Get("json"), ",")
	if name == "-" && !hasOptions {
		return
	}
	path += "." + f.Name()
	if f.Embedded() && !w.result {
		w.embedded(f, name, path)
		return
	}
	if !f.Exported() && !f.Embedded() {
		return
	}
	if !w.result {
		for o := range strings.SplitSeq(options, ",") {
			if o == "string" {
				w.bad(path, "the json option string, which the schema does not know")
			}
		}
		w.tags(f, tag, path)
	}
	w.visit(f.Type(), path)
}

// embedded checks a field that lends its own fields to the struct it is in. Anything else that encoding/json allows
// there is missing from the schema.
func (w *walk) embedded(f *types.Var, name, path string) {
	t := f.Type()
	ptr, isPtr := types.Unalias(t).(*types.Pointer)
	if isPtr {
		t = ptr.Elem()
	}
	_, isStruct := t.Underlying().(*types.Struct)
	switch {
	case t.Underlying() == types.Typ[types.Invalid]:
		w.unresolved(path)
	case name != "" || !isStruct:
		w.bad(path, "embedded, but not as the fields of a struct: give the field a name")
	case isPtr && !f.Exported():
		w.bad(path, "an embedded pointer that encoding/json cannot set")
	default:
		w.visit(t, path)
	}
}

// tags checks the tags that the schema is made with, since a wrong one would only be seen when the tool is registered.
func (w *walk) tags(f *types.Var, tag reflect.StructTag, path string) {
	for _, key := range []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		if v, ok := tag.Lookup(key); ok {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				w.bad(path, "the tag %s:%q is not a number", key, v)
			}
		}
	}
	v, ok := tag.Lookup("default")
	t := f.Type().Underlying()
	if p, isPtr := t.(*types.Pointer); isPtr {
		t = p.Elem().Underlying()
	}
	b, isBasic := t.(*types.Basic)
	isText := isBasic && b.Info()&types.IsString != 0 || named(f.Type(), "time", "Time")
	if ok && !isText && !json.Valid([]byte(v)) {
		w.bad(path, "the tag default:%q is not JSON", v)
	}
	if v, ok := tag.Lookup("jsonschema"); ok {
		word, _, _ := strings.Cut(v, " ")
		if v == "" || strings.Contains(word, "=") {
			w.bad(path, "the tag jsonschema:%q: use the doc tag", v)
		}
	}
}
