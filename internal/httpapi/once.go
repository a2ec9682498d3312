package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/gate"
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

// ownKeys matches the routes whose requests carry their key into the ledger: the gate makes each call once, for good,
// the wake room each wake, and the chat room each turn. A batch of mails is known by its position.
var ownKeys = regexp.MustCompile(
	`^/api/(agents/[^/]+/(calls(/|$)|wake$)|conversations/[^/]+/turns$|playground/|mail/imports/[^/]+/batches$)`)

func hasOwnKey(path string) bool { return ownKeys.MatchString(path) }

// keepsKey tells whether a request's key is kept here. Nobody has been asked for a token yet where OpenAI's clients
// call.
func keepsKey(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(keyHeader) != "" && strings.HasPrefix(r.URL.Path, "/api/") &&
		!hasOwnKey(r.URL.Path)
}

// keyParameter documents the header.
func keyParameter() *huma.Param {
	most := maxKey
	return &huma.Param{Name: keyHeader, In: "header", Schema: &huma.Schema{Type: "string", MaxLength: &most},
		Description: "The same key with the same request within 24 hours gives the same answer again and changes " +
			"nothing; with another request it is refused"}
}

// keyRule says how a POST route makes sure that one Idempotency-Key makes its change once, also when the server dies.
type keyRule int

const (
	// inTransaction: the transaction that makes the change also keeps the answer, with store.Tx.Answer. After a crash
	// the key has its answer, or nothing was changed and the request is made anew.
	inTransaction keyRule = iota + 1
	// repeatable: the change takes several transactions or happens outside the database, and making the same request
	// again finishes what a crash cut off and repeats nothing. The answer is kept afterwards.
	repeatable
	// ownKey: the gate, the wakes, the turns or the import keep the key themselves; see ownKeys.
	ownKey
)

// keyRules has the rule of every POST route, by the id of its operation. A route without one cannot be registered.
var keyRules = map[string]keyRule{
	"createTool": inTransaction, "createAgent": inTransaction, "attachTool": inTransaction,
	"createSubscription": inTransaction, "createSchedule": inTransaction, "createNote": inTransaction,
	"readNotification": inTransaction, "stop": inTransaction, "resume": inTransaction,
	"createToken": inTransaction, "createWorkspace": inTransaction, "cancelRun": inTransaction,
	"resolveOperation": inTransaction, "deliverResult": inTransaction, "decide": inTransaction,
	"acceptProposal": inTransaction, "rejectProposal": inTransaction, "reopenProposal": inTransaction,

	"createConversation": inTransaction, "addParticipant": inTransaction, "cancelTurn": inTransaction,
	"rateTurn": inTransaction,

	"createCategory": inTransaction, "createLabel": inTransaction, "createTask": inTransaction,
	"assignLabels":   inTransaction,
	"createFollowUp": inTransaction, "concludeTask": inTransaction, "createChecklist": inTransaction,
	"addItems":  inTransaction,
	"moveItems": inTransaction, "splitItems": inTransaction, "createTimeEntry": inTransaction,
	"startTimer": inTransaction,
	"stopTimer":  inTransaction, "changeBlocks": inTransaction, "pinTasks": inTransaction,

	"createAutomation": inTransaction, "saveVersion": inTransaction, "activateVersion": inTransaction,
	"pauseAutomation": inTransaction, "resumeAutomation": inTransaction, "startAutomation": inTransaction,
	"skipItem": inTransaction, "reprocessItem": inTransaction, "planAutomation": inTransaction,
	"answerScriptJob": inTransaction, "applyRunPlan": inTransaction,

	"beginImport": inTransaction, "finishImport": inTransaction, "createProject": inTransaction,

	"undoOperation":   repeatable, // a call whose operation id derives from what it takes back
	"acceptChangeSet": repeatable, // each item is a transaction, and one that is accepted stays so
	"rejectChangeSet": repeatable,
	"mergeBranch":     repeatable, // a merge that is made is found, and noted
	"discardBranch":   repeatable, // see discardBranch

	"call": ownKey, "callAll": ownKey, "judge": ownKey, "wakeAgent": ownKey, "createTurn": ownKey,
	"playgroundChat": ownKey, "addBatch": ownKey,
}

// attempt is one attempt at a request with a key.
type attempt struct {
	request   store.Request
	answering *store.IdempotentRequest // of a route that keeps its answer in its transaction
}

// answering has the route's transaction keep the answer of a request with a key, if the route's rule says so.
func (r route) answering(ctx context.Context) context.Context {
	a, ok := ctx.Value(attemptKey).(*attempt)
	if !ok || keyRules[r.id] != inTransaction {
		return ctx
	}
	a.answering = &store.IdempotentRequest{Request: a.request, Encode: func(v any) (int, []byte, error) {
		status := cmp.Or(r.status, http.StatusOK)
		if v == nil {
			return status, nil, nil
		}
		var b bytes.Buffer
		err := marshal(&b, v)
		return status, b.Bytes(), err
	}}
	return store.WithIdempotentRequest(ctx, a.answering)
}

// answerAs has what a room keeps as the answer shown as the route shows it.
func answerAs[T any](ctx context.Context, shown func(T) any) {
	if a := store.IdempotentRequestFrom(ctx); a != nil {
		encode := a.Encode
		a.Encode = func(v any) (int, []byte, error) { return encode(shown(v.(T))) }
	}
}

// takenOver tells whether an earlier attempt at this request was cut off, and may have done a part of it.
func takenOver(ctx context.Context) bool {
	a, ok := ctx.Value(attemptKey).(*attempt)
	return ok && a.request.TakenOver
}

// attempts are the attempts at requests with a key that are under way in this process.
type attempts struct {
	mu   sync.Mutex
	here map[string]bool // by claim
}

func (a *attempts) begin(claim string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.here == nil {
		a.here = map[string]bool{}
	}
	a.here[claim] = true
}

func (a *attempts) end(claim string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.here, claim)
}

func (a *attempts) active(claim string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here[claim]
}

// idempotency makes a request that carries an Idempotency-Key once.
type idempotency struct {
	db       *store.DB
	gate     *gate.Gate
	errors   errorWriter
	log      *slog.Logger
	attempts attempts
	ids      reeve.IDs
}

// once makes a POST that carries an Idempotency-Key at most once in 24 hours.
//
// A request first claims its key, in a transaction of its own. The answer is then kept as the route's rule says; see
// keyRules. A claim without an answer counts only while its attempt is under way in a process that lives: until then
// the same key is refused as IN_PROGRESS, and afterwards it is claimed anew. An attempt whose claim was taken over
// cannot commit its change any more. Any error gives the key back, unless the change was made. The text of a new token
// is not kept at all: asking for it again is a CONFLICT.
//
// A caller who goes away ends nothing: they have the key to ask again with, and then find the change made and its
// answer kept.
func (i *idempotency) once(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !keepsKey(r) {
			next.ServeHTTP(w, r)
			return
		}
		req, err := keyed(r, principal(r.Context()), r.Header.Get(keyHeader))
		if err != nil {
			i.errors.write(w, r, err)
			return
		}
		req.Process, req.Claim = i.gate.Process(), i.ids.New(reeve.PrefixRequest, reeve.Now())
		i.attempts.begin(req.Claim)
		defer i.attempts.end(req.Claim)
		ctx, cancel := outlive(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		old, mine, err := i.claim(r.Context(), req)
		switch {
		case err != nil:
			i.errors.write(w, r, err)
		case mine:
			a := &attempt{request: old}
			got := &recorder{ResponseWriter: w}
			next.ServeHTTP(got, r.WithContext(context.WithValue(ctx, attemptKey, a)))
			i.keep(r, a, got)
			got.send()
		default:
			i.replay(w, r, req, old)
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
	if c, err := canonjson.Canonical(body); err == nil {
		body = c
	}
	return store.Request{ID: reeve.Key(reeve.PrefixRequest, who.TokenID, who.Workspace, r.URL.EscapedPath(), key),
		Hash: reeve.Hash(append(body, "?"+r.URL.RawQuery...))}, nil
}

func (i *idempotency) claim(ctx context.Context, req store.Request) (old store.Request, mine bool, err error) {
	err = i.db.Update(ctx, func(tx *store.Tx) error {
		old, mine, err = tx.Ledger().ClaimRequest(ctx, req, tx.Now().Add(-keyLife), i.attempts.active)
		return err
	})
	return old, mine, err
}

// keep records what became of a request, even if its caller has gone. If that fails, the same key makes the request
// anew.
func (i *idempotency) keep(r *http.Request, a *attempt, got *recorder) {
	if got.status < http.StatusBadRequest && a.answering != nil && a.answering.Kept {
		return
	}
	req := a.request
	if req.Status = got.status; r.URL.Path != tokensPath {
		req.Body = got.body.Bytes()
	}
	ctx := context.WithoutCancel(r.Context())
	err := i.db.Update(ctx, func(tx *store.Tx) error {
		if got.status >= http.StatusBadRequest {
			return tx.Ledger().ReleaseRequest(ctx, req)
		}
		return tx.Ledger().CompleteRequest(ctx, req)
	})
	switch {
	case err != nil:
		i.log.Error("the answer to a request with a key was not kept", "request", requestID(ctx), "error", err)
	case got.status < http.StatusBadRequest:
		i.log.Debug(keptAfter, "path", r.URL.Path)
	}
}

// keptAfter is logged for an answer that was not kept by the transaction that made the change.
const keptAfter = "the answer to a request with a key was kept after its change"

// replay answers a request whose key was taken before.
func (i *idempotency) replay(w http.ResponseWriter, r *http.Request, req, old store.Request) {
	switch {
	case old.Hash != req.Hash:
		i.errors.write(w, r, reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before, for another request").
			Hintf("use a new key for a new request; nothing was done"))
	case old.Status == 0:
		i.errors.write(w, r, reeve.Errorf(reeve.InProgress, "a request with this Idempotency-Key is under way").
			Hintf("repeat it with the same key in a while: that gives its answer, or makes it if it was cut off"))
	case len(old.Body) == 0 && r.URL.Path == tokensPath:
		i.errors.write(w, r, reeve.Errorf(reeve.Conflict, "the token was made before, and its text is shown only once").
			Hintf("revoke it and make another with a new key"))
	default:
		if old.Status == http.StatusAccepted && undoPath.MatchString(r.URL.Path) {
			if err := i.since(r.Context(), &old); err != nil {
				i.errors.write(w, r, err)
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

// undoPath matches the one route whose key is kept here and whose answer may be about what is still to come: an undo is
// a call.
var undoPath = regexp.MustCompile(`^/api/operations/[^/]+/undo$`)

// since brings the answer to a call that waited up to what has become of it.
func (i *idempotency) since(ctx context.Context, old *store.Request) error {
	var was reeve.Result
	if err := json.Unmarshal(old.Body, &was); err != nil {
		return err
	}
	now, err := i.gate.CurrentResult(ctx, principal(ctx).Workspace, was.OperationID)
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
