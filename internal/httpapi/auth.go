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

// authenticator finds the principal of a request by its bearer token, and limits the rate of requests.
type authenticator struct {
	db     *store.DB
	errors errorWriter
	limit  limiter
}

// authenticate lets requests to /api through with a valid token for the workspace they name.
func (a *authenticator) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api" {
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
	return a.identify(r, bearerToken(r), r.Header.Get("X-Workspace-Id"))
}

// bearerToken is the token that a request carries in its header, or nothing.
func bearerToken(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// identify finds out who makes a request, by its token and the workspace it names.
func (a *authenticator) identify(r *http.Request, token, workspace string) (reeve.Principal, error) {
	var who reeve.Principal
	c, err := a.verifyToken(r, token)
	if err != nil {
		return who, err
	}
	if workspace == "" {
		return who, &reeve.Error{Code: reeve.Validation, Message: "the header X-Workspace-Id is missing",
			Hint:   "name the workspace, such as default",
			Fields: []reeve.Field{{Path: "header/X-Workspace-Id", Message: "is missing", Expected: "a workspace id"}}}
	}
	// one answer for a workspace that is another's and one that is not there
	if !slices.Contains(c.Workspaces, workspace) {
		return who, reeve.Errorf(reeve.Forbidden, "the token is not valid in that workspace")
	}
	return reeve.Principal{TokenID: c.ID, User: c.User, Role: c.Role, Workspace: workspace}, nil
}

// verifyToken finds the token of a request, and limits how fast one token, or an address without a valid one, may ask.
func (a *authenticator) verifyToken(r *http.Request, token string) (store.Credential, error) {
	if token == "" {
		return store.Credential{}, a.limitFailures(r, reeve.Errorf(reeve.Unauthenticated, "no bearer token was sent").
			Hintf("send Authorization: Bearer <token>; the owner's is in the data directory"))
	}
	c, err := a.getCredential(r.Context(), token)
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		return c, a.limitFailures(r, err)
	}
	if err == nil {
		err = a.limit.allow("token:" + c.ID)
	}
	return c, err
}

// limitFailures limits how fast tokens can be guessed from one address.
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

// tokenPrefix begins every bearer token.
const tokenPrefix = "reeve_"

// newCredential makes a token: its text, to be shown once, and what is kept of it.
func newCredential(id string, t reeve.AccessToken) (string, store.Credential) {
	secret := reeve.RandomSecret(32)
	t.ID = id
	return tokenPrefix + id + "_" + secret, store.Credential{AccessToken: t, Hash: hashSecret(secret)}
}

// NewOwnerToken makes the token that a server keeps in its data directory: a server token, valid in every workspace.
func NewOwnerToken(id string, at time.Time) (string, store.Credential) {
	text, c := newCredential(id, reeve.AccessToken{Name: reeve.OwnerUser, User: reeve.OwnerUser, Role: reeve.Owner,
		CreatedAt: at})
	c.Server = true
	return text, c
}

func hashSecret(s string) string { // a random secret of 256 bits needs no slow hash
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (a *authenticator) getCredential(ctx context.Context, token string) (c store.Credential, err error) {
	return c, a.db.View(ctx, func(snap *store.Snap) error {
		c, err = VerifyToken(ctx, snap, token)
		return err
	})
}

// VerifyToken finds what is kept of a token, or says that it is not valid.
func VerifyToken(ctx context.Context, snap *store.Snap, token string) (store.Credential, error) {
	wrong := reeve.Errorf(reeve.Unauthenticated, "the bearer token is not valid").
		Hintf("it may have been revoked or have expired")
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || !reeve.IsID(rest[:i]) {
		return store.Credential{}, wrong
	}
	c, found, err := snap.Agents().GetCredential(ctx, rest[:i])
	if err != nil {
		return c, err
	}
	match := subtle.ConstantTimeCompare([]byte(c.Hash), []byte(hashSecret(rest[i+1:]))) == 1
	if !found || !match || c.RevokedAt != nil || (c.ExpiresAt != nil && !c.ExpiresAt.After(reeve.Now())) {
		return c, wrong
	}
	return c, nil
}

// limiter bounds requests per second, for each token and each address that sends bad ones.
type limiter struct {
	rate  float64
	burst int
	mu    sync.Mutex
	limiters    map[string]*rate.Limiter
}

// maxLimiters bounds the memory that strangers can make us use.
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
	return &reeve.Error{Code: reeve.RateLimited, Message: "too many requests", Hint: "wait a moment and try again",
		RetryAfter: time.Second}
}

// checkServerToken lets only server tokens through: what concerns the whole server is no single workspace's business.
func checkServerToken(ctx context.Context, snap *store.Snap, who reeve.Principal) error {
	mine, _, err := snap.Agents().GetCredential(ctx, who.TokenID)
	if err != nil {
		return err
	}
	if !mine.Server {
		return reeve.Errorf(reeve.Forbidden, "this concerns the whole server, and takes a server token").
			Hintf("use the token in owner.token of the server's data directory")
	}
	return nil
}
