package httpapi

import (
	"context"
	"slices"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// tokenHandlers serves bearer tokens, and lists and revokes sessions of the console.
type tokenHandlers struct {
	db      *store.DB
	streams *Streams
}

// list returns the tokens of the workspace. It hides their other workspaces unless the caller's token is valid there.
func (h *tokenHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.TokenList], error) {
	out := &body[api.TokenList]{Body: api.TokenList{Tokens: []reeve.AccessToken{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		own, _, err := snap.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		list, err := snap.Agents().ListCredentials(ctx, who.Workspace)
		for _, c := range list {
			c.Workspaces = slices.DeleteFunc(c.Workspaces,
				func(w string) bool { return !slices.Contains(own.Workspaces, w) })
			out.Body.Tokens = append(out.Body.Tokens, c.AccessToken)
		}
		return err
	})
}

func (h *tokenHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.TokenRequest
}) (*body[api.NewToken], error) {
	var expires *time.Time
	if in.Body.ExpiresAt != "" {
		at, err := reeve.ParseTimeWithOffset("/expires_at", in.Body.ExpiresAt)
		if err != nil {
			return nil, err
		}
		at = at.UTC() // as stored
		expires = &at
	}
	out := &body[api.NewToken]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		own, _, err := tx.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		t := reeve.AccessToken{Kind: reeve.BearerToken, Name: in.Body.Name, User: in.Body.User, Role: in.Body.Role,
			Workspaces: in.Body.Workspaces, CreatedAt: tx.Now(), ExpiresAt: expires}
		if t.User == "" {
			t.User = who.User
		}
		if len(t.Workspaces) == 0 {
			t.Workspaces = []string{who.Workspace}
		}
		if !isSubset(t.Workspaces, own.Workspaces) {
			return reeve.Errorf(reeve.Forbidden, "your own token is not valid in all of those workspaces")
		}
		if t.ExpiresAt != nil && !t.ExpiresAt.After(tx.Now()) {
			return &reeve.Error{Code: reeve.Validation, Message: "the expiry of the token is in the past",
				Fields: []reeve.Field{{Path: "/expires_at", Message: "is in the past",
					Expected: "a time in the future"}}}
		}
		text, c := newCredential(tx.NewID(reeve.PrefixToken), t)
		out.Body = api.NewToken{AccessToken: c.AccessToken, Token: text}
		if err := tx.Agents().InsertCredential(ctx, c); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil) // the token's text is never stored
	})
}

// update changes the role of a token. Open streams end if the role is lower, so that their clients connect again.
func (h *tokenHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body api.TokenUpdate
}) (out *body[reeve.AccessToken], err error) {
	defer h.streams.Recheck()
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		c, own, err := getManagedCredential(ctx, tx, who, in.ID)
		if err != nil {
			return err
		}
		switch {
		case c.ID == own.ID || c.ID == own.Parent:
			return reeve.Errorf(reeve.Conflict, "a token cannot change its own role").Hintf("ask another owner")
		case c.Server:
			return reeve.Errorf(reeve.Conflict, "the server's own token is always an owner")
		case c.Kind != reeve.BearerToken:
			return reeve.Errorf(reeve.Conflict, "a session has the role of its token").
				Hintf("change the role of the token")
		}
		c.Role = in.Body.Role
		out = &body[reeve.AccessToken]{c.AccessToken}
		return tx.Agents().SetCredentialRole(ctx, c.ID, c.Role)
	})
	return out, err
}

func (h *tokenHandlers) revoke(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	defer h.streams.Recheck()
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		if _, _, err := getManagedCredential(ctx, tx, who, in.ID); err != nil {
			return err
		}
		return tx.Agents().RevokeCredential(ctx, in.ID, tx.Now())
	})
}

// getManagedCredential returns a valid token that the caller may change or revoke, and the caller's own token.
func getManagedCredential(ctx context.Context, tx *store.Tx, who reeve.Principal, id string) (c, own store.Credential,
	err error) {
	c, ok, err := tx.Agents().GetCredential(ctx, id)
	if err != nil {
		return c, own, err
	}
	if !ok || c.RevokedAt != nil || !slices.Contains(c.Workspaces, who.Workspace) {
		return c, own, reeve.Errorf(reeve.NotFound, "token %q not found", id)
	}
	if own, _, err = tx.Agents().GetCredential(ctx, who.TokenID); err != nil {
		return c, own, err
	}
	if c.Server && !own.Server {
		return c, own, reeve.Errorf(reeve.Forbidden, "the token is a server token").
			Hintf("only a server token can change or revoke it")
	}
	if !isSubset(c.Workspaces, own.Workspaces) {
		return c, own, reeve.Errorf(reeve.Forbidden,
			"the token is valid in a workspace in which your token is not valid").
			Hintf("ask an owner of all its workspaces")
	}
	return c, own, nil
}

// isSubset reports whether every element of some is in all.
func isSubset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(w string) bool { return !slices.Contains(all, w) })
}
