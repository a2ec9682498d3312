package httpapi

import (
	"context"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// listTokens lists the tokens of a workspace. Of where else they are valid it shows what the caller knows anyway.
func (s *server) listTokens(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.TokenList], error) {
	out := &body[reeve.TokenList]{Body: reeve.TokenList{Tokens: []reeve.AccessToken{}}}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		mine, _, err := snap.GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		list, err := snap.ListCredentials(ctx, who.Workspace)
		for _, c := range list {
			c.Workspaces = slices.DeleteFunc(c.Workspaces, func(w string) bool { return !slices.Contains(mine.Workspaces, w) })
			out.Body.Tokens = append(out.Body.Tokens, c.AccessToken)
		}
		return err
	})
}

func (s *server) createToken(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.TokenRequest
}) (*body[reeve.NewToken], error) {
	var expires *time.Time
	if in.Body.ExpiresAt != "" {
		at, err := reeve.ParseMoment("/expires_at", in.Body.ExpiresAt)
		if err != nil {
			return nil, err
		}
		at = at.UTC() // as it is kept
		expires = &at
	}
	out := &body[reeve.NewToken]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) error {
		mine, _, err := tx.GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		t := reeve.AccessToken{Name: in.Body.Name, User: in.Body.User, Role: in.Body.Role, Workspaces: in.Body.Workspaces, CreatedAt: tx.Now(), ExpiresAt: expires}
		if t.User == "" {
			t.User = who.User
		}
		if len(t.Workspaces) == 0 {
			t.Workspaces = []string{who.Workspace}
		}
		if !within(t.Workspaces, mine.Workspaces) {
			return reeve.Errorf(reeve.Forbidden, "your own token is not valid in all of those workspaces")
		}
		if t.ExpiresAt != nil && !t.ExpiresAt.After(tx.Now()) {
			return &reeve.Error{Code: reeve.Validation, Message: "the token would have expired already", Fields: []reeve.Field{{Path: "/expires_at", Message: "is in the past", Expected: "a time to come"}}}
		}
		text, c := newCredential(tx.NewID(reeve.PrefixToken), t)
		out.Body = reeve.NewToken{AccessToken: c.AccessToken, Token: text}
		if err := tx.InsertCredential(ctx, c); err != nil {
			return err
		}
		return tx.Answer(ctx, nil) // its text is not kept
	})
}

func (s *server) revokeToken(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	defer s.Streams.Recheck()
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error {
		c, ok, err := tx.GetCredential(ctx, in.ID)
		if err != nil {
			return err
		}
		if !ok || c.RevokedAt != nil || !slices.Contains(c.Workspaces, who.Workspace) {
			return reeve.Errorf(reeve.NotFound, "token %q not found", in.ID)
		}
		mine, _, err := tx.GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		if c.Server && !mine.Server {
			return reeve.Errorf(reeve.Forbidden, "the token is a server's own").Hintf("only a server token can revoke it")
		}
		if !within(c.Workspaces, mine.Workspaces) {
			return reeve.Errorf(reeve.Forbidden, "the token is valid in a workspace that yours is not valid in").Hintf("an owner of all its workspaces can revoke it")
		}
		return tx.RevokeCredential(ctx, in.ID, tx.Now())
	})
}

// within tells whether every workspace of the first list is in the second.
func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(w string) bool { return !slices.Contains(all, w) })
}

func (s *server) listSecrets(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.SecretList], error) {
	out := &body[reeve.SecretList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Secrets, err = snap.ListSecrets(ctx, who.Workspace)
		return err
	})
}

// SecretPath names a secret.
type SecretPath struct {
	Scoped
	Name string `path:"name" minLength:"1" maxLength:"64" pattern:"^[A-Za-z_][A-Za-z0-9_]*$"`
}

func (s *server) putSecret(ctx context.Context, who reeve.Principal, in *struct {
	SecretPath
	Body reeve.SecretRequest
}) (*none, error) {
	if err := reeve.CheckSecret(in.Body.Value); err != nil {
		return nil, err
	}
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error { return tx.PutSecret(ctx, who.Workspace, in.Name, in.Body.Value) })
}

func (s *server) deleteSecret(ctx context.Context, who reeve.Principal, in *SecretPath) (*none, error) {
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error { return tx.DeleteSecret(ctx, who.Workspace, in.Name) })
}

func (s *server) listWorkspaces(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.WorkspaceList], error) {
	out := &body[reeve.WorkspaceList]{Body: reeve.WorkspaceList{Workspaces: []reeve.Workspace{}}}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		c, _, err := snap.GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		for _, id := range c.Workspaces {
			w, err := snap.GetWorkspace(ctx, id)
			if err != nil {
				return err
			}
			out.Body.Workspaces = append(out.Body.Workspaces, w)
		}
		return nil
	})
}

// createWorkspace makes a workspace. Server tokens are valid in it at once; no other token is until an owner makes one for it.
func (s *server) createWorkspace(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.WorkspaceRequest
}) (*body[reeve.Workspace], error) {
	name := in.Body.Name
	if name == "" {
		name = in.Body.ID
	}
	out := &body[reeve.Workspace]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if err := serverWide(ctx, &tx.Snap, who); err != nil {
			return err
		}
		if out.Body, err = tx.InsertWorkspace(ctx, in.Body.ID, name); err != nil {
			return err
		}
		return tx.Answer(ctx, out.Body)
	})
}
