//go:build oracles

// Tests against test suites of other projects. Run them with make oracles. REEVE_ORACLES is their directory.

package gate

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/canonjson"
)

// oraclePath returns a path in the directory of the test suites.
func oraclePath(t *testing.T, parts ...string) string {
	dir := os.Getenv("REEVE_ORACLES")
	if dir == "" {
		t.Fatal("REEVE_ORACLES is not set; set it to the directory of the test suites")
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// TestOracle_JSONSchemaTestSuite runs the required tests of the JSON Schema Test Suite. The gate refuses schemas that
// refer to other documents, so their tests are only counted.
func TestOracle_JSONSchemaTestSuite(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{"draft2020-12", "draft7"} {
		files, err := filepath.Glob(oraclePath(t, "jsonschema", draft, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", draft, err)
		}
		passed, remote := 0, 0
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(b, &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				text := g.Schema
				if draft == "draft7" && text[0] == '{' && !strings.Contains(string(text), `"$schema"`) {
					text = json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#",` +
						strings.TrimPrefix(strings.TrimSpace(string(text)), "{"))
					text = json.RawMessage(strings.Replace(string(text), ",}", "}", 1))
				}
				s, err := compile(text)
				if err != nil {
					if strings.Contains(err.Error(), "leads outside") {
						remote += len(g.Tests)
						continue
					}
					t.Errorf("%s: %s: %v", filepath.Base(file), g.Description, err)
					continue
				}
				if s.isCircular() {
					t.Errorf("%s: %s: reported as circular", filepath.Base(file), g.Description)
				}
				for _, c := range g.Tests {
					v, err := canonjson.Parse(c.Data)
					if err != nil {
						passed++ // a number that does not fit into a float64 is refused before validation
						continue
					}
					if got := len(s.check(v, "")) == 0; got != c.Valid {
						t.Errorf("%s: %s: %s: valid %v, want %v", filepath.Base(file), g.Description, c.Description,
							got, c.Valid)
						continue
					}
					passed++
				}
			}
		}
		t.Logf("%s: %d passed, %d refer to other documents and are refused", draft, passed, remote)
	}
}

// invalidReferenceCalls lists entries whose calls do not match their own schemas, although the suite declares them
// correct.
var invalidReferenceCalls = []string{"parallel_multiple_21", "parallel_multiple_94", "simple_python_307"}

// TestOracle_FunctionCalls registers the tool schemas of the Berkeley Function Calling Leaderboard. It checks that
// correct calls pass and that each missing required argument is reported.
func TestOracle_FunctionCalls(t *testing.T) {
	t.Parallel()
	f, err := os.Open(oraclePath(t, "bfcl", "single_turn.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	entries, tools, valid, missing := 0, 0, 0, 0
	for ; lines.Scan(); entries++ {
		var e struct {
			ID    string
			Tools []struct {
				Name, Description string
				Schema            json.RawMessage
			}
			Calls []struct {
				Name string
				Args map[string]json.RawMessage
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("entry %d: %v", entries, err)
		}
		schemas := map[string]*schema{}
		for _, tool := range e.Tools {
			row := reeve.Tool{ID: tool.Name, Kind: reeve.HTTPTool, Description: tool.Description,
				Parameters: tool.Schema}.WithDefaults()
			if err := row.Validate(); err != nil {
				t.Errorf("%s: %v", e.ID, err)
			}
			if err := new(Catalogue).checkSchemas(row); err != nil {
				t.Errorf("%s: %s: %v", e.ID, tool.Name, err)
				continue
			}
			schemas[tool.Name], _ = compile(tool.Schema)
			tools++
		}
		for _, c := range e.Calls {
			s := schemas[c.Name]
			v := parseArguments(t, c.Args)
			if len(s.check(v, "")) > 0 { // repaired as in the gate, such as null for an optional argument
				r := argumentRepair{}
				v = r.repairValue(v, s.tree, s.tree, "")
			}
			if fields := s.check(v, ""); len(fields) > 0 {
				if slices.Contains(invalidReferenceCalls, e.ID) {
					continue
				}
				t.Errorf("%s: a correct call of %s is refused: %v", e.ID, c.Name, fields)
				continue
			}
			valid++
			required, _ := s.tree["required"].([]any)
			for _, name := range required {
				without := maps.Clone(c.Args)
				delete(without, name.(string))
				want := jsonPointer([]string{name.(string)})
				if !slices.ContainsFunc(s.check(parseArguments(t, without), ""),
					func(f reeve.Field) bool { return f.Path == want }) {
					t.Errorf("%s: %s: missing argument %s is not reported", e.ID, c.Name, name)
					continue
				}
				missing++
			}
		}
	}
	if err := lines.Err(); err != nil || valid == 0 {
		t.Fatalf("%d entries, %d valid calls: %v", entries, valid, err)
	}
	t.Logf("%d entries, %d schemas registered, %d correct calls passed, %d missing arguments reported", entries, tools,
		valid, missing)
}

// parseArguments converts arguments to the form that schema.check expects.
func parseArguments(t *testing.T, args map[string]json.RawMessage) any {
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	v, err := canonjson.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
