package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"reeve"
	"reeve/internal/store"
)

// authenticator determines the principal of a request from its bearer token or the console's cookie, and limits the
// rate of requests.
type authenticator struct {
	db     *store.DB
	errors errorWriter
	limit  limiter
}

// authenticate requires a valid token or cookie for the named workspace on every request to /api except the session of
// the console. Handlers of other paths, such as /v1 and sockets, call identify themselves.
func (a *authenticator) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api" || r.URL.Path == sessionPath {
			next.ServeHTTP(w, r)
			return
		}
		who, err := a.identifyRequest(r)
		if err != nil {
			a.errors.write(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey, who)))
	})
}

func (a *authenticator) identifyRequest(r *http.Request) (reeve.Principal, error) {
	workspace := r.Header.Get("X-Workspace-Id")
	if workspace == "" && r.URL.Path == workspaceEventsPath { // an EventSource cannot set headers
		workspace = r.URL.Query().Get("workspace")
	}
	return a.identify(r, secretOf(r), workspace)
}

// secret is what a request proves its caller with.
type secret struct {
	kind reeve.TokenKind
	text string
}

// secretOf returns the secret of a request: the bearer token, or the cookie of the console if there is no bearer token.
func secretOf(r *http.Request) secret {
	if token := bearerToken(r); token != "" {
		return secret{reeve.BearerToken, token}
	}
	if c, err := r.Cookie(sessionCookie); err == nil && c.Value != "" {
		return secret{reeve.ConsoleSession, c.Value}
	}
	return secret{kind: reeve.BearerToken}
}

// bearerToken returns the token of the Authorization header, or "".
func bearerToken(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// identify returns the principal for a secret in a workspace.
func (a *authenticator) identify(r *http.Request, s secret, workspace string) (reeve.Principal, error) {
	var who reeve.Principal
	c, err := a.verify(r, s)
	if err != nil {
		return who, err
	}
	if workspace == "" {
		return who, &reeve.Error{Code: reeve.Validation, Message: "the header X-Workspace-Id is missing",
			Hint:   "set X-Workspace-Id to a workspace id, such as default",
			Fields: []reeve.Field{{Path: "header/X-Workspace-Id", Message: "is missing", Expected: "a workspace id"}}}
	}
	// the error is the same for a missing workspace and for one of other tokens
	if !slices.Contains(c.Workspaces, workspace) {
		return who, reeve.Errorf(reeve.Forbidden, "the token is not valid in this workspace")
	}
	return reeve.Principal{TokenID: c.ID, User: c.User, Role: c.Role, Workspace: workspace}, nil
}

// verify returns the credential of a secret. It fails with RATE_LIMITED if the token, or the address of a request
// without a valid token, has made too many requests. It fails with FORBIDDEN for a cookie that another site's page may
// have made the browser send.
func (a *authenticator) verify(r *http.Request, s secret) (store.Credential, error) {
	if s.text == "" {
		return store.Credential{},
			a.limitFailures(r, reeve.Errorf(reeve.Unauthenticated, "the request has no bearer token").
				Hintf("send Authorization: Bearer <token>; the owner's token is in owner.token of the data directory"))
	}
	if s.kind == reeve.ConsoleSession {
		if err := checkCookieOrigin(r); err != nil {
			return store.Credential{}, err
		}
	}
	c, err := a.getCredential(r.Context(), s)
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		return c, a.limitFailures(r, err)
	}
	if err == nil {
		err = a.limit.allow("token:" + c.ID)
	}
	return c, err
}

// limitFailures returns err, or a RATE_LIMITED error if the address has failed too often. It slows down guessing of
// tokens.
func (a *authenticator) limitFailures(r *http.Request, err error) error {
	host, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		host = r.RemoteAddr
	}
	if limited := a.limit.allow("address:" + host); limited != nil {
		return limited
	}
	return err
}

// tokenPrefix is the prefix of every bearer token.
const tokenPrefix = "reeve_"

// newCredential creates a token, session or link. It returns its text, which is shown once, and the credential to
// store.
func newCredential(id string, t reeve.AccessToken) (string, store.Credential) {
	secret := reeve.RandomSecret(32)
	t.ID = id
	prefix := ""
	if t.Kind == reeve.BearerToken {
		prefix = tokenPrefix
	}
	return prefix + id + "_" + secret, store.Credential{AccessToken: t, Hash: hashSecret(secret)}
}

// NewOwnerToken creates the server token for the data directory. It is valid in every workspace.
func NewOwnerToken(id string, at time.Time) (string, store.Credential) {
	text, c := newCredential(id, reeve.AccessToken{Kind: reeve.BearerToken, Name: reeve.OwnerUser,
		User: reeve.OwnerUser, Role: reeve.Owner, CreatedAt: at})
	c.Server = true
	return text, c
}

func hashSecret(s string) string { // a random secret of 256 bits needs no slow hash
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (a *authenticator) getCredential(ctx context.Context, s secret) (c store.Credential, err error) {
	return c, a.db.View(ctx, func(snap *store.Snap) error {
		c, err = verifySecret(ctx, snap, s)
		return err
	})
}

// VerifyToken returns the credential of a bearer token. It fails with UNAUTHENTICATED if the token is unknown, revoked
// or expired.
func VerifyToken(ctx context.Context, snap *store.Snap, token string) (store.Credential, error) {
	return verifySecret(ctx, snap, secret{reeve.BearerToken, token})
}

// verifySecret returns the credential of a secret. It fails with UNAUTHENTICATED if the secret is unknown, revoked or
// expired, or is of another kind.
func verifySecret(ctx context.Context, snap *store.Snap, s secret) (store.Credential, error) {
	invalid := newSecretInvalid(s.kind)
	rest, ok := s.text, true
	if s.kind == reeve.BearerToken {
		rest, ok = strings.CutPrefix(s.text, tokenPrefix)
	}
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || !reeve.IsID(rest[:i]) {
		return store.Credential{}, invalid
	}
	c, found, err := snap.Agents().GetCredential(ctx, rest[:i])
	if err != nil {
		return c, err
	}
	match := subtle.ConstantTimeCompare([]byte(c.Hash), []byte(hashSecret(rest[i+1:]))) == 1
	if !found || !match || c.Kind != s.kind || c.RevokedAt != nil ||
		(c.ExpiresAt != nil && !c.ExpiresAt.After(reeve.Now())) {
		return c, invalid
	}
	return c, nil
}

// newSecretInvalid returns the error for a secret that is unknown, revoked or expired.
func newSecretInvalid(kind reeve.TokenKind) error {
	switch kind {
	case reeve.ConsoleSession:
		return reeve.Errorf(reeve.Unauthenticated, "the console's session is not valid").
			Hintf("it may have expired or been signed out; sign in again")
	case reeve.ConsoleLink:
		return reeve.Errorf(reeve.Unauthenticated, "the sign-in link is not valid").
			Hintf("a link works once and for %d minutes; get a new one with reeve console link", linkMinutes)
	case reeve.BearerToken:
	}
	return reeve.Errorf(reeve.Unauthenticated, "the bearer token is not valid").
		Hintf("it may be revoked or expired; use another token")
}

// limiter limits the requests per second of each token, and of each address that sends invalid tokens.
type limiter struct {
	rate     float64
	burst    int
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// maxLimiters limits the memory that unauthenticated clients can use.
const maxLimiters = 10_000

func (l *limiter) allow(who string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limiters == nil || len(l.limiters) > maxLimiters {
		l.limiters = map[string]*rate.Limiter{}
	}
	b, ok := l.limiters[who]
	if !ok {
		b = rate.NewLimiter(rate.Limit(l.rate), l.burst)
		l.limiters[who] = b
	}
	if b.Allow() {
		return nil
	}
	return &reeve.Error{Code: reeve.RateLimited, Message: "too many requests", Hint: "wait a moment, then try again",
		RetryAfter: time.Second}
}

// checkServerToken returns an error unless the caller has a server token, which actions on the whole server require.
func checkServerToken(ctx context.Context, snap *store.Snap, who reeve.Principal) error {
	own, _, err := snap.Agents().GetCredential(ctx, who.TokenID)
	if err != nil {
		return err
	}
	if !own.Server {
		return reeve.Errorf(reeve.Forbidden, "this action affects the whole server and needs a server token").
			Hintf("use the token in owner.token of the server's data directory")
	}
	return nil
}
