package gate

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// PutTool adds or replaces a workspace's own tool on behalf of a user with the given role. Each replacement is a new
// version. Only an owner may add or change a tool that refers to a secret, because the author of the tool decides where
// the secret is sent.
func (c *Catalogue) PutTool(ctx context.Context, t reeve.Tool, replace bool, by reeve.Role) (reeve.Tool, error) {
	t = t.WithDefaults()
	if t.Kind == reeve.GoTool {
		return t, invalidField("/kind", "http or script", "tools of kind go are compiled in")
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
	if err := checkDefinition(b, t); err != nil {
		return t, err
	}
	if refersToSecret(t.Spec) && !by.Allows(reeve.Owner) {
		return t, ownerRequired(by, t.ID, "make a tool that refers to a secret, as %s does")
	}
	err := c.db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.IncrementRevision(ctx, t.WorkspaceID); err != nil { // before the tool is read
			return err
		}
		old, err := tx.Agents().GetTool(ctx, t.WorkspaceID, t.ID)
		found := err == nil
		switch {
		case err != nil && reeve.CodeOf(err) != reeve.NotFound:
			return err
		case found && replace && old.WorkspaceID == "":
			return builtinError(t.ID, "changed")
		case found && !replace:
			return reeve.Errorf(reeve.AlreadyExists, "a tool %q already exists", t.ID)
		case !found && replace:
			return err
		case found && refersToSecret(old.Spec) && !by.Allows(reeve.Owner):
			return ownerRequired(by, t.ID, "change %s, which refers to a secret")
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

// builtinError returns the conflict for changing or deleting a compiled-in tool.
func builtinError(tool, done string) error {
	return reeve.Errorf(reeve.Conflict, "the tool %s is built in and cannot be %s", tool, done).
		Hintf("detach it from agents that must not have it")
}

// checkDefinition checks a tool with Define, or with Build if the builder is no Definer.
func checkDefinition(b Builder, t reeve.Tool) error {
	if d, ok := b.(Definer); ok {
		return d.Define(t)
	}
	_, err := b.Build(t)
	return err
}

// DeleteTool deletes a workspace's own tool.
func (c *Catalogue) DeleteTool(ctx context.Context, workspace, id string) error {
	return c.db.Update(ctx, func(tx *store.Tx) error {
		err := tx.Agents().DeleteTool(ctx, workspace, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			if _, there := tx.Agents().GetTool(ctx, workspace, id); there == nil {
				return builtinError(id, "deleted")
			}
		}
		return err
	})
}

// refersToSecret reports whether a tool's spec refers to a secret. It returns true for a spec that is not valid JSON.
func refersToSecret(spec []byte) bool {
	v, err := canonjson.Parse(spec)
	return err != nil || mentionsSecret(v)
}

// mentionsSecret reports whether a value contains a reference to a secret.
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

// ownerRequired returns the error for an action that requires the role owner. What is a format with a verb for the tool
// id.
func ownerRequired(by reeve.Role, tool, what string) error {
	return reeve.Errorf(reeve.Forbidden, "a token with role %s cannot "+what, by, tool).
		Hintf("the role %s is required, because a tool decides where its secrets are sent", reeve.Owner)
}
