package canonjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"reeve/internal/canonjson"
)

func TestCanonicalForm(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{`{"a":1.0,"b":1e3,"c":-0,"d":0.000001,"e":1e-7,"f":1e21,"g":123456789012345680000}`,
			`{"a":1,"b":1000,"c":0,"d":0.000001,"e":1e-7,"f":1e+21,"g":123456789012345680000}`},
		{"[\"\\u20ac$\\u000f\\nA'\\u0042\\u0022\\u005c\\\\\\\"\\/\"]", `["€$\u000f\nA'B\"\\\\\"/"]`},
		{`{"\u20ac":"Euro","\r":"CR","\ufb33":"dalet","1":"One","\ud83d\ude00":"smile","\u0080":"ctl","\u00f6":"o"}`,
			"{\"\\r\":\"CR\",\"1\":\"One\",\"\u0080\":\"ctl\",\"ö\":\"o\"," +
				"\"€\":\"Euro\",\"😀\":\"smile\",\"\ufb33\":\"dalet\"}"},
		{`[9007199254740993,-9223372036854775808,9.223372036854775807e18,9223372036854775807.00]`,
			`[9007199254740993,-9223372036854775808,9223372036854775807,9223372036854775807]`},
		{`[9007199254740993.5,12345678901234567890123]`, `[9007199254740994,12345678901234567890123]`},
		{`[9007199254740992,10e20,1000000000000000000000,1.7976931348623157e308]`,
			`[9007199254740992,1e+21,1e+21,1.7976931348623157e+308]`},
		{` [ null , true , false , "x" ] `, `[null,true,false,"x"]`},
	} {
		got, err := canonjson.Canonical([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestParseRejectsAmbiguousJSON(t *testing.T) {
	for _, in := range []string{
		``, `{`, `{"a":1}{"a":2}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, "\"\xff\"", `"\ud800"`, `"\ud800\u0041"`,
		`{"\udc00":1}`, `1e400`, `-1e400`, `1e-400`, `-0.1e-2000000`, `0.` + strings.Repeat("0", 400) + `1`,
		`0.1` + strings.Repeat("0", 2000),
		`1` + strings.Repeat("0", 400), `nul`, `01`, `{"a":}`, `[1,]`, strings.Repeat("[", 101) +
			strings.Repeat("]", 101),
	} {
		_, err := canonjson.Parse([]byte(in))
		if e := (*canonjson.Error)(nil); !errors.As(err, &e) {
			t.Errorf("Parse(%.40q) = %v, want an *Error", in, err)
		}
	}
	for _, in := range []string{`"\ufffd"`, `"�"`, `"\\ud800"`, `"\ud83d\ude00"`, `9007199254740992`,
		`-9007199254740993`, `[9223372036854775807]`, `1e300`, `0.1`, `5e-324`, `0e2000000`, `-0.0E-2000000`,
		`0.` + strings.Repeat("1", 1998), `"\u0000"`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if _, err := canonjson.Parse([]byte(in)); err != nil {
			t.Errorf("Parse(%.40q): %v", in, err)
		}
	}
}

// wideInteger matches integers that a double may not hold.
var wideInteger = regexp.MustCompile(`[0-9]{16}`)

// FuzzCanonical compares the canonical form with an independent implementation of RFC 8785.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1,2.50,{"z":null}],"a":"\u20ac\ud83d\ude00"}`,
		`[1e21,1e-7,0.1,-0,5e-324,1.7976931348623157e308]`, `"\u001f\"\\/"`, `{"":{}}`,
		`{"\ufb33":1,"😀":2}`, `[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := canonjson.Canonical(in)
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("Canonical(%q) = %q, which is not JSON", in, got)
		}
		again, err := canonjson.Canonical(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("not a fixed point: %q then %q, %v", got, again, err)
		}
		if bytes.ContainsRune(got, '\ufffd') || bytes.Contains(got, []byte("\x7f")) {
			return // the other implementation differs on these
		}
		if wideInteger.Match(got) {
			return // the other implementation rounds integers to doubles
		}
		want, err := jcs.Transform(append(append([]byte("["), in...), ']')) // jcs accepts objects and arrays only
		if err != nil {
			return
		}
		if ours := append(append([]byte("["), got...), ']'); !bytes.Equal(ours, want) {
			t.Fatalf("Canonical(%q) = %q, jcs returns %q", in, ours, want)
		}
	})
}

// FuzzParse compares Parse with encoding/json: Parse rejects more, and returns the same values otherwise.
func FuzzParse(f *testing.F) {
	for _, s := range []string{` {"a" : [ 1 , -2.5e3 ,true,false , null ,{ } , [ ] ] , "\"\\\u20ac" : "x\ty" } `,
		"{\"a\":1}\n", `"\ud83d\ude00"`, `"\ud83d"`, `[1,]`, `{"a":1}}`, `-`, "\t7\r\n", `"`, `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := canonjson.Parse(in)
		if err != nil {
			if e := (*canonjson.Error)(nil); !errors.As(err, &e) || e.Message == "" || e.Offset > len(in) {
				t.Fatalf("Parse(%q): %v", in, err)
			}
			return
		}
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Parse(%q) = %#v, encoding/json returns %#v, %v", in, got, want, err)
		}
	})
}

func TestErrorHasPosition(t *testing.T) {
	_, err := canonjson.Parse([]byte("{\n \"a\": 1,\n \"a\": 2}"))
	var e *canonjson.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := canonjson.Error{Message: `key "a" appears twice in one object`, Offset: 12, Line: 3}
	if *e != want || e.Error() != `not valid JSON: key "a" appears twice in one object, at byte 12 (line 3)` {
		t.Errorf("got %+v, %v; want %+v", *e, e, want)
	}
}

func TestEscapePointer(t *testing.T) {
	if got := canonjson.EscapePointer("a/b~c"); got != "a~1b~0c" {
		t.Error(got)
	}
}
