package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"reeve"
)

func TestO01_ReadSlicesConcatenate(t *testing.T) {
	fx := newFixture(t)
	text := strings.Repeat("aé€😀\n", 300)
	fx.writeFile(fx.hostPath("/shared/a.txt"), text)
	for _, limit := range []int{1, 2, 3, 4, 5, 7, 64, 1000, len(text), 1 << 20} {
		got, offset := "", int64(0)
		for {
			r := decode[readResult](fx,
				fx.mustRun("file_read", m{"path": "/shared/a.txt", "offset": offset, "limit": limit}))
			if !utf8.ValidString(r.Text) || r.Size != int64(len(text)) ||
				(len(r.Text) > limit && utf8.RuneCountInString(r.Text) != 1) {
				t.Fatalf("%+v", r)
			}
			got += r.Text
			if offset = r.NextOffset; offset == 0 {
				break
			}
		}
		if got != text {
			t.Errorf("limit %d: %d bytes of %d", limit, len(got), len(text))
		}
	}
	if r := decode[readResult](fx, fx.mustRun("file_read", m{"path": "/shared/a.txt", "offset": 2, "limit": 5})); r.Offset != 3 || r.Text != "€" {
		t.Errorf("inside a character: %+v", r)
	}
	if r := decode[readResult](fx, fx.mustRun("file_read", m{"path": "/shared/a.txt"})); r.Text != text ||
		r.NextOffset != 0 {
		t.Errorf("whole: %d bytes, next %d", len(r.Text), r.NextOffset)
	}
	fx.wantError(reeve.Validation, "file_read", m{"path": "/shared/a.txt", "offset": len(text) + 1})
	fx.mustRun("file_read", m{"path": "/shared/a.txt", "offset": len(text)})
	fx.writeFile(fx.hostPath("/shared/empty"), "")
	fx.mustRun("file_read", m{"path": "/shared/empty"})
	for name, b := range map[string]string{"png": "\x89PNG\x00", "latin": "caf\xe9 au lait",
		"late": strings.Repeat("x", 100) + "\xff", "cut": "caf\xc3"} {
		fx.writeFile(fx.hostPath("/shared/"+name), b)
		if e := fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/shared/" + name}); !strings.Contains(e.Message,
			"not UTF-8 text") {
			t.Error(e.Message)
		}
	}
	long := strings.Repeat("é", 4000)
	// Text with NUL is valid UTF-8, but the tools refuse it.
	for b, at := range map[string]string{"abc\x00def": "at byte 3,", long + "\x00" + long: "at byte 8000,"} {
		fx.writeFile(fx.hostPath("/shared/nul"), b)
		for _, offset := range []int{0, 1} {
			if e := fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/shared/nul", "offset": offset,
				"limit": 10_000}); !strings.Contains(e.Message, "/shared/nul contains a NUL character "+at) ||
				!strings.Contains(e.Hint, "without NUL") {
				t.Errorf("%s; %s", e.Message, e.Hint)
			}
		}
	}
	if e := fx.wantError(reeve.ToolFailed, "file_edit", m{"path": "/shared/nul", "old": "abc", "new": "d"}); !strings.Contains(e.Message, "contains a NUL character") {
		t.Error(e.Message)
	}
	fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/shared"})
	fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/"})
	if e := fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/shared/x/none"}); e.Message != "file not found: /shared/x/none" {
		t.Error(e.Message)
	}
}

func TestO01_List(t *testing.T) {
	fx := newFixture(t)
	fx.newPack(Config{MaxList: 10})
	for i := range 25 {
		fx.writeFile(fx.hostPath(fmt.Sprintf("/shared/d/%02d", i)), strings.Repeat("x", i))
	}
	var names []string
	after := ""
	for {
		r := decode[listResult](fx, fx.mustRun("file_list", m{"path": "/shared/d", "after": after}))
		if r.Total != 25 {
			t.Fatalf("%+v", r)
		}
		for _, e := range r.Entries {
			if e.Kind != "file" || strconv.FormatInt(e.Size, 10) != strings.TrimLeft(e.Name, "0") && e.Name != "00" ||
				e.Modified.IsZero() {
				t.Errorf("%+v", e)
			}
			names = append(names, e.Name)
		}
		if !r.More {
			break
		}
		after = names[len(names)-1]
	}
	if len(names) != 25 || names[0] != "00" || names[24] != "24" {
		t.Errorf("%v", names)
	}
	fx.writeFile(fx.hostPath("/tmp/a\nb"), "x")
	if r := decode[listResult](fx, fx.mustRun("file_list", m{"path": "/tmp/"})); len(r.Entries) != 1 ||
		r.Entries[0].Note == "" || r.Entries[0].Name != `"a\nb"` {
		t.Errorf("%+v", r)
	}
	fx.wantError(reeve.ToolFailed, "file_list", m{"path": "/shared/none"})
	fx.wantError(reeve.ToolFailed, "file_list", m{"path": "/shared/d/00"})
}

// countdownContext is a context that is canceled after a number of calls of Err.
type countdownContext struct {
	context.Context
	remaining int
}

func (c *countdownContext) Err() error {
	if c.remaining--; c.remaining < 0 {
		return context.Canceled
	}
	return nil
}

// TestG18_CanceledSearchStops matches a line with an expression of many states, which would take hours for a long line.
func TestG18_CanceledSearchStops(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/long"), strings.Repeat("a", 400)+"\n")
	inv := fx.invocation(m{"query": strings.Repeat("(a?){1000}", 20) + "b", "regexp": true, "path": "/shared/long"})
	caller := &countdownContext{context.Background(), 100}
	search := fx.tools["file_search"].Handler
	if out, err := search(caller, inv); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", out, err)
	}
	for line, want := range map[string]bool{strings.Repeat("a", 400): false, strings.Repeat("€", 1000) + "b": true,
		"b": true, "": false} {
		match, err := compileRegexp("(a?){1000}b$")
		if err != nil || match(context.Background(), []byte(line)) != want {
			t.Errorf("%.10s…: not %v, %v", line, want, err)
		}
	}
}

func TestO01_Search(t *testing.T) {
	fx := newFixture(t)
	for i := range 60 {
		fx.writeFile(fx.hostPath(fmt.Sprintf("/shared/d%d/f%02d.txt", i%3, i)), "first\r\nthe needle "+strconv.Itoa(i)+
			"\r\n")
	}
	fx.writeFile(fx.hostPath("/tmp/n.md"), strings.Repeat("€", 500)+"needle")
	fx.writeFile(fx.hostPath("/tmp/bin"), "needle\x00")
	find := func(args m, config string) searchResult {
		inv := fx.invocation(args)
		inv.Config = json.RawMessage(config)
		out, err := fx.run("file_search", inv)
		if err != nil {
			t.Fatal(err)
		}
		return decode[searchResult](fx, out)
	}
	for _, c := range []struct {
		limit  int
		config string
		want   int
	}{{0, "", 10}, {0, "null", 10}, {0, `{"default_limit":20}`, 20}, {5, `{"default_limit":20}`, 5}, {50, "", 50}} {
		args := m{"query": "needle"}
		if c.limit > 0 {
			args["limit"] = c.limit
		}
		r := find(args, c.config)
		if len(r.Matches) != c.want || !r.More {
			t.Errorf("%+v: %d matches", c, len(r.Matches))
		}
		if r.Matches[0] != (searchMatch{"/shared/d0/f00.txt", 2, "the needle 0"}) {
			t.Errorf("%+v", r.Matches[0])
		}
	}
	if r := find(m{"query": `needle \d$`, "regexp": true}, ""); len(r.Matches) != 10 || r.More {
		t.Errorf("%+v", r)
	}
	if r := find(m{"query": "needle", "glob": "*.md"}, ""); len(r.Matches) != 1 ||
		!utf8.ValidString(r.Matches[0].Text) || len(r.Matches[0].Text) > 310 {
		t.Errorf("%+v", r)
	}
	if r := find(m{"query": "needle", "glob": "/shared/d1/*", "limit": 50}, ""); len(r.Matches) != 20 || r.More {
		t.Errorf("%+v", r)
	}
	if r := find(m{"query": "needle", "path": "/shared/d1/f01.txt"}, ""); len(r.Matches) != 1 {
		t.Errorf("%+v", r)
	}
	if r := find(m{"query": "needle", "path": "/tmp"}, ""); len(r.Matches) != 1 || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	fx.wantError(reeve.Validation, "file_search", m{"query": "(", "regexp": true})
	fx.wantError(reeve.Validation, "file_search", m{"query": "x", "glob": "["})
	fx.wantError(reeve.ToolFailed, "file_search", m{"query": "x", "path": "/shared/none"})
	fx.newPack(Config{MaxEntries: 30, MaxFile: 100})
	if r := find(m{"query": "absent"}, ""); !r.Partial {
		t.Errorf("%+v", r)
	}
	if r := find(m{"query": "needle", "path": "/tmp"}, ""); r.Skipped != 2 {
		t.Errorf("the large file was not skipped: %+v", r)
	}
}

func TestO01_SearchSettings(t *testing.T) {
	tool := newFixture(t).tools["file_search"]
	schema := func(raw json.RawMessage) *jsonschema.Resolved {
		var s jsonschema.Schema
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	config, params := schema(tool.ConfigSchema), schema(tool.Parameters)
	for v, ok := range map[any]bool{1: true, 20: true, 50: true, 0: false, -1: false, 51: false, "x": false} {
		if err := config.Validate(map[string]any{"default_limit": v}); (err == nil) != ok {
			t.Errorf("default_limit %v: %v", v, err)
		}
		if err := params.Validate(map[string]any{"query": "q", "limit": v}); (err == nil) != ok {
			t.Errorf("limit %v: %v", v, err)
		}
	}
}

func TestO01_Declarations(t *testing.T) {
	fx := newFixture(t)
	for id, tool := range fx.tools {
		if tool.Pack != "files" || tool.Category != "filesystem" || tool.Check == nil || tool.Capability == "" ||
			tool.Validate() != nil {
			t.Errorf("%s: %+v", id, tool)
		}
		if reads := id == "file_read" || id == "file_list" || id == "file_search"; reads != (tool.Effect == reeve.Read) {
			t.Errorf("%s has the effect %s", id, tool.Effect)
		} else if !reads && (tool.Effect != reeve.Verifiable || tool.Preview == nil || tool.Verify == nil ||
			!tool.Previews) {
			t.Errorf("%s: %+v", id, tool)
		}
	}
	if len(fx.tools) != 8 {
		t.Errorf("%d tools", len(fx.tools))
	}
}

// TestO01_ListPagesFitOutput checks that each page of a listing fits the output limit, and that the pages contain every
// entry once, also with names that must be quoted.
func TestO01_ListPagesFitOutput(t *testing.T) {
	fx := newFixture(t)
	want := map[string]bool{}
	for i := range 400 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("long name ", 8))
		if i%7 == 0 {
			name = fmt.Sprintf("%03d\n\xff%s", i, strings.Repeat("\x01", 100))
		}
		fx.writeFile(fx.hostPath("/shared/d/"+name), "x")
		want[name] = true
	}
	after := ""
	for pages := 0; ; pages++ {
		inv := fx.invocation(m{"path": "/shared/d", "after": after})
		inv.FitsOutput = func(v any) bool { return len(fx.encode(v)) <= 5000 }
		out, err := fx.run("file_list", inv)
		if err != nil {
			t.Fatal(err)
		}
		r := decode[listResult](fx, out)
		if len(out) > 5000 || r.Total != 400 || len(r.Entries) == 0 || pages > 400 {
			t.Fatalf("page %d has %d bytes, %d entries of %d", pages, len(out), len(r.Entries), r.Total)
		}
		for _, e := range r.Entries {
			name := e.Name
			if e.Note != "" {
				name, _ = strconv.Unquote(name)
			}
			if !want[name] {
				t.Fatalf("%q is listed twice or does not exist", name)
			}
			delete(want, name)
			after = e.Name
		}
		if !r.More {
			break
		}
	}
	if len(want) > 0 {
		t.Errorf("%d entries are not listed", len(want))
	}
}
