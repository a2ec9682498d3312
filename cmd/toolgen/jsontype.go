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

// checkType reports why values of a type cannot be arguments or a result. For arguments, the JSON form must match the
// generated schema; otherwise every call would be refused.
func (s *source) checkType(expr ast.Expr, what string, t types.Type, result bool) {
	w := typeChecker{result: result, text: s.typeName, report: func(path, format string, args ...any) {
		s.add(expr.Pos(), "%s%s: %s", what, path, fmt.Sprintf(format, args...))
	}}
	w.unresolved = func(path string) { s.reportUnresolved(expr, what+path) }
	w.visit(t, "")
}

// reportUnresolved reports the errors of the Go type checker in an expression, or a general error if there are none.
func (s *source) reportUnresolved(expr ast.Expr, what string) {
	reported := false
	for _, e := range s.typeErrs {
		if expr.Pos() <= e.Pos && e.Pos < expr.End() {
			s.add(e.Pos, "%s", e.Msg)
			reported = true
		}
	}
	if !reported {
		s.add(expr.Pos(), "%s has an unknown type; check that the package compiles", what)
	}
	for _, e := range s.typeErrs { // a failed import elsewhere is the likely cause
		if strings.HasPrefix(e.Msg, "could not import") {
			s.add(e.Pos, "%s", e.Msg)
		}
	}
}

// typeChecker traverses a type in the same way as encoding/json and the schema generator.
type typeChecker struct {
	result     bool
	text       func(types.Type) string
	report     func(path, format string, args ...any)
	unresolved func(path string)
	within     []types.Type
}

func (w *typeChecker) visit(t types.Type, path string) {
	t = types.Unalias(t)
	if n, ok := t.(*types.Named); ok {
		for _, outer := range w.within {
			if types.Identical(outer, n) {
				if !w.result {
					w.report(path, "%s is recursive, which a schema cannot express", w.text(n))
				}
				return
			}
		}
		if len(w.within) > 30 { // a generic type that is instantiated with itself
			w.report(path, "%s is nested too deeply", w.text(n))
			return
		}
		w.within = append(w.within, n)
		defer func() { w.within = w.within[:len(w.within)-1] }()
	}
	if !w.checkSelfEncoded(t, path) {
		w.checkUnderlying(t, path)
	}
}

// checkSelfEncoded checks types with their own JSON form. It reports whether the check of t is complete.
func (w *typeChecker) checkSelfEncoded(t types.Type, path string) bool {
	if isNamed(t, "time", "Time") {
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
	case isNamed(t, "time", "Duration"):
		w.report(path, "time.Duration is a number of nanoseconds in JSON; use a number, with the unit in its name")
	case has("UnmarshalJSON"), has("UnmarshalText") && !isText:
		w.report(path, "%s has its own JSON decoding, so its schema is unknown", w.text(t))
	default:
		return false
	}
	return true
}

func (w *typeChecker) checkUnderlying(t types.Type, path string) {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Kind() == types.Invalid:
			w.unresolved(path)
		case u.Info()&types.IsComplex != 0, u.Kind() == types.UnsafePointer, u.Kind() == types.Uintptr:
			w.report(path, "%s has no JSON form", w.text(t))
		}
	case *types.Pointer:
		if _, ok := u.Elem().Underlying().(*types.Pointer); ok && !w.result {
			w.report(path, "pointer to a pointer; use one pointer to make it optional")
			return
		}
		w.visit(u.Elem(), path)
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			if !w.result {
				w.report(path, "%s is base64 in JSON but a list in the schema; use a string", w.text(t))
			}
			return
		}
		w.visit(u.Elem(), path+"[]")
	case *types.Array:
		w.visit(u.Elem(), path+"[]")
	case *types.Map:
		w.checkKey(u.Key(), path)
		w.visit(u.Elem(), path+"[]")
	case *types.Struct:
		for i := range u.NumFields() {
			w.checkField(u.Field(i), reflect.StructTag(u.Tag(i)), path)
		}
	case *types.Interface:
		if !w.result && !u.Empty() {
			w.report(path, "%s is an interface; use any or a concrete type", w.text(t))
		}
	default: // channels and functions
		w.report(path, "%s has no JSON form", w.text(t))
	}
}

// checkKey checks the key type of a map.
func (w *typeChecker) checkKey(t types.Type, path string) {
	b, ok := t.Underlying().(*types.Basic)
	switch {
	case ok && b.Kind() == types.Invalid:
		w.unresolved(path)
	case ok && b.Info()&types.IsString != 0:
	case w.result && (ok && b.Info()&types.IsInteger != 0 || types.NewMethodSet(t).Lookup(nil, "MarshalText") != nil):
	default:
		w.report(path, "map with keys of type %s; use string keys", w.text(t))
	}
}

func (w *typeChecker) checkField(f *types.Var, tag reflect.StructTag, path string) {
	name, options, hasOptions := strings.Cut(tag.Get("json"), ",")
	if name == "-" && !hasOptions {
		return
	}
	path += "." + f.Name()
	if f.Embedded() && !w.result {
		w.checkEmbedded(f, name, path)
		return
	}
	if !f.Exported() && !f.Embedded() {
		return
	}
	if !w.result {
		for o := range strings.SplitSeq(options, ",") {
			if o == "string" {
				w.report(path, "the json option \"string\" is not supported")
			}
		}
		w.checkTags(f, tag, path)
	}
	w.visit(f.Type(), path)
}

// checkEmbedded checks an embedded field. The schema supports only embedded structs without a JSON name.
func (w *typeChecker) checkEmbedded(f *types.Var, name, path string) {
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
		w.report(path, "embedded field is not a plain struct; name the field")
	case isPtr && !f.Exported():
		w.report(path, "encoding/json cannot set an embedded pointer to an unexported struct")
	default:
		w.visit(t, path)
	}
}

// checkTags checks the tags that define the schema. Otherwise, a wrong tag would fail only when the tool is registered.
func (w *typeChecker) checkTags(f *types.Var, tag reflect.StructTag, path string) {
	for _, key := range []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		if v, ok := tag.Lookup(key); ok {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				w.report(path, "the tag %s:%q is not a number", key, v)
			}
		}
	}
	v, ok := tag.Lookup("default")
	t := f.Type().Underlying()
	if p, isPtr := t.(*types.Pointer); isPtr {
		t = p.Elem().Underlying()
	}
	b, isBasic := t.(*types.Basic)
	isText := isBasic && b.Info()&types.IsString != 0 || isNamed(f.Type(), "time", "Time")
	if ok && !isText && !json.Valid([]byte(v)) {
		w.report(path, "the tag default:%q is not JSON", v)
	}
	if v, ok := tag.Lookup("jsonschema"); ok {
		word, _, _ := strings.Cut(v, " ")
		if v == "" || strings.Contains(word, "=") {
			w.report(path, "the tag jsonschema:%q is not supported; use the doc tag", v)
		}
	}
}
