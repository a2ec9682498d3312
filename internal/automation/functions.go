package automation

import (
	"encoding/json"
	"fmt"
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
)

const (
	isMutation  = "Mutation: call it inside Items.withItem, and await it."
	notMutation = "Not a mutation: it may be called anywhere."
)

var own = map[string]string{
	withItem: "Items.withItem(id, title, async (ctx) => ...) works on one item. The id names the thing itself, " +
		"stably; the title is for people. ctx.item is {id, title, isDone, attempt}. " +
		"The item is done when the handler returns, failed when it throws. One at a time; none inside another. An " +
		"item that a person skipped is passed over. " +
		"Whatever changes something is called in here. " + notMutation,
	listItems: "Items.list({status, id, limit, offset}) gives {items, total, has_more}, newest first: 100 unless " +
		"told, 1000 at most. " + notMutation,
	totalItems: "Items.total(n) says how many items there are in all, for people who watch. " + notMutation,
	consoleLog: "Console.log(...values) writes a line into the run's log. " + notMutation,
	getDocs:    "getDocs(name?) describes a function, or the functions of a namespace, or all. " + notMutation,
	toolsCall:  "Tools.call(id, input) calls a tool by its own id. Whether it is a mutation is the tool's affair.",
}

// The functions that scripts have only while they are planned or mended: see [trial].
const (
	listScripts   = "Scripts.list"
	getScript     = "Scripts.get"
	scriptHistory = "Scripts.history"
	scriptRuns    = "Scripts.runs"
)

const onlyTask = "Only while planning and mending: a saved script does not have it. " + notMutation

var taskOwn = map[string]string{
	listScripts:   "Scripts.list() lists the workspace's automations. " + onlyTask,
	getScript:     "Scripts.get({automation, version}) gives a version with its text; the active one if none is named. " + onlyTask,
	scriptHistory: "Scripts.history({automation}) gives the versions and what changed, newest first. " + onlyTask,
	scriptRuns:    "Scripts.runs({automation, run}) gives the last runs, or one with its log. " + onlyTask,
}

// names says under which name a script finds each tool.
type names struct {
	tool map[string]reeve.Tool // by function
	byID map[string]reeve.Tool
	task bool // it is planned or mended
}

// globals are names of the language, which no namespace may take.
var globals = strings.Fields(`Array ArrayBuffer BigInt Boolean DataView Date Error Function Infinity Intl Iterator JSON Map Math NaN Number Object Promise Proxy Reflect
	RegExp Set String Symbol WeakMap WeakRef WeakSet`)

// nameTools gives each tool its name: Namespace.method. An id with a dot says both (mail.send is Mail.send). Otherwise
// the pack, or the category, is the namespace, and the id is the method, without the pack's own name in front
// (file_read of files is Files.read). Words are joined in camel case. Of two tools with one name the second goes by its
// whole id, and one that has no name a script could write is reached by Tools.call.
func nameTools(tools []reeve.Tool) names {
	n := names{tool: map[string]reeve.Tool{}, byID: map[string]reeve.Tool{}}
	for _, t := range tools {
		if t.Pack == scriptsPack {
			continue // for agents that plan and mend; see Allow
		}
		n.byID[t.ID] = t
		for _, name := range candidates(t) {
			_, taken := n.tool[name]
			_, later := taskOwn[name]
			if _, ours := own[name]; !taken && !ours && !later && writable(name) {
				n.tool[name] = t
				break
			}
		}
	}
	return n
}

func candidates(t reeve.Tool) []string {
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
	space = pascal(space)
	if slices.Contains(globals, space) {
		space += "Tools"
	}
	return []string{space + "." + camel(method), space + "." + camel(t.ID)}
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

func pascal(s string) string {
	var b strings.Builder
	for _, w := range words(s) {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

func camel(s string) string {
	p := pascal(s)
	if p == "" {
		return ""
	}
	return strings.ToLower(p[:1]) + p[1:]
}

// writable tells whether a script can write a name.
func writable(name string) bool {
	space, method, _ := strings.Cut(name, ".")
	for _, part := range []string{space, method} {
		if part == "" || part == "prototype" || part == "constructor" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
	}
	return true
}

// functions lists every name.
func (n names) functions() []string {
	var out []string
	for name := range own {
		out = append(out, name)
	}
	for name := range n.tool {
		out = append(out, name)
	}
	for name := range taskOwn {
		if n.task {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// docs describes what a script can call.
func (w *work) docs(input json.RawMessage) (json.RawMessage, error) {
	var name string
	if input != nil && json.Unmarshal(input, &name) != nil {
		return nil, reeve.Errorf(reeve.Validation, "getDocs takes the name of a function or a namespace, or nothing")
	}
	text := w.names.describe(name)
	if text == "" {
		return nil, reeve.Errorf(reeve.NotFound, "there is no function or namespace %q", name).
			Hintf("getDocs() lists them all")
	}
	return json.Marshal(text)
}

// describe is the documentation of one function, of a namespace, or of all.
func (n names) describe(name string) string {
	var b strings.Builder
	for _, f := range n.functions() {
		if name != "" && f != name && !strings.HasPrefix(f, name+".") {
			continue
		}
		text, ok := own[f]
		if !ok {
			text, ok = taskOwn[f]
		}
		if ok {
			fmt.Fprintf(&b, "%s\n  %s\n", f, text)
			continue
		}
		t := n.tool[f]
		fmt.Fprintf(&b, "%s(input)\n  %s %s\n", f, t.Description, mutationNote(t))
		if name != "" {
			fmt.Fprintf(&b, "  input: %s\n", t.Parameters)
		}
	}
	return b.String()
}

func mutationNote(t reeve.Tool) string {
	switch {
	case !t.Effect.Mutates():
		return notMutation
	case t.Reads != nil:
		return "A mutation or not, by its arguments: what changes something must be called inside Items.withItem."
	}
	return isMutation
}
