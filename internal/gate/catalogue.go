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

// entry is a tool that is ready to be called: its row, its handler and its compiled schemas.
type entry struct {
	tool          reeve.Tool
	rowHash       string // hash of the tool's row
	fingerprint   string // identifies the behaviour of the tool; approvals are bound to it
	args          *schema
	config        *schema
	output        *schema // nil if results are not checked
	needsSettings bool    // the tool cannot be called without settings
}

func rowHash(t reeve.Tool) string {
	return reeve.Hash(mustJSON(t))
}

// Catalogue holds the tools: the compiled-in ones and those that workspaces define.
type Catalogue struct {
	db       *store.DB
	builders map[reeve.ToolKind]Builder
	handlers map[string]reeve.Tool // the compiled-in tools, keyed by handler key
	schemas  schemaCache
}

// AddTool registers a compiled-in tool. It fails if the tool is not valid or if its id is already registered.
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

// Open writes the compiled-in tools to the store and registers this process.
func (g *Gate) Open(ctx context.Context) error {
	var shadowed []reeve.Tool
	err := g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if shadowed, err = g.Catalogue.sync(ctx, tx); err != nil {
			return err
		}
		return tx.System().RegisterProcess(ctx, g.processID)
	})
	for _, t := range shadowed {
		g.Log.Warn("stored tool cannot be called", "tool", t.ID, "workspace", t.WorkspaceID, "reason", idTakenReason)
	}
	return err
}

// sync writes the compiled-in tools that have changed. It returns the workspaces' own tools whose ids are now those of
// compiled-in tools.
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
		if err := tx.IncrementAllRevisions(ctx); err != nil {
			return nil, err
		}
	}
	shadowed, err = tx.Agents().ShadowedTools(ctx)
	return slices.DeleteFunc(shadowed, func(t reeve.Tool) bool { return !c.isBuiltin(t.ID) }), err
}

// idTakenReason is why a workspace's tool is broken if a newer build has a compiled-in tool with the same id.
const idTakenReason = "its id now belongs to a built-in tool; define it again under another id"

func (c *Catalogue) isBuiltin(id string) bool {
	for _, t := range c.handlers {
		if t.ID == id {
			return true
		}
	}
	return false
}

// newEntry makes the row of a tool callable. If that fails, the entry holds the reason in Broken.
func (c *Catalogue) newEntry(row reeve.Tool) *entry {
	e := &entry{tool: row, rowHash: rowHash(row)}
	if err := c.prepareEntry(e); err != nil {
		e.tool.Broken = reeve.AsError(err).Message
	}
	e.fingerprint = e.tool.Fingerprint()
	return e
}

// prepareEntry compiles the schemas of an entry and sets its handler.
func (c *Catalogue) prepareEntry(e *entry) (err error) {
	row := e.tool
	if row.WorkspaceID != "" && c.isBuiltin(row.ID) {
		return reeve.Errorf(reeve.AlreadyExists, idTakenReason)
	}
	// check again, because the row may come from another version or may have been edited
	if err := row.Validate(); err != nil {
		return reeve.Errorf(reeve.Unsupported, "its row in the database is not valid: %s", reeve.AsError(err).Message)
	}
	// before the handler, because OwnerOnlySettings needs the schema even if this machine cannot run the tool
	if len(row.ConfigSchema) > 0 {
		if e.config, err = c.schemas.compile(row.ConfigSchema); err != nil {
			return err
		}
		e.needsSettings = len(e.config.check(map[string]any{}, "/config")) > 0
	}
	if e.args, err = c.schemas.compile(row.Parameters); err != nil {
		return err
	}
	checksOutput := row.ChecksOutput()
	if h, ok := c.handlers[row.HandlerKey]; ok && row.Kind == reeve.GoTool {
		checksOutput = h.ChecksOutput()
	}
	if checksOutput {
		if e.output, err = c.schemas.compile(row.OutputSchema); err != nil {
			return err
		}
	}
	if row.Kind == reeve.GoTool {
		h, ok := c.handlers[row.HandlerKey]
		if !ok {
			return reeve.Errorf(reeve.Unsupported, "no handler %q in this build", row.HandlerKey)
		}
		e.tool.Private = h.Private
		e.tool.CheckSettings = h.CheckSettings // before the check below, for the same reason
		if h.Broken != "" {                    // this machine cannot run the tool
			return reeve.Errorf(reeve.Unsupported, "%s", h.Broken)
		}
		e.tool.Handler, e.tool.Check, e.tool.Preview, e.tool.Verify, e.tool.Categories, e.tool.IsRead,
			e.tool.AwaitsOutcome = h.Handler, h.Check, h.Preview, h.Verify, h.Categories, h.IsRead, h.AwaitsOutcome
		e.tool.FileNameFields, e.tool.KeepTokenSignatures = h.FileNameFields, h.KeepTokenSignatures
		e.tool.Undoable = h.Undoable
		return nil
	}
	b, ok := c.builders[row.Kind]
	if !ok {
		return reeve.Errorf(reeve.Unsupported, "tools of kind %q are not supported in this build", row.Kind)
	}
	e.tool, err = b.Build(row)
	return err
}

// checkSchemas checks the schemas of a tool. The error names the field that is wrong.
func (c *Catalogue) checkSchemas(t reeve.Tool) error {
	if len(t.Parameters) == 0 {
		return invalidField("/parameters", "a JSON Schema of type object", "the tool has no schema for its arguments")
	}
	s, err := c.schemas.compile(t.Parameters)
	if err != nil {
		return invalidField("/parameters", "a valid JSON Schema (2020-12)", "%s", reeve.AsError(err).Message)
	}
	if kind, found := s.tree["type"]; s.tree == nil || found && kind != "object" {
		return invalidField("/parameters/type", `"object"`, "arguments must be an object")
	}
	if s.isCircular() {
		return invalidField("/parameters", "a schema without cycles",
			"the schema refers to itself in a cycle, so no value can match it")
	}
	for i, name := range t.Identity {
		if s.lacksProperty(name) {
			return invalidField("/identity/"+strconv.Itoa(i), "one of the tool's parameters",
				"the parameters do not define %q", name)
		}
	}
	if t.ChecksOutput() {
		output, err := c.schemas.compile(t.OutputSchema)
		if err != nil {
			return invalidField("/output_schema", "a valid JSON Schema (2020-12)", "%s", reeve.AsError(err).Message)
		}
		if output.isCircular() {
			return invalidField("/output_schema", "a schema without cycles",
				"the schema refers to itself in a cycle, so no value can match it")
		}
	}
	if len(t.ConfigSchema) > 0 {
		config, err := c.schemas.compile(t.ConfigSchema)
		if err != nil {
			return invalidField("/config_schema", "a valid JSON Schema (2020-12)", "%s", reeve.AsError(err).Message)
		}
		if kind, found := config.tree["type"]; found && kind != "object" {
			return invalidField("/config_schema/type", `"object"`, "settings must be an object")
		}
		if config.isCircular() {
			return invalidField("/config_schema", "a schema without cycles",
				"the schema refers to itself in a cycle, so no value can match it")
		}
	}
	return nil
}

func invalidField(path, expected, format string, args ...any) error {
	m := fmt.Sprintf(format, args...)
	return &reeve.Error{Code: reeve.Validation, Message: m,
		Fields: []reeve.Field{{Path: path, Message: m, Expected: expected}}}
}

// Tools lists the tools of a workspace. The reason why a tool cannot be called is in Broken.
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
		list[i].Broken = c.newEntry(list[i]).tool.Broken
	}
	return list, err
}

// Tool returns one tool of a workspace.
func (c *Catalogue) Tool(ctx context.Context, workspace, id string) (t reeve.Tool, err error) {
	err = c.db.View(ctx, func(s *store.Snap) error {
		t, err = s.Agents().GetTool(ctx, workspace, id)
		return err
	})
	if err == nil {
		t.Broken = c.newEntry(t).tool.Broken
	}
	return t, err
}

// OwnerOnlySettings lists the settings in an agent's config for a tool that only an owner may set. Empty values are not
// listed, because they grant nothing.
func (c *Catalogue) OwnerOnlySettings(t reeve.Tool, config []byte) (names []string) {
	var given map[string]any
	e := c.newEntry(t)
	if e.config == nil || json.Unmarshal(config, &given) != nil {
		return nil
	}
	settings, _ := e.config.tree["properties"].(map[string]any)
	for name, v := range given {
		s, _ := settings[name].(map[string]any)
		if marked, _ := s[reeve.OwnerKeyword].(bool); marked && !isEmptySetting(v) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isEmptySetting reports whether a setting has an empty value.
func isEmptySetting(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case bool:
		return !v
	}
	return v == nil || v == ""
}

// CheckConfig validates an agent's settings for a tool and returns them in canonical form, in which 20.0 is 20. It
// fails for a tool without a config schema unless the settings are empty.
func (c *Catalogue) CheckConfig(t reeve.Tool, config []byte) (json.RawMessage, error) {
	return c.newEntry(t).checkSettings(config)
}

// CheckReferences runs the tool's own check on settings from CheckConfig. It refuses names that do not exist in the
// workspace.
func (c *Catalogue) CheckReferences(ctx context.Context, workspace string, t reeve.Tool, config json.RawMessage) error {
	check := c.newEntry(t).tool.CheckSettings
	if check == nil || config == nil {
		return nil
	}
	return check(ctx, &reeve.Invocation{Workspace: workspace, Config: config})
}

// checkSettings implements CheckConfig.
func (e *entry) checkSettings(config []byte) (json.RawMessage, error) {
	given := map[string]any{}
	if len(config) > 0 && string(config) != "null" {
		v, err := canonjson.Parse(config)
		if err != nil {
			return nil, reeve.InvalidJSON(err)
		}
		var ok bool
		if given, ok = v.(map[string]any); !ok {
			return nil, invalidField("/config", "an object", "the settings of a tool must be an object")
		}
	}
	id := e.tool.ID
	switch {
	case e.config == nil && len(given) == 0:
		return nil, nil
	case e.config == nil && e.tool.Broken != "":
		return nil, reeve.Errorf(reeve.Unsupported,
			"the settings for %s cannot be checked because the tool is broken: %s", id,
			e.tool.Broken).Hintf("attach the tool without settings or repair it first")
	case e.config == nil:
		fields := make([]reeve.Field, 0, len(given))
		for _, name := range slices.Sorted(maps.Keys(given)) {
			fields = append(fields, reeve.Field{Path: "/config/" + name, Message: "is not a setting of " + id,
				Expected: "nothing"})
		}
		return nil, (&reeve.Error{Code: reeve.Validation, Message: "the tool " + id + " takes no settings",
			Fields: fields}).Hintf("attach the tool without settings, or define it with a config_schema")
	}
	if fields := e.config.check(given, "/config"); len(fields) > 0 {
		return nil, &reeve.Error{Code: reeve.Validation, Message: "the settings are not valid: " +
			fields[0].Path + " " + fields[0].Message,
			Fields: fields, Hint: "reeve tools show " + id + " shows the valid settings"}
	}
	if len(given) == 0 {
		return nil, nil
	}
	return canonjson.CanonicalValue(given), nil
}

// WhyNotCallable returns why an agent with the given settings cannot call a tool, or an empty string if it can.
func (c *Catalogue) WhyNotCallable(t reeve.Tool, config []byte) string {
	return c.newEntry(t).whyNotCallable(config)
}

func (e *entry) whyNotCallable(config []byte) string {
	if _, err := e.checkSettings(config); err != nil && e.tool.Broken == "" {
		return "the agent's settings for the tool are not valid; detach the tool and attach it again"
	}
	return ""
}

// WhyBroken returns why no agent can call a tool, or an empty string if the tool is not broken.
func (c *Catalogue) WhyBroken(t reeve.Tool) string { return c.newEntry(t).tool.Broken }

// CanUndo reports whether calls of a tool record how to undo them.
func (c *Catalogue) CanUndo(t reeve.Tool) bool {
	return t.Kind == reeve.GoTool && c.handlers[t.HandlerKey].Undoable
}

// Profiles lists the capability profiles of a workspace: its own and the built-in ones that it has not replaced.
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

// Process returns the id under which Open registers this process.
func (g *Gate) Process() string { return g.processID }
