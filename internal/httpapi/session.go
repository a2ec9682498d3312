package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

const (
	sessionPath     = "/api/session"
	sessionCookie   = "reeve_session"
	sessionLifetime = 7 * 24 * time.Hour
	linkMinutes     = 15
)

// sessionHandlers signs in to the console and out of it.
type sessionHandlers struct {
	db      *store.DB
	auth    *authenticator
	streams *Streams
	version string
}

// sessionOutput is a session with its cookie.
type sessionOutput struct {
	SetCookie http.Cookie `header:"Set-Cookie" doc:"The session, for the browser only"`
	Body      api.Session
}

// registerSessionRoutes registers the routes that need no authentication before their handler.
func registerSessionRoutes(router huma.API, h *sessionHandlers) {
	handleOpen(router, route{http.MethodGet, sessionPath, "getSession", "Get the caller's user, role and workspaces",
		"access", "", 0}, h.get)
	handleOpen(router, route{http.MethodPost, sessionPath, "createSession", "Sign in to the console", "access", "", 0},
		h.create)
	handleOpen(router, route{http.MethodDelete, sessionPath, "deleteSession", "Sign out of the console", "access", "",
		http.StatusNoContent}, h.remove)
}

// handleOpen registers a route that authenticates its caller itself. It passes the HTTP request to f.
func handleOpen[I, O any](router huma.API, r route, f func(context.Context, *http.Request, *I) (*O, error)) {
	op := huma.Operation{Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Tags: []string{r.tag},
		DefaultStatus: r.status, MaxBodyBytes: 4 << 10, BodyReadTimeout: -1}
	op.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		request, _ := humago.Unwrap(c)
		next(huma.WithValue(c, openRequestKey, request))
	}}
	huma.Register(router, op, func(ctx context.Context, in *I) (*O, error) {
		err := checkText(in)
		if err == nil {
			var out *O
			if out, err = f(ctx, ctx.Value(openRequestKey).(*http.Request), in); err == nil {
				return out, nil
			}
		}
		return nil, newProblem(ctx, err)
	})
}

func (h *sessionHandlers) get(ctx context.Context, r *http.Request, _ *struct{}) (*body[api.Session], error) {
	c, err := h.auth.verify(r, secretOf(r))
	if err != nil {
		return nil, err
	}
	out := &body[api.Session]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = h.describe(ctx, snap, c)
		return err
	})
}

// describe returns the caller with a credential.
func (h *sessionHandlers) describe(ctx context.Context, snap *store.Snap, c store.Credential) (api.Session, error) {
	s := api.Session{User: c.User, Role: c.Role, Server: c.Server, Version: h.version, ExpiresAt: c.ExpiresAt,
		Workspaces: []reeve.Workspace{}}
	for _, id := range c.Workspaces {
		w, err := snap.Agents().GetWorkspace(ctx, id)
		if err != nil {
			return s, err
		}
		s.Workspaces = append(s.Workspaces, w)
	}
	return s, nil
}

// create signs in. The session has the rights of the token, or of the token that the link was made with, and ends with
// that token.
func (h *sessionHandlers) create(ctx context.Context, r *http.Request, in *struct{ Body api.SessionRequest }) (
	*sessionOutput, error) {
	if !mayComeFromConsole(r) {
		return nil, newForeignPage()
	}
	s := secret{reeve.BearerToken, in.Body.Token}
	if in.Body.Code != "" {
		s = secret{reeve.ConsoleLink, in.Body.Code}
	}
	if (in.Body.Code == "") == (in.Body.Token == "") {
		return nil, (&reeve.Error{Code: reeve.Validation, Message: "send either a code or a token",
			Fields: []reeve.Field{{Path: "/code", Message: "send either a code or a token"}}}).
			Hintf("use the code of a sign-in link, or a bearer token")
	}
	if _, err := h.auth.verify(r, s); err != nil {
		return nil, err
	}
	out := &sessionOutput{}
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		text, c, err := newSession(ctx, tx, s)
		if err != nil {
			return err
		}
		out.SetCookie = newSessionCookie(r, text, int(c.ExpiresAt.Sub(tx.Now()).Seconds()))
		out.Body, err = h.describe(ctx, &tx.Snap, c)
		return err
	})
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		err = h.auth.limitFailures(r, err)
	}
	return out, err
}

// newSession inserts a session for a bearer token, or for a link, which it uses up. It returns the text of the cookie.
func newSession(ctx context.Context, tx *store.Tx, s secret) (string, store.Credential, error) {
	from, err := verifySecret(ctx, &tx.Snap, s)
	if err != nil {
		return "", from, err
	}
	invalid := newSecretInvalid(s.kind)
	if s.kind == reeve.ConsoleLink {
		isFirst, err := tx.Agents().UseLink(ctx, from.ID)
		if err == nil && !isFirst {
			err = invalid
		}
		if err != nil {
			return "", from, err
		}
	}
	token := from
	if from.Parent != "" {
		var found bool
		if token, found, err = tx.Agents().LockCredential(ctx, from.Parent); err != nil {
			return "", from, err
		} else if !found {
			return "", from, invalid
		}
	} else if token, _, err = tx.Agents().LockCredential(ctx, from.ID); err != nil {
		return "", from, err
	}
	if token.RevokedAt != nil || token.ExpiresAt != nil && !token.ExpiresAt.After(tx.Now()) {
		return "", from, invalid
	}
	return insertDerived(ctx, tx, token, reeve.ConsoleSession, "console session", sessionLifetime)
}

// insertDerived inserts a session or link with the rights of a token, which it does not outlive. It returns the text
// that proves it.
func insertDerived(ctx context.Context, tx *store.Tx, token store.Credential, kind reeve.TokenKind, name string,
	lifetime time.Duration) (string, store.Credential, error) {
	expires := tx.Now().Add(lifetime)
	if token.ExpiresAt != nil && token.ExpiresAt.Before(expires) {
		expires = *token.ExpiresAt
	}
	text, c := newCredential(tx.NewID(reeve.PrefixToken), reeve.AccessToken{Kind: kind, Name: name, User: token.User,
		Role: token.Role, Workspaces: token.Workspaces, CreatedAt: tx.Now(), ExpiresAt: &expires})
	c.Server, c.Parent = token.Server, token.ID
	stored := c
	if c.Server { // valid in every workspace without a row for each
		stored.Workspaces = nil
	}
	if err := tx.Agents().DeleteExpiredSessions(ctx, tx.Now()); err != nil {
		return "", c, err
	}
	return text, c, tx.Agents().InsertCredential(ctx, stored)
}

func (h *sessionHandlers) remove(ctx context.Context, r *http.Request, _ *struct{}) (*struct {
	SetCookie http.Cookie `header:"Set-Cookie" doc:"Removes the session's cookie"`
}, error) {
	out := &struct {
		SetCookie http.Cookie `header:"Set-Cookie" doc:"Removes the session's cookie"`
	}{newSessionCookie(r, "", -1)}
	s := secretOf(r)
	if s.kind != reeve.ConsoleSession {
		return nil, reeve.Errorf(reeve.Unauthenticated, "the request has no session of the console").
			Hintf("a bearer token is revoked with reeve tokens revoke")
	}
	c, err := h.auth.verify(r, s)
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		return out, nil // the session has ended already
	}
	if err != nil {
		return nil, err
	}
	defer h.streams.Recheck()
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().RevokeCredential(ctx, c.ID, tx.Now())
	})
}

// newSessionCookie returns the cookie of a session. A negative age removes it.
func newSessionCookie(r *http.Request, value string, maxAge int) http.Cookie {
	isSecure := r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	return http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: isSecure,
		SameSite: http.SameSiteStrictMode}
}

// consoleLinkHandlers makes sign-in links.
type consoleLinkHandlers struct{ db *store.DB }

func (h *consoleLinkHandlers) create(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.ConsoleLink],
	error) {
	out := &body[api.ConsoleLink]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		c, _, err := tx.Agents().LockCredential(ctx, who.TokenID)
		if err == nil && c.Parent != "" {
			c, _, err = tx.Agents().LockCredential(ctx, c.Parent)
		}
		if err == nil && c.RevokedAt != nil {
			err = newTokenInvalid()
		}
		if err != nil {
			return err
		}
		if out.Body, err = NewConsoleLink(ctx, tx, c); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, nil) // the code is never stored
	})
}

// NewConsoleLink inserts a link that signs in to the console once, with the rights of a token.
func NewConsoleLink(ctx context.Context, tx *store.Tx, token store.Credential) (api.ConsoleLink, error) {
	code, c, err := insertDerived(ctx, tx, token, reeve.ConsoleLink, "sign-in link", linkMinutes*time.Minute)
	if err != nil {
		return api.ConsoleLink{}, err
	}
	return api.ConsoleLink{Code: code, Path: "/signin#" + code, ExpiresAt: *c.ExpiresAt}, nil
}

// checkCookieOrigin refuses a request with the console's cookie unless a page of this server, or the person, made it.
// A request that may change something, or opens a socket, must prove that: pages of other ports of the same host count
// as the same site, so SameSite cookies alone do not stop them.
func checkCookieOrigin(r *http.Request) error {
	isRead := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Upgrade") == ""
	site := r.Header.Get("Sec-Fetch-Site")
	isSame := site == "same-origin" || isOwnOrigin(r)
	if !mayComeFromConsole(r) || !isRead && !isSame {
		return newForeignPage()
	}
	if isRead || r.Header.Get("Upgrade") != "" || r.URL.Path == sessionPath {
		return nil
	}
	if len(r.Header.Values("X-Workspace-Id")) == 0 {
		return reeve.Errorf(reeve.Forbidden, "a change by the console needs the header X-Workspace-Id")
	}
	return nil
}

// mayComeFromConsole reports whether neither Origin nor Sec-Fetch-Site names another origin.
func mayComeFromConsole(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return slices.Contains([]string{"", "none", "same-origin"}, site) &&
		(r.Header.Get("Origin") == "" || isOwnOrigin(r))
}

// isOwnOrigin reports whether the Origin header names the host that the request was sent to.
func isOwnOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

func newForeignPage() error {
	return reeve.Errorf(reeve.Forbidden, "a page of another origin may not use the console's session").
		Hintf("open the console at the server's own address, or use a bearer token")
}
