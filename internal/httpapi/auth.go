package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"reeve"
	"reeve/internal/store"
)

type ctxKey int

const (
	principalKey ctxKey = iota
	requestKey
	attemptKey
)

// request is what we know of a request from its start.
type request struct {
	id  string
	log func(msg string, args ...any)
}

func principal(ctx context.Context) reeve.Principal {
	p, _ := ctx.Value(principalKey).(reeve.Principal)
	return p
}

func requestID(ctx context.Context) string {
	r, _ := ctx.Value(requestKey).(request)
	return r.id
}

func note(ctx context.Context, err error) {
	if r, ok := ctx.Value(requestKey).(request); ok {
		r.log("a request failed", "request", r.id, "error", err)
	}
}

// noteFailure is note for errors that are nobody's but the server's, unless it only stops.
func noteFailure(ctx context.Context, err error) {
	if reeve.AsError(err) != errStopping && statuses[reeve.CodeOf(err)] >= http.StatusInternalServerError {
		note(ctx, err)
	}
}

// identify gives each request an id and keeps a panic from reaching anybody else.
func (s *server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := s.ids.New(reeve.PrefixRequest, reeve.Now())
		r = r.WithContext(context.WithValue(r.Context(), requestKey, request{id: id, log: s.Log.Error}))
		w.Header().Set("X-Request-Id", id)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint,goerr113 // net/http compares it so
					panic(p)
				}
				s.Log.Error("a handler panicked", "request", id, "panic", p)
				s.write(w, r, reeve.Errorf(reeve.Internal, "internal error"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// checkOrigin refuses requests that a foreign web page could make a browser send: an unknown Host (DNS rebinding) or Origin.
func (s *server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.knownHost(r.Host) {
			s.write(w, r, reeve.Errorf(reeve.Forbidden, "the host %q is not one this server answers to", r.Host).Hintf("add it to hosts in reeve.yaml"))
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !s.knownOrigin(o, r.Host) {
			s.write(w, r, reeve.Errorf(reeve.Forbidden, "the origin %q may not call this server", o).Hintf("add it to origins in reeve.yaml"))
			return
		}
		if s.cors(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(strings.ToLower(name), "[]")
	known := func(entry string) bool { // in whichever case both are written
		return strings.EqualFold(strings.Trim(entry, "[]"), name) || strings.EqualFold(entry, host)
	}
	if name == "localhost" || slices.ContainsFunc(s.Hosts, known) {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func (s *server) knownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // also the opaque origin "null"
	}
	return strings.EqualFold(u.Host, host) || slices.Contains(s.Origins, origin)
}

// checkPath refuses paths that are not written in their one form: net/http would redirect them, and a proxy might read them
// in another way than we do.
func (s *server) checkPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
			s.noRoute(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authenticate lets requests to /api through with a valid token for the workspace they name.
func (s *server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != "/api" {
			next.ServeHTTP(w, r)
			return
		}
		who, err := s.identity(r)
		if err != nil {
			s.write(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey, who)))
	})
}

func (s *server) identity(r *http.Request) (reeve.Principal, error) {
	return s.whoIs(r, bearer(r), r.Header.Get("X-Workspace-Id"))
}

// bearer is the token that a request carries in its header, or nothing.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// whoIs finds out who makes a request, by its token and the workspace it names.
func (s *server) whoIs(r *http.Request, token, workspace string) (reeve.Principal, error) {
	var who reeve.Principal
	c, err := s.admit(r, token)
	if err != nil {
		return who, err
	}
	if workspace == "" {
		return who, &reeve.Error{Code: reeve.Validation, Message: "the header X-Workspace-Id is missing", Hint: "name the workspace, such as default",
			Fields: []reeve.Field{{Path: "header/X-Workspace-Id", Message: "is missing", Expected: "a workspace id"}}}
	}
	if !slices.Contains(c.Workspaces, workspace) { // one answer for a workspace that is another's and one that is not there
		return who, reeve.Errorf(reeve.Forbidden, "the token is not valid in that workspace")
	}
	return reeve.Principal{TokenID: c.ID, User: c.User, Role: c.Role, Workspace: workspace}, nil
}

// admit finds the token of a request, and limits how fast one token, or an address without a valid one, may ask.
func (s *server) admit(r *http.Request, token string) (store.Credential, error) {
	if token == "" {
		return store.Credential{}, s.slow(r, reeve.Errorf(reeve.Unauthenticated, "no bearer token was sent").
			Hintf("send Authorization: Bearer <token>; the owner's is in the data directory"))
	}
	c, err := s.credential(r.Context(), token)
	if reeve.CodeOf(err) == reeve.Unauthenticated {
		return c, s.slow(r, err)
	}
	if err == nil {
		err = s.limit.allow("token:" + c.ID)
	}
	return c, err
}

// metrics serves what is measured. It counts all workspaces together, so it takes a server token, or the token that the
// configuration has for it.
func (s *server) metrics(w http.ResponseWriter, r *http.Request) {
	if err := s.mayMeasure(r, bearer(r)); err != nil {
		s.write(w, r, err)
		return
	}
	s.Metrics.ServeHTTP(w, r)
}

func (s *server) mayMeasure(r *http.Request, token string) error {
	if s.MetricsToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.MetricsToken)) == 1 {
		return nil
	}
	c, err := s.admit(r, token)
	if err == nil && !c.Server {
		err = reeve.Errorf(reeve.Forbidden, "the metrics count all workspaces together, and take a server token").
			Hintf("use the token in owner.token of the data directory, or the server's metrics_token")
	}
	return err
}

// slow limits how fast tokens can be guessed from one address.
func (s *server) slow(r *http.Request, err error) error {
	host, _, splitErr := net.SplitHostPort(r.RemoteAddr)
	if splitErr != nil {
		host = r.RemoteAddr
	}
	if limited := s.limit.allow("address:" + host); limited != nil {
		return limited
	}
	return err
}

// tokenPrefix begins every bearer token.
const tokenPrefix = "reeve_"

// newCredential makes a token: its text, to be shown once, and what is kept of it.
func newCredential(id string, t reeve.AccessToken) (string, store.Credential) {
	secret := reeve.Secret(32)
	t.ID = id
	return tokenPrefix + id + "_" + secret, store.Credential{AccessToken: t, Hash: hashSecret(secret)}
}

// NewOwner makes the token that a server keeps in its data directory: a server token, valid in every workspace.
func NewOwner(id string, at time.Time) (string, store.Credential) {
	text, c := newCredential(id, reeve.AccessToken{Name: reeve.OwnerUser, User: reeve.OwnerUser, Role: reeve.Owner, CreatedAt: at})
	c.Server = true
	return text, c
}

func hashSecret(s string) string { // a random secret of 256 bits needs no slow hash
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func (s *server) credential(ctx context.Context, token string) (c store.Credential, err error) {
	return c, s.DB.View(ctx, func(snap *store.Snap) error {
		c, err = Recognize(ctx, snap, token)
		return err
	})
}

// Recognize finds what is kept of a token, or says that it is not valid.
func Recognize(ctx context.Context, snap *store.Snap, token string) (store.Credential, error) {
	wrong := reeve.Errorf(reeve.Unauthenticated, "the bearer token is not valid").Hintf("it may have been revoked or have expired")
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i < 0 || !reeve.IsID(rest[:i]) {
		return store.Credential{}, wrong
	}
	c, found, err := snap.GetCredential(ctx, rest[:i])
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
	by    map[string]*rate.Limiter
}

// maxLimiters bounds the memory that strangers can make us use.
const maxLimiters = 10_000

func (l *limiter) allow(who string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil || len(l.by) > maxLimiters {
		l.by = map[string]*rate.Limiter{}
	}
	b, ok := l.by[who]
	if !ok {
		b = rate.NewLimiter(rate.Limit(l.rate), l.burst)
		l.by[who] = b
	}
	if b.Allow() {
		return nil
	}
	return &reeve.Error{Code: reeve.RateLimited, Message: "too many requests", Hint: "wait a moment and try again", RetryAfter: time.Second}
}
