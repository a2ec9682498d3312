package automation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reeve"
)

// The functions that every script has beside its tools.
const (
	withItem   = "Items.withItem"
	listItems  = "Items.list"
	totalItems = "Items.total"
	consoleLog = "Console.log"
	getDocs    = "getDocs"
	toolsCall  = "Tools.call"

	ignoreError = "ignore" // a method of the argument of an item's handler
)

const (
	mutationText = "Mutation: call it inside Items.withItem and await it."
	readText     = "Not a mutation: call it anywhere."
)

// builtinDocs describes the functions that every script has.
var builtinDocs = map[string]string{
	withItem: "Items.withItem(id, title, async (ctx) => ...) processes one item. The id is stable across runs; the " +
		"title is shown to people. ctx.item is {id, title, isDone, attempt}. The item is done when the handler " +
		"returns and failed when it throws, or when a mutation failed and the handler caught the error without " +
		"ctx.ignore(error). Process one item at a time; do not nest calls. Items that a person " +
		"skipped are passed over. Make every mutation inside the handler. " + readText,
	listItems: "Items.list({status, id, limit, offset}) returns {items, total, has_more}, newest first. limit is 1 " +
		"to 1000, default 100. An item has id, title, status, attempt, first_run, last_run, code and message (why " +
		"it failed), created_at and updated_at (milliseconds since 1970). status is processing, done, failed, " +
		"skipped or needs_attention. " +
		"Other names: logical_item_id for id, current_attempt_id, created_by_run_id, last_run_id. " + readText,
	totalItems: "Items.total(n) sets the total number of items shown in the run's progress. " + readText,
	consoleLog: "Console.log(...values) writes a line to the run's log. " + readText,
	getDocs: "getDocs(name?) returns a text that describes a function, the functions of a namespace, or all " +
		"functions. " + readText,
	toolsCall: "Tools.call(id, input) calls a tool by its id. It is a mutation if the tool's call is one.",
}

// The functions that a script has only while it is tried for a script job: see [trial].
const (
	listScripts   = "Scripts.list"
	getScript     = "Scripts.get"
	scriptHistory = "Scripts.history"
	scriptRuns    = "Scripts.runs"
)

const onlyInScriptJob = "Only within a script job: a saved script does not have it. " + readText

// scriptJobDocs describes the functions that a script has only within a script job.
var scriptJobDocs = map[string]string{
	listScripts: "Scripts.list() lists the workspace's automations. " + onlyInScriptJob,
	getScript: "Scripts.get({automation, version}) returns a version with its source; default: the active one. " +
		onlyInScriptJob,
	scriptHistory: "Scripts.history({automation}) lists the versions and their comments, newest first. " +
		onlyInScriptJob,
	scriptRuns: "Scripts.runs({automation, run}) lists the last 10 runs, or one run with its log. " + onlyInScriptJob,
}

// functionTable maps the function names of a script to tools.
type functionTable struct {
	byName       map[string]reeve.Tool // by function name
	byID         map[string]reeve.Tool
	uncallable   map[string]string // functions of tools that the script cannot call, with the tool's id if it exists
	forScriptJob bool              // the functions of script jobs are included
}

// globals lists the names of the language. A namespace must not use them.
var globals = strings.Fields(`Array ArrayBuffer BigInt Boolean DataView Date Error Function Infinity Intl Iterator JSON Map Math NaN Number Object Promise Proxy Reflect
	RegExp Set String Symbol WeakMap WeakRef WeakSet`)

// nameTools assigns each tool a function name, Namespace.method. A dotted tool id gives both parts: mail.send becomes
// Mail.send. For any other id the namespace is the pack, or else the category, and the method is the id without the
// pack's name in front: file_read of the pack files becomes Files.read. Words are joined in camel case. If a name is
// taken, the method is the whole tool id. A tool without a valid name can only be called with Tools.call.
func nameTools(tools []reeve.Tool) functionTable {
	n := functionTable{byName: map[string]reeve.Tool{}, byID: map[string]reeve.Tool{}, uncallable: map[string]string{}}
	for _, t := range tools {
		if t.Pack == scriptsPack {
			continue // only for script jobs; see ItemRule.CheckCall
		}
		n.byID[t.ID] = t
		for _, name := range candidateNames(t) {
			_, taken := n.byName[name]
			_, later := scriptJobDocs[name]
			if _, ours := builtinDocs[name]; !taken && !ours && !later && isValidName(name) {
				n.byName[name] = t
				break
			}
		}
	}
	n.addOtherNames()
	return n
}

// candidateNames lists the function names of a tool, the preferred one first.
func candidateNames(t reeve.Tool) []string {
	space, method, dotted := strings.Cut(t.ID, ".")
	if !dotted {
		space, method = t.Pack, t.ID
		if space == "" {
			space = t.Category
		}
		for _, front := range []string{space, strings.TrimSuffix(space, "s")} {
			if rest, ok := strings.CutPrefix(t.ID, front+"_"); ok {
				method = rest
				break
			}
		}
	}
	space = pascalCase(space)
	if slices.Contains(globals, space) {
		space += "Tools"
	}
	return []string{space + "." + camelCase(method), space + "." + camelCase(t.ID)}
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

func pascalCase(s string) string {
	var b strings.Builder
	for _, w := range splitWords(s) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

func camelCase(s string) string {
	p := pascalCase(s)
	if p == "" {
		return ""
	}
	return strings.ToLower(p[:1]) + p[1:]
}

// isValidName reports whether a script can write a function name.
func isValidName(name string) bool {
	space, method, _ := strings.Cut(name, ".")
	for _, part := range []string{space, method} {
		if part == "" || part == "prototype" || part == "constructor" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
	}
	return true
}

// functionNames lists all function names, sorted.
func (n functionTable) functionNames() []string {
	var out []string
	for name := range builtinDocs {
		out = append(out, name)
	}
	for name := range n.byName {
		out = append(out, name)
	}
	for name := range scriptJobDocs {
		if n.forScriptJob {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// renderDocs implements getDocs. The input is a function, a namespace or nothing.
func (w *execution) renderDocs(input json.RawMessage) (json.RawMessage, error) {
	var name string
	if input != nil && json.Unmarshal(input, &name) != nil {
		return nil, reeve.Errorf(reeve.Validation, "getDocs accepts the name of a function or namespace, or nothing")
	}
	text := w.functions.renderDocs(name)
	if text == "" {
		return nil, reeve.Errorf(reeve.NotFound, "function or namespace %q not found", name).
			Hintf("call getDocs() to list all functions")
	}
	return json.Marshal(text)
}

// renderDocs describes one function, the functions of a namespace, or all if name is empty. It returns "" for an
// unknown name.
func (n functionTable) renderDocs(name string) string {
	var b strings.Builder
	for _, f := range n.functionNames() {
		if name != "" && f != name && !strings.HasPrefix(f, name+".") {
			continue
		}
		text, ok := builtinDocs[f]
		if !ok {
			text, ok = scriptJobDocs[f]
		}
		if ok {
			fmt.Fprintf(&b, "%s\n  %s\n", f, text)
			continue
		}
		t := n.byName[f]
		fmt.Fprintf(&b, "%s(input)\n  %s %s\n", f, t.Description, describeMutation(t))
		if name != "" {
			fmt.Fprintf(&b, "  input: %s\n", t.Parameters)
			if len(t.OutputSchema) > 0 {
				fmt.Fprintf(&b, "  output: %s\n", t.OutputSchema)
			}
		}
	}
	return b.String()
}

// describeMutation says whether calls of a tool are mutations.
func describeMutation(t reeve.Tool) string {
	switch {
	case !t.Effect.Mutates():
		return readText
	case t.IsRead != nil:
		if reads, writes := classifyMethods(t); len(reads) > 0 && len(writes) > 0 {
			return "Mutation or not, by its arguments. Not a mutation, call it anywhere: " + strings.Join(reads, ", ") +
				". Mutation, call it inside Items.withItem and await it: " + strings.Join(writes, ", ") + "."
		}
		return "A mutation or not, depending on the arguments: call it inside Items.withItem if it changes something."
	}
	return mutationText
}

// classifyMethods lists the values of an argument, such as method, that decide whether a call changes something: those
// that only read, and the others. Both lists are empty if no argument alone decides.
func classifyMethods(t reeve.Tool) (reads, writes []string) {
	var schema struct {
		Properties map[string]struct{ Enum []any }
	}
	if t.IsRead == nil || json.Unmarshal(t.Parameters, &schema) != nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		reads, writes = nil, nil
		for _, v := range schema.Properties[name].Enum {
			args, err := json.Marshal(map[string]any{name: v})
			if err != nil {
				continue
			}
			if shown := fmt.Sprint(v); t.IsRead(args) {
				reads = append(reads, shown)
			} else {
				writes = append(writes, shown)
			}
		}
		if len(reads) > 0 {
			return reads, writes
		}
	}
	return nil, nil
}
