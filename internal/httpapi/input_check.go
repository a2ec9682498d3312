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

// checkText returns an error if a text of the input contains NUL or invalid UTF-8, which cannot be stored. It skips raw
// JSON, in which NUL is escaped.
func checkText(in any) error {
	path := findInvalidText(reflect.ValueOf(in), "")
	if path == nil {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "the request contains invalid text",
		Fields: []reeve.Field{{Path: *path, Message: "contains NUL or invalid UTF-8",
			Expected: "UTF-8 text without NUL"}}}
}

// findInvalidText returns the path of the first invalid text, or nil.
func findInvalidText(v reflect.Value, path string) *string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return findInvalidText(v.Elem(), path)
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
			if p := findInvalidText(v.Index(i), path); p != nil {
				return p
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if p := findInvalidText(it.Key(), path); p != nil {
				return p
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if p := findInvalidText(v.Field(i), path+fieldPath(f)); p != nil {
					return p
				}
			}
		}
	default: // contains no text
	}
	return nil
}

// maxInteger is the largest integer that the API accepts. Clients that decode JSON numbers as doubles would change
// larger ones.
const maxInteger = 1<<53 - 1

// checkIntegers returns an error if the body has an integer that a double cannot represent. It skips raw JSON.
func checkIntegers(in any) error {
	f := findWideInteger(reflect.ValueOf(in), "")
	if f == nil {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation, Message: "invalid request: " + f.Path + " " + f.Message,
		Fields: []reeve.Field{*f}}
}

// findWideInteger returns the first integer beyond maxInteger, or nil.
func findWideInteger(v reflect.Value, path string) *reeve.Field {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return findWideInteger(v.Elem(), path)
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > maxInteger || n < -maxInteger {
			return &reeve.Field{Path: path,
				Message: fmt.Sprintf("cannot be %d; integers are %s", n, api.IntegerRange), Expected: api.IntegerRange}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // bytes
		}
		for i := range v.Len() {
			if f := findWideInteger(v.Index(i), fmt.Sprintf("%s/%d", path, i)); f != nil {
				return f
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if f := findWideInteger(it.Value(), fmt.Sprintf("%s/%v", path, it.Key())); f != nil {
				return f
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := fieldPath(f)
			if !f.IsExported() || name != "" && !strings.HasPrefix(name, "/") { // path, query and header
				continue
			}
			if wide := findWideInteger(v.Field(i), path+name); wide != nil {
				return wide
			}
		}
	default: // contains no integer
	}
	return nil
}

// fieldPath returns the path of a field in errors: /name in a body, and path/name, query/name or header/name elsewhere.
func fieldPath(f reflect.StructField) string {
	for _, place := range []string{"path", "query", "header"} {
		if tag, ok := f.Tag.Lookup(place); ok {
			name, _, _ := strings.Cut(tag, ",")
			return place + "/" + name
		}
	}
	if f.Anonymous || f.Name == "Body" {
		return ""
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return "/" + cmp.Or(name, f.Name)
}
