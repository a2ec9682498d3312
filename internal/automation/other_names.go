package automation

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// otherNames lists further function names of tools, for scripts that use the usual names. A name that another tool has
// is left to that tool.
var otherNames = []struct{ name, tool string }{
	{"Files.save", "file_write"},
	{"Memory.createNote", "memory_save"},
	{"Memory.deleteNote", "memory_delete"},
	{"Memory.getNote", "memory_get"},
	{"Memory.listNotesMetadata", "memory_list"},
	{"Memory.searchNotes", "memory_search"},
	{"Memory.updateNote", "memory_update"},
	{"PDF.explain", "pdf_explain"},
	{"Web.fetchParse", "web_fetch"},
}

// renameArguments returns the input of a tool for a call under another name. A note's id is note_id for the tool, and
// its title is the first line of its content.
func renameArguments(name, tool string, input json.RawMessage) json.RawMessage {
	isOther := slices.ContainsFunc(otherNames, func(o struct{ name, tool string }) bool {
		return o.name == name && o.tool == tool
	})
	var args map[string]json.RawMessage
	if !isOther || !strings.HasPrefix(name, "Memory.") || json.Unmarshal(input, &args) != nil {
		return input
	}
	if id, ok := args["id"]; ok && args["note_id"] == nil {
		args["note_id"] = id
		delete(args, "id")
	}
	var title, content string
	if args["title"] != nil && json.Unmarshal(args["title"], &title) == nil &&
		json.Unmarshal(args["content"], &content) == nil {
		if content != title && !strings.HasPrefix(content, title+"\n") {
			content = strings.TrimSpace(title + "\n" + content)
		}
		delete(args, "title")
		text, err := json.Marshal(content)
		if err != nil {
			return input
		}
		args["content"] = text
	}
	out, err := json.Marshal(args)
	if err != nil {
		return input
	}
	return out
}

// addOtherNames adds the further names of the tools that the script has.
func (n functionTable) addOtherNames() {
	for _, other := range otherNames {
		if t, ok := n.byID[other.tool]; ok {
			if _, taken := n.byName[other.name]; !taken {
				n.byName[other.name] = t
			}
		}
	}
}

// toolsToAdd says what the tools do that scripts of other programs use and Reeve does not have. A workspace can define
// a tool whose id is the function's name.
var toolsToAdd = map[string]string{
	"GDocs.api":        "uses Google Docs",
	"GDrive.api":       "uses Google Drive",
	"GSheets.api":      "uses Google Sheets",
	"Gmail.api":        "uses Gmail",
	"Images.generate":  "makes pictures",
	"Images.transform": "changes pictures",
	"Notion.api":       "uses Notion",
}

// functionPattern matches what looks like a function of a tool.
var functionPattern = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]*)\.([a-z][A-Za-z0-9]*)\b`)

// nameFunctions names the functions of the run's tools, and of those tools that the script names and cannot call, so
// that their calls explain themselves.
func (w *execution) nameFunctions(ctx context.Context, tools []reeve.Tool) error {
	w.functions = nameTools(tools)
	for name := range toolsToAdd {
		space, _, _ := strings.Cut(name, ".")
		if _, isTool := w.functions.byName[name]; !isTool && strings.Contains(w.script.Source, space) {
			w.functions.uncallable[name] = ""
		}
	}
	unknown := w.functions.findUnknown(w.script.Source)
	if len(unknown) == 0 {
		return nil
	}
	var all []reeve.Tool
	if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		all, err = s.Agents().Catalogue(ctx, w.run.WorkspaceID)
		return err
	}); err != nil {
		return err
	}
	theirs := nameTools(all)
	for _, name := range unknown {
		if t, isTool := theirs.byName[name]; isTool {
			w.functions.uncallable[name] = t.ID
		}
	}
	return nil
}

// findUnknown lists what looks like a function in a source and is none.
func (n functionTable) findUnknown(source string) (out []string) {
	for _, m := range functionPattern.FindAllStringSubmatch(source, -1) {
		name := m[0]
		_, isOurs := builtinDocs[name]
		_, isForJobs := scriptJobDocs[name]
		_, isTool := n.byName[name]
		if !isOurs && !isForJobs && !isTool && !slices.Contains(globals, m[1]) && isValidName(name) &&
			!slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// explainUncallable returns the error of a call whose tool the script cannot call. An error of the gate is replaced if
// the tool exists and is not attached. The name is the function that the script called, or empty. The message says what
// to do, because the message of a run has no hint.
func (w *execution) explainUncallable(ctx context.Context, name, id string, refused error) error {
	if refused != nil && reeve.CodeOf(refused) != reeve.NotFound {
		return refused
	}
	if id == "" {
		return reeve.Errorf(reeve.Unsupported, "%s needs a tool that %s, and the workspace has none; define one with "+
			"the id %s, see docs/http-tools.md, and attach it to the automation", name, toolsToAdd[name], name)
	}
	var agent reeve.Agent
	isMissing := false
	if err := w.DB.View(ctx, func(s *store.Snap) error {
		t, err := s.Agents().GetTool(ctx, w.run.WorkspaceID, id)
		if err != nil || t.Pack == scriptsPack {
			return err
		}
		if agent, err = s.Agents().GetAgent(ctx, w.run.WorkspaceID, w.run.AgentID); err != nil {
			return err
		}
		attached, err := s.Agents().AgentTools(ctx, agent.ID)
		isMissing = !slices.ContainsFunc(attached, func(t store.AgentTool) bool { return t.ToolID == id })
		return err
	}); err != nil && reeve.CodeOf(err) != reeve.NotFound {
		return err
	}
	if !isMissing {
		return refused
	}
	what := "the tool " + id
	if name != "" {
		what = name + ": " + what
	}
	return reeve.Errorf(reeve.NotFound, "%s is not attached to the automation %s; attach it with: reeve agents attach "+
		"%s %s", what, agent.Name, agent.Name, id)
}
