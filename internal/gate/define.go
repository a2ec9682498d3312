package gate

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// PutTool adds or replaces a workspace's own tool, for somebody of a role. Each replacement is a new version. Only an
// owner decides where a secret goes: whoever else could make a tool that sends one, or change one that does, would read
// it at the other end.
func (c *Catalogue) PutTool(ctx context.Context, t reeve.Tool, replace bool, by reeve.Role) (reeve.Tool, error) {
	t = t.WithDefaults()
	if t.Kind == reeve.GoTool {
		return t, wrongField("/kind", "http or script", "tools of kind go are compiled in")
	}
	if err := t.Validate(); err != nil {
		return t, err
	}
	if err := c.checkSchemas(t); err != nil {
		return t, err
	}
	b, ok := c.builders[t.Kind]
	if !ok {
		return t, reeve.Errorf(reeve.Unsupported, "tools of kind %q are not supported in this build", t.Kind).
			Hintf("use kind http or script")
	}
	if err := define(b, t); err != nil {
		return t, err
	}
	if refersToSecret(t.Spec) && !by.Allows(reeve.Owner) {
		return t, ownersOnly(by, t.ID, "make a tool that refers to a secret, as %s does")
	}
	err := c.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Touch(ctx, t.WorkspaceID); err != nil { // before it is read: see Tx.Revise
			return err
		}
		old, err := tx.Agents().GetTool(ctx, t.WorkspaceID, t.ID)
		found := err == nil
		switch {
		case err != nil && reeve.CodeOf(err) != reeve.NotFound:
			return err
		case found && replace && old.WorkspaceID == "":
			return builtIn(t.ID, "changed")
		case found && !replace:
			return reeve.Errorf(reeve.AlreadyExists, "a tool called %q is there already", t.ID)
		case !found && replace:
			return err
		case found && refersToSecret(old.Spec) && !by.Allows(reeve.Owner):
			return ownersOnly(by, t.ID, "change %s, which refers to a secret")
		}
		t.Version, t.CreatedAt = old.Version+1, tx.Now()
		if found {
			t.CreatedAt = old.CreatedAt
		}
		if err := tx.Agents().PutTool(ctx, t); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, t)
	})
	return t, err
}

func builtIn(tool, done string) error {
	return reeve.Errorf(reeve.Conflict, "the tool %s is built in, and cannot be %s", tool, done).
		Hintf("detach it from the agents that shall not have it")
}

func define(b Builder, t reeve.Tool) error {
	if d, ok := b.(Definer); ok {
		return d.Define(t)
	}
	_, err := b.Build(t)
	return err
}

// DeleteTool removes a workspace's own tool.
func (c *Catalogue) DeleteTool(ctx context.Context, workspace, id string) error {
	return c.db.Update(ctx, func(tx *store.Tx) error {
		err := tx.Agents().DeleteTool(ctx, workspace, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			if _, there := tx.Agents().GetTool(ctx, workspace, id); there == nil {
				return builtIn(id, "deleted")
			}
		}
		return err
	})
}

// refersToSecret tells whether a spec has a secret sent somewhere. What cannot be read may.
func refersToSecret(spec []byte) bool {
	v, err := canonjson.Parse(spec)
	return err != nil || mentionsSecret(v)
}

func mentionsSecret(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, reeve.SecretMark)
	case []any:
		for _, e := range v {
			if mentionsSecret(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if mentionsSecret(e) {
				return true
			}
		}
	}
	return false
}

// ownersOnly refuses what takes an owner; what names the tool.
func ownersOnly(by reeve.Role, tool, what string) error {
	return reeve.Errorf(reeve.Forbidden, "a token with role %s cannot "+what, by, tool).
		Hintf("it takes the role %s: whoever says where a secret is sent can read it there", reeve.Owner)
}
