package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// entry is a tool as calls see it: its row, its handler, its compiled schema.
type entry struct {
	tool        reeve.Tool
	row         string // hash of the row it was made from
	fingerprint string // what an approval is bound to
	args        *schema
	config      *schema
	needs       bool // it cannot be called without settings
}

func rowHash(t reeve.Tool) string {
	return reeve.Hash(mustJSON(t))
}

// Catalogue holds the tools: those that are compiled in, and those that workspaces define.
type Catalogue struct {
	db       *store.DB
	builders map[reeve.ToolKind]Builder
	handlers map[string]reeve.Tool // the compiled-in tools, by handler key
	schemas  schemaCache
}

// AddTool registers a compiled-in tool. Two tools of one name are a mistake that stops the start.
func (c *Catalogue) AddTool(t reeve.Tool) error {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return err
	}
	if t.Handler == nil {
		return reeve.Errorf(reeve.Validation, "the tool %s has no handler", t.ID)
	}
	if _, dup := c.handlers[t.HandlerKey]; dup || c.isBuiltin(t.ID) {
		return reeve.Errorf(reeve.AlreadyExists, "two tools are called %q", t.ID).Hintf("rename one of them")
	}
	if err := c.checkSchemas(t); err != nil {
		return err
	}
	c.handlers[t.HandlerKey] = t
	return nil
}

// Open writes the compiled-in tools into the catalogue and registers this process.
func (g *Gate) Open(ctx context.Context) error {
	var shadowed []reeve.Tool
	err := g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if shadowed, err = g.Catalogue.sync(ctx, tx); err != nil {
			return err
		}
		return tx.System().RegisterProcess(ctx, g.process)
	})
	for _, t := range shadowed {
		g.Log.Warn("a stored tool cannot be called: "+takenID, "tool", t.ID, "workspace", t.WorkspaceID)
	}
	return err
}

// sync writes the compiled-in tools that changed. It returns the tools of workspaces whose ids are now compiled-in
// ones.
func (c *Catalogue) sync(ctx context.Context, tx *store.Tx) (shadowed []reeve.Tool, err error) {
	rows, err := tx.Agents().Catalogue(ctx, "")
	if err != nil {
		return nil, err
	}
	have := map[string]reeve.Tool{}
	for _, r := range rows {
		have[r.ID] = r
	}
	changed := false
	for _, t := range c.handlers {
		old, ok := have[t.ID]
		if ok && old.Fingerprint() == t.Fingerprint() {
			continue
		}
		changed = true
		t.CreatedAt = old.CreatedAt
		if err := tx.Agents().PutTool(ctx, t); err != nil {
			return nil, err
		}
	}
	if changed {
		if err := tx.TouchAll(ctx); err != nil {
			return nil, err
		}
	}
	shadowed, err = tx.Agents().Shadowed(ctx)
	return slices.DeleteFunc(shadowed, func(t reeve.Tool) bool { return !c.isBuiltin(t.ID) }), err
}

// takenID says why a stored tool is broken whose id a later build gave to a tool of its own.
const takenID = "its id is now a built-in tool's; make it again under another id"

func (c *Catalogue) isBuiltin(id string) bool {
	for _, t := range c.handlers {
		if t.ID == id {
			return true
		}
	}
	return false
}

// entry makes a row callable. One that cannot be is kept, with the reason, so that the others are not harmed and people
// see it.
func (c *Catalogue) entry(row reeve.Tool) *entry {
	e := &entry{tool: row, row: rowHash(row)}
	if err := c.equip(e); err != nil {
		e.tool.Broken = reeve.AsError(err).Message
	}
	e.fingerprint = e.tool.Fingerprint()
	return e
}

func (c *Catalogue) equip(e *entry) (err error) {
	row := e.tool
	if row.WorkspaceID != "" && c.isBuiltin(row.ID) {
		return reeve.Errorf(reeve.AlreadyExists, takenID)
	}
	// as it was when it was stored: a word that nobody knows may have stood for another
	if err := row.Validate(); err != nil {
		return reeve.Errorf(reeve.Unsupported, "its row in the database is not valid: %s", reeve.AsError(err).Message)
	}
	// first: it also says which settings take an owner, of a tool that this machine cannot run too
	if len(row.ConfigSchema) > 0 {
		if e.config, err = c.schemas.compile(row.ConfigSchema); err != nil {
			return err
		}
		e.needs = len(e.config.check(map[string]any{}, "/config")) > 0
	}
	if e.args, err = c.schemas.compile(row.Parameters); err != nil {
		return err
	}
	if row.Kind == reeve.GoTool {
		h, ok := c.handlers[row.HandlerKey]
		if !ok {
			return reeve.Errorf(reeve.Unsupported, "no handler %q in this build", row.HandlerKey)
		}
		e.tool.Settings = h.Settings // first, as above
		if h.Broken != "" {          // this machine lacks what it needs
			return reeve.Errorf(reeve.Unsupported, "%s", h.Broken)
		}
		e.tool.Handler, e.tool.Check, e.tool.Preview, e.tool.Verify, e.tool.Categories, e.tool.Reads,
			e.tool.Awaits = h.Handler, h.Check, h.Preview, h.Verify, h.Categories, h.Reads, h.Awaits
		e.tool.Names, e.tool.PassTokens = h.Names, h.PassTokens
		return nil
	}
	b, ok := c.builders[row.Kind]
	if !ok {
		return reeve.Errorf(reeve.Unsupported, "tools of kind %q are not supported in this build", row.Kind)
	}
	e.tool, err = b.Build(row)
	return err
}

// checkSchemas compiles a tool's schemas, naming the one that is wrong.
func (c *Catalogue) checkSchemas(t reeve.Tool) error {
	if len(t.Parameters) == 0 {
		return wrongField("/parameters", "a JSON Schema of type object", "the tool has no schema for its arguments")
	}
	s, err := c.schemas.compile(t.Parameters)
	if err != nil {
		return wrongField("/parameters", "a valid JSON Schema (2020-12)", "%s", reeve.AsError(err).Message)
	}
	if kind, said := s.tree["type"]; s.tree == nil || said && kind != "object" {
		return wrongField("/parameters/type", `"object"`, "arguments are always an object")
	}
	if s.circular() {
		return wrongField("/parameters", "references that lead further",
			"the schema refers to itself in a circle, so that what is checked there could never fit")
	}
	for i, name := range t.Identity {
		if s.lacks(name) {
			return wrongField("/identity/"+strconv.Itoa(i), "one of the tool's parameters",
				"the parameters do not define %q", name)
		}
	}
	if len(t.ConfigSchema) > 0 {
		config, err := c.schemas.compile(t.ConfigSchema)
		if err != nil {
			return wrongField("/config_schema", "a valid JSON Schema (2020-12)", "%s", reeve.AsError(err).Message)
		}
		if kind, said := config.tree["type"]; said && kind != "object" {
			return wrongField("/config_schema/type", `"object"`, "settings are always an object")
		}
		if config.circular() {
			return wrongField("/config_schema", "references that lead further",
				"the schema refers to itself in a circle, so that what is checked there could never fit")
		}
	}
	return nil
}

func wrongField(path, expected, format string, args ...any) error {
	m := fmt.Sprintf(format, args...)
	return &reeve.Error{Code: reeve.Validation, Message: m,
		Fields: []reeve.Field{{Path: path, Message: m, Expected: expected}}}
}

// Tools lists a workspace's catalogue, broken ones marked.
func (c *Catalogue) Tools(ctx context.Context, workspace, category string) ([]reeve.Tool, error) {
	var list []reeve.Tool
	err := c.db.View(ctx, func(s *store.Snap) (err error) {
		if _, err := s.Agents().GetWorkspace(ctx, workspace); err != nil {
			return err
		}
		list, err = s.Agents().ListTools(ctx, workspace, category)
		return err
	})
	for i := range list {
		list[i].Broken = c.entry(list[i]).tool.Broken
	}
	return list, err
}

// Tool reads one tool of a workspace's catalogue.
func (c *Catalogue) Tool(ctx context.Context, workspace, id string) (t reeve.Tool, err error) {
	err = c.db.View(ctx, func(s *store.Snap) error {
		t, err = s.Agents().GetTool(ctx, workspace, id)
		return err
	})
	if err == nil {
		t.Broken = c.entry(t).tool.Broken
	}
	return t, err
}

// OwnerOnlySettings lists the settings in an agent's config for a tool that only an owner may make. One that opens
// nothing is anybody's.
func (c *Catalogue) OwnerOnlySettings(t reeve.Tool, config []byte) (names []string) {
	var given map[string]any
	e := c.entry(t)
	if e.config == nil || json.Unmarshal(config, &given) != nil {
		return nil
	}
	settings, _ := e.config.tree["properties"].(map[string]any)
	for name, v := range given {
		s, _ := settings[name].(map[string]any)
		if marked, _ := s[reeve.OwnerKeyword].(bool); marked && !empty(v) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func empty(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case bool:
		return !v
	}
	return v == nil || v == ""
}

// CheckConfig validates an agent's settings for a tool, and gives them as the tool is to read them: 20.0 is 20. A tool
// without a schema for its settings takes none, and what a schema requires cannot be left out.
func (c *Catalogue) CheckConfig(t reeve.Tool, config []byte) (json.RawMessage, error) {
	return c.entry(t).settings(config)
}

// CheckNames refuses settings, as CheckConfig gave them, that name what there is not in a workspace.
func (c *Catalogue) CheckNames(ctx context.Context, workspace string, t reeve.Tool, config json.RawMessage) error {
	check := c.entry(t).tool.Settings
	if check == nil || config == nil {
		return nil
	}
	return check(ctx, &reeve.Invocation{Workspace: workspace, Config: config})
}

// settings is CheckConfig of a tool that is ready to be called.
func (e *entry) settings(config []byte) (json.RawMessage, error) {
	given := map[string]any{}
	if len(config) > 0 && string(config) != "null" {
		v, err := canonjson.Parse(config)
		if err != nil {
			return nil, reeve.InvalidJSON(err)
		}
		var ok bool
		if given, ok = v.(map[string]any); !ok {
			return nil, wrongField("/config", "an object", "the config of a tool is an object")
		}
	}
	id := e.tool.ID
	switch {
	case e.config == nil && len(given) == 0:
		return nil, nil
	case e.config == nil && e.tool.Broken != "":
		return nil, reeve.Errorf(reeve.Unsupported, "the settings for %s cannot be checked, for it is broken: %s", id,
			e.tool.Broken).
			Hintf("attach it without settings, or mend it first")
	case e.config == nil:
		fields := make([]reeve.Field, 0, len(given))
		for _, name := range slices.Sorted(maps.Keys(given)) {
			fields = append(fields, reeve.Field{Path: "/config/" + name, Message: "is no setting of " + id,
				Expected: "nothing"})
		}
		return nil, (&reeve.Error{Code: reeve.Validation, Message: "the tool " + id + " takes no settings",
			Fields: fields}).
			Hintf("attach it without settings; a tool takes settings if it is defined with a config_schema")
	}
	if fields := e.config.check(given, "/config"); len(fields) > 0 {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the config does not fit the tool: " +
			fields[0].Path + " " + fields[0].Message,
			Fields: fields, Hint: "reeve tools get " + id + " shows the settings that it takes"}
	}
	if len(given) == 0 {
		return nil, nil
	}
	return canonjson.CanonicalValue(given), nil
}

// WhyNotCallable says why an agent cannot call a tool with the settings that it has for it; empty means that it can.
func (c *Catalogue) WhyNotCallable(t reeve.Tool, config []byte) string {
	return c.entry(t).unfit(config)
}

func (e *entry) unfit(config []byte) string {
	if _, err := e.settings(config); err != nil && e.tool.Broken == "" {
		return "the agent's settings for it are not as the tool takes them: detach it and attach it again"
	}
	return ""
}

// WhyBroken says why a tool cannot be called; empty means that it can.
func (c *Catalogue) WhyBroken(t reeve.Tool) string { return c.entry(t).tool.Broken }

// Profiles lists the capability profiles in force: the workspace's own, and the built-in ones it has not replaced.
func (c *Catalogue) Profiles(ctx context.Context, s *store.Snap, workspace string) ([]reeve.Profile, error) {
	list, err := s.Agents().ListProfiles(ctx, workspace)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, p := range list {
		have[p.Kind] = true
	}
	for _, p := range BuiltinProfiles() {
		if !have[p.Kind] {
			list = append(list, p)
		}
	}
	return list, nil
}

// Process is the name that Open announces this process under.
func (g *Gate) Process() string { return g.process }
