package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

const (
	keyHeader    = "Idempotency-Key"
	replayHeader = "Idempotency-Replayed"
	maxKey       = 255
	keyLife      = 24 * time.Hour
	outlives     = time.Minute // how long a request that is made once may go on when its caller has gone
	tokensPath   = "/api/tokens"
)

// ownKey matches the routes whose requests carry their key into the ledger: the gate makes each call once, for good, the wake
// room each wake, and the chat room each turn. A batch of mails is known by its position.
var ownKey = regexp.MustCompile(`^/api/(agents/[^/]+/(calls(/|$)|wake$)|conversations/[^/]+/turns$|playground/|mail/imports/[^/]+/batches$)`)

func hasOwnKey(path string) bool { return ownKey.MatchString(path) }

// keepsKey tells whether a request's key is kept here. Nobody has been asked for a token yet where OpenAI's clients call.
func keepsKey(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(keyHeader) != "" && strings.HasPrefix(r.URL.Path, "/api/") && !hasOwnKey(r.URL.Path)
}

// keyParameter documents the header.
func keyParameter() *huma.Param {
	most := maxKey
	return &huma.Param{Name: keyHeader, In: "header", Schema: &huma.Schema{Type: "string", MaxLength: &most},
		Description: "The same key with the same request within 24 hours gives the same answer again and changes nothing; with another request it is refused"}
}

// once makes a POST that carries an Idempotency-Key at most once in 24 hours.
//
// The key is taken in a transaction of its own before the request is looked at, and its answer is kept in another one after
// the change, so a crash between the two leaves a key that is taken and has no answer. The change may then have been made or
// not: a later request with that key is refused as IN_PROGRESS until the key is forgotten, and so never makes it a second
// time. The same holds when the change ended in an error that does not say whether it was made. Any other error gives the key
// back: nothing was changed, or only what the same request finds changed and does not change again, as an item of a set that is decided on. What a new token's text was is not kept at all: asking for it again is a CONFLICT.
//
// A caller who goes away ends nothing: they have the key to ask again with, and then find the change made and its answer kept.
func (s *server) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !keepsKey(r) {
			next.ServeHTTP(w, r)
			return
		}
		req, err := keyed(r, principal(r.Context()), r.Header.Get(keyHeader))
		if err != nil {
			s.write(w, r, err)
			return
		}
		ctx, cancel := outlive(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		old, mine, err := s.claim(r.Context(), req)
		switch {
		case err != nil:
			s.write(w, r, err)
		case mine:
			got := &recorder{ResponseWriter: w}
			next.ServeHTTP(got, r)
			s.keep(r, req, got)
			got.send()
		default:
			s.replay(w, r, req, old)
		}
	})
}

// outlive gives a context that goes on for a while when its parent has ended.
func outlive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(outlives, cancel) })
	return ctx, func() { stop(); cancel() }
}

// keyed names a request and hashes what it asks for. It leaves the body to be read again.
func keyed(r *http.Request, who reeve.Principal, key string) (store.Request, error) {
	if len(key) > maxKey {
		return store.Request{}, &reeve.Error{Code: reeve.Validation, Message: "the Idempotency-Key is too long",
			Fields: []reeve.Field{{Path: "header/" + keyHeader, Message: "is too long", Expected: "at most 255 bytes"}}}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
	if reeve.CodeOf(err) == reeve.Timeout {
		return store.Request{}, err // it came too slowly
	}
	if err != nil {
		return store.Request{}, reeve.Errorf(reeve.Validation, "the body could not be read to its end")
	}
	if len(body) > bodyLimit {
		return store.Request{}, tooLarge(bodyLimit)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if c, err := reeve.Canonical(body); err == nil {
		body = c
	}
	return store.Request{ID: reeve.Key(reeve.PrefixRequest, who.TokenID, who.Workspace, r.URL.EscapedPath(), key),
		Hash: reeve.Hash(append(body, "?"+r.URL.RawQuery...))}, nil
}

func (s *server) claim(ctx context.Context, req store.Request) (old store.Request, mine bool, err error) {
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		old, mine, err = tx.ClaimRequest(ctx, req, tx.Now().Add(-keyLife))
		return err
	})
	return old, mine, err
}

// keep records what became of a request, even if its caller has gone.
func (s *server) keep(r *http.Request, req store.Request, got *recorder) {
	if got.unsure() {
		return
	}
	if req.Status = got.status; r.URL.Path != tokensPath {
		req.Body = got.body.Bytes()
	}
	ctx := context.WithoutCancel(r.Context())
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		if got.status >= http.StatusBadRequest {
			return tx.DropRequest(ctx, req.ID)
		}
		return tx.AnswerRequest(ctx, req)
	})
	if err != nil {
		s.Log.Error("the answer to a request with a key was not kept", "request", requestID(ctx), "error", err)
	}
}

// replay answers a request whose key was taken before.
func (s *server) replay(w http.ResponseWriter, r *http.Request, req, old store.Request) {
	switch {
	case old.Hash != req.Hash:
		s.write(w, r, reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before, for another request").Hintf("use a new key for a new request; nothing was done"))
	case old.Status == 0:
		s.write(w, r, reeve.Errorf(reeve.InProgress, "a request with this Idempotency-Key has begun, and how it ended is not known").
			Hintf("if it was cut off, look whether the change is there before you use a new key"))
	case len(old.Body) == 0 && r.URL.Path == tokensPath:
		s.write(w, r, reeve.Errorf(reeve.Conflict, "the token was made before, and its text is shown only once").Hintf("revoke it and make another with a new key"))
	default:
		if old.Status == http.StatusAccepted && undoPath.MatchString(r.URL.Path) {
			if err := s.since(r.Context(), &old); err != nil {
				s.write(w, r, err)
				return
			}
		}
		w.Header().Set(replayHeader, "true")
		if len(old.Body) > 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(old.Status)
		_, _ = w.Write(old.Body) // nobody is there to be told
	}
}

// undoPath matches the one route whose key is kept here and whose answer may be about what is still to come: an undo is a call.
var undoPath = regexp.MustCompile(`^/api/operations/[^/]+/undo$`)

// since brings the answer to a call that waited up to what has become of it.
func (s *server) since(ctx context.Context, old *store.Request) error {
	var was reeve.Result
	if err := json.Unmarshal(old.Body, &was); err != nil {
		return err
	}
	now, err := s.Gate.Stands(ctx, principal(ctx).Workspace, was.OperationID)
	if err != nil {
		return err
	}
	out := answer(now)
	old.Status = out.Status
	old.Body, err = json.Marshal(out.Body)
	return err
}

// recorder holds an answer back until it is kept.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(b)
}

func (r *recorder) send() {
	r.ResponseWriter.WriteHeader(r.status)
	_, _ = r.ResponseWriter.Write(r.body.Bytes()) // nobody is there to be told
}

// unsure tells whether the answer leaves open if the change was made.
func (r *recorder) unsure() bool {
	if r.status < http.StatusBadRequest {
		return false
	}
	var p reeve.Problem
	if json.Unmarshal(r.body.Bytes(), &p) != nil {
		return true
	}
	return slices.Contains([]reeve.Code{reeve.Internal, reeve.UnknownOutcome, reeve.Timeout, reeve.Canceled}, p.Code)
}
