package httpapi

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"reeve"
	"reeve/api"
)

// checkText refuses an input with text that could not be stored: NUL, or bytes that are not UTF-8. It says where. JSON
// that is kept as it came is not looked into: there NUL is written with an escape.
func checkText(in any) error {
	path := badText(reflect.ValueOf(in), "")
	if path == nil {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "the request holds text that is not UTF-8 without NUL",
		Fields: []reeve.Field{{Path: *path, Message: "holds NUL or bytes that are not UTF-8", Expected: "text"}}}
}

// badText gives the path of the first wrong text, or nil.
func badText(v reflect.Value, path string) *string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return badText(v.Elem(), path)
		}
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
			return &path
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // bytes
		}
		for i := range v.Len() {
			if p := badText(v.Index(i), path); p != nil {
				return p
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if p := badText(it.Key(), path); p != nil {
				return p
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if p := badText(v.Field(i), path+inputName(f)); p != nil {
					return p
				}
			}
		}
	default: // holds no text
	}
	return nil
}

// maxInteger is the largest whole number that the API's own fields take; programs that read JSON into doubles would
// change others.
const maxInteger = 1<<53 - 1

// checkIntegers refuses a body with a whole number that a double cannot hold. JSON that is kept as it came is not
// looked into.
func checkIntegers(in any) error {
	f := wideInteger(reflect.ValueOf(in), "")
	if f == nil {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "the request is not valid: " + f.Path + " " + f.Message,
		Fields: []reeve.Field{*f}}
}

// wideInteger gives the first such number, or nil.
func wideInteger(v reflect.Value, path string) *reeve.Field {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return wideInteger(v.Elem(), path)
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > maxInteger || n < -maxInteger {
			return &reeve.Field{Path: path,
				Message: fmt.Sprintf("cannot be %d: whole numbers are %s", n, api.IntegerRange), Expected: api.IntegerRange}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // bytes
		}
		for i := range v.Len() {
			if f := wideInteger(v.Index(i), fmt.Sprintf("%s/%d", path, i)); f != nil {
				return f
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if f := wideInteger(it.Value(), fmt.Sprintf("%s/%v", path, it.Key())); f != nil {
				return f
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := inputName(f)
			if !f.IsExported() || name != "" && !strings.HasPrefix(name, "/") { // the latter is not of the body
				continue
			}
			if wrong := wideInteger(v.Field(i), path+name); wrong != nil {
				return wrong
			}
		}
	default: // is no number and holds none
	}
	return nil
}

// inputName is what callers call a field: /name in a body, path/name, query/name and header/name elsewhere.
func inputName(f reflect.StructField) string {
	for _, place := range []string{"path", "query", "header"} {
		if name, ok := f.Tag.Lookup(place); ok {
			return place + "/" + name
		}
	}
	if f.Anonymous || f.Name == "Body" {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return "/" + cmp.Or(name, f.Name)
}
