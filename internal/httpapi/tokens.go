package httpapi

import (
	"context"
	"slices"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// tokenHandlers serves bearer tokens.
type tokenHandlers struct {
	db      *store.DB
	streams *Streams
}

// list lists the tokens of a workspace. It shows of their other workspaces only those that the caller's token has too.
func (h *tokenHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.TokenList], error) {
	out := &body[api.TokenList]{Body: api.TokenList{Tokens: []reeve.AccessToken{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		mine, _, err := snap.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		list, err := snap.Agents().ListCredentials(ctx, who.Workspace)
		for _, c := range list {
			c.Workspaces = slices.DeleteFunc(c.Workspaces,
				func(w string) bool { return !slices.Contains(mine.Workspaces, w) })
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
		at = at.UTC() // as it is kept
		expires = &at
	}
	out := &body[api.NewToken]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		mine, _, err := tx.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		t := reeve.AccessToken{Name: in.Body.Name, User: in.Body.User, Role: in.Body.Role,
			Workspaces: in.Body.Workspaces, CreatedAt: tx.Now(), ExpiresAt: expires}
		if t.User == "" {
			t.User = who.User
		}
		if len(t.Workspaces) == 0 {
			t.Workspaces = []string{who.Workspace}
		}
		if !isSubset(t.Workspaces, mine.Workspaces) {
			return reeve.Errorf(reeve.Forbidden, "your own token is not valid in all of those workspaces")
		}
		if t.ExpiresAt != nil && !t.ExpiresAt.After(tx.Now()) {
			return &reeve.Error{Code: reeve.Validation, Message: "the token would have expired already",
				Fields: []reeve.Field{{Path: "/expires_at", Message: "is in the past", Expected: "a time to come"}}}
		}
		text, c := newCredential(tx.NewID(reeve.PrefixToken), t)
		out.Body = api.NewToken{AccessToken: c.AccessToken, Token: text}
		if err := tx.Agents().InsertCredential(ctx, c); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil) // its text is not kept
	})
}

func (h *tokenHandlers) revoke(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	defer h.streams.Recheck()
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		c, ok, err := tx.Agents().GetCredential(ctx, in.ID)
		if err != nil {
			return err
		}
		if !ok || c.RevokedAt != nil || !slices.Contains(c.Workspaces, who.Workspace) {
			return reeve.Errorf(reeve.NotFound, "token %q not found", in.ID)
		}
		mine, _, err := tx.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		if c.Server && !mine.Server {
			return reeve.Errorf(reeve.Forbidden, "the token is a server's own").
				Hintf("only a server token can revoke it")
		}
		if !isSubset(c.Workspaces, mine.Workspaces) {
			return reeve.Errorf(reeve.Forbidden, "the token is valid in a workspace that yours is not valid in").
				Hintf("an owner of all its workspaces can revoke it")
		}
		return tx.Agents().RevokeCredential(ctx, in.ID, tx.Now())
	})
}

// isSubset tells whether every workspace of the first list is in the second.
func isSubset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(w string) bool { return !slices.Contains(all, w) })
}
