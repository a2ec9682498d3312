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
	keyHeader       = "Idempotency-Key"
	replayHeader    = "Idempotency-Replayed"
	maxKeyBytes     = 255
	keyLifetime     = 24 * time.Hour
	detachedTimeout = time.Minute // time to finish a request after its client disconnects
	tokensPath      = "/api/tokens"
	linksPath       = "/api/console/links"
)

// ownKeyRoutes matches the routes whose services deduplicate requests themselves, without an expiry: calls, wakes,
// turns and mail batches. A batch is identified by its position. A sign-in to the console has no key.
var ownKeyRoutes = regexp.MustCompile(
	`^/api/(agents/[^/]+/(calls(/|$)|wake$)|session$|conversations/[^/]+/turns$|playground/|mail/imports/[^/]+/batches$)`)

func handlesOwnKey(path string) bool { return ownKeyRoutes.MatchString(path) }

// needsDeduplication reports whether this middleware must deduplicate a request. It does not apply to /v1, where the
// caller is not authenticated yet.
func needsDeduplication(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(keyHeader) != "" && strings.HasPrefix(r.URL.Path, "/api/") &&
		!handlesOwnKey(r.URL.Path)
}

// keyParameter returns the documentation of the Idempotency-Key header.
func keyParameter() *huma.Param {
	maxLength := maxKeyBytes
	return &huma.Param{Name: keyHeader, In: "header", Schema: &huma.Schema{Type: "string", MaxLength: &maxLength},
		Description: "Makes the request once: within 24 hours, the same key returns the stored response. " +
			"The same key with a different request is a CONFLICT"}
}

// keyRule is how a POST route makes the change of one Idempotency-Key once, even if the server crashes.
type keyRule int

const (
	// inTransaction: the transaction that makes the change also stores the response, with SaveResponse. After a crash
	// either the response is stored, or nothing was changed and the request can be made again.
	inTransaction keyRule = iota + 1
	// repeatable: the change takes several transactions or happens outside the database. Making the same request again
	// completes an interrupted change and repeats nothing. The response is stored afterwards.
	repeatable
	// ownKey: the service behind the route stores the key itself; see ownKeyRoutes.
	ownKey
)

// keyRules maps the operation id of every POST route to its rule. handle panics for a POST route without a rule.
var keyRules = map[string]keyRule{
	"createTool": inTransaction, "createAgent": inTransaction, "attachTool": inTransaction,
	"retrySummary":       inTransaction,
	"createSubscription": inTransaction, "createSchedule": inTransaction, "runSchedule": inTransaction,
	"createNote":  inTransaction,
	"restoreNote": inTransaction, "importNotes": inTransaction, "forgetNote": repeatable,
	"consolidateNotes":     repeatable, // each change has an operation id that derives from the notes
	"markNotificationRead": inTransaction, "stopAgents": inTransaction, "resumeAgents": inTransaction,
	"createToken": inTransaction, "createWorkspace": inTransaction, "cancelRun": inTransaction,
	"resolveOperation": inTransaction, "deliverOperationResult": inTransaction, "decideApproval": inTransaction,
	"editApproval":   inTransaction,
	"acceptProposal": inTransaction, "rejectProposal": inTransaction, "reopenProposal": inTransaction,

	"createConversation": inTransaction, "addParticipant": inTransaction, "cancelTurn": inTransaction,
	"rateTurn": inTransaction,

	"createCategory": inTransaction, "createLabel": inTransaction, "createTask": inTransaction,
	"updateTaskLabels": inTransaction,
	"createFollowUp":   inTransaction, "concludeTask": inTransaction, "createChecklist": inTransaction,
	"addChecklistItems":  inTransaction,
	"moveChecklistItems": inTransaction, "splitChecklistItems": inTransaction, "createTimeEntry": inTransaction,
	"startTimer": inTransaction,
	"stopTimer":  inTransaction, "updatePlanBlocks": inTransaction, "updatePlanPins": inTransaction,

	"createAutomation": inTransaction, "createScriptVersion": inTransaction, "activateScriptVersion": inTransaction,
	"pauseAutomation": inTransaction, "resumeAutomation": inTransaction, "startAutomationRun": inTransaction,
	"skipItem": inTransaction, "reprocessItem": inTransaction, "planAutomation": inTransaction,
	"answerScriptJob": inTransaction, "applyRunPlan": inTransaction,

	"startImport": inTransaction, "finishImport": inTransaction, "createProject": inTransaction,

	"decideApprovals": repeatable, // each decision is one transaction, and a decision that was made is refused
	"lookUpOperation": repeatable, // changes nothing
	"undoRun":         repeatable, // each undo is like undoOperation
	"undoOperation":   repeatable, // a call whose operation id derives from the undone operation
	"acceptChangeSet": repeatable, // each item is one transaction, and an accepted item stays accepted
	"rejectChangeSet": repeatable,
	"mergeBranch":     repeatable, // finds and records a merge that was made
	"discardBranch":   repeatable, // see branchHandlers.discard

	"createSession": ownKey, "createConsoleLink": inTransaction,

	"callTool": ownKey, "callTools": ownKey, "previewCall": ownKey, "wakeAgent": ownKey, "createTurn": ownKey,
	"playgroundChat": ownKey, "addImportBatch": ownKey,
}

// attempt is one attempt at a request with a key.
type attempt struct {
	request store.Request
	stored  *store.IdempotentRequest // only for routes with the rule inTransaction
}

// withIdempotentRequest returns a context in which the route's transaction stores the response of a request with a key.
// It returns ctx itself if the route's rule is not inTransaction.
func (r route) withIdempotentRequest(ctx context.Context) context.Context {
	a, ok := ctx.Value(attemptKey).(*attempt)
	if !ok || keyRules[r.id] != inTransaction {
		return ctx
	}
	a.stored = &store.IdempotentRequest{Request: a.request, Encode: func(v any) (int, []byte, error) {
		status := cmp.Or(r.status, http.StatusOK)
		if v == nil {
			return status, nil, nil
		}
		var b bytes.Buffer
		err := marshal(&b, v)
		return status, b.Bytes(), err
	}}
	return store.WithIdempotentRequest(ctx, a.stored)
}

// convertStoredResponse makes the transaction store convert(v) instead of v. It is for services that save a value of a
// different type than the route returns.
func convertStoredResponse[T any](ctx context.Context, convert func(T) any) {
	if a := store.IdempotentRequestFrom(ctx); a != nil {
		encode := a.Encode
		a.Encode = func(v any) (int, []byte, error) { return encode(convert(v.(T))) }
	}
}

// retriesInterrupted reports whether an earlier attempt at this request was interrupted. That attempt may have made a
// part of the change.
func retriesInterrupted(ctx context.Context) bool {
	a, ok := ctx.Value(attemptKey).(*attempt)
	return ok && a.request.TakenOver
}

// attempts is the set of attempts that are running in this process.
type attempts struct {
	mu      sync.Mutex
	running map[string]bool // by claim
}

func (a *attempts) begin(claim string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running == nil {
		a.running = map[string]bool{}
	}
	a.running[claim] = true
}

func (a *attempts) end(claim string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, claim)
}

func (a *attempts) isRunning(claim string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running[claim]
}

// idempotency deduplicates requests that carry an Idempotency-Key.
type idempotency struct {
	db       *store.DB
	gate     *gate.Gate
	errors   errorWriter
	log      *slog.Logger
	attempts attempts
	ids      reeve.IDs
}

// deduplicate makes a POST with an Idempotency-Key at most once in 24 hours.
//
// A request first claims its key in a transaction of its own. The response is stored as the route's rule says; see
// keyRules. While the attempt runs in a live process, another request with the same key fails with IN_PROGRESS. If the
// process dies, the next request takes over the claim, and the old attempt can no longer commit its change. An error
// releases the key, unless the change was made. The text of a new token is never stored, so a repeated request for it
// fails with CONFLICT.
//
// The request continues after its client disconnects. The client can repeat it with the same key and receive the stored
// response.
func (i *idempotency) deduplicate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !needsDeduplication(r) {
			next.ServeHTTP(w, r)
			return
		}
		req, err := newKeyedRequest(r, principal(r.Context()), r.Header.Get(keyHeader))
		if err != nil {
			i.errors.write(w, r, err)
			return
		}
		req.Process, req.Claim = i.gate.Process(), i.ids.New(reeve.PrefixRequest, reeve.Now())
		i.attempts.begin(req.Claim)
		defer i.attempts.end(req.Claim)
		ctx, cancel := detachWithTimeout(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		old, mine, err := i.claim(r.Context(), req)
		switch {
		case err != nil:
			i.errors.write(w, r, err)
		case mine:
			a := &attempt{request: old}
			recorder := &responseRecorder{ResponseWriter: w}
			next.ServeHTTP(recorder, r.WithContext(context.WithValue(ctx, attemptKey, a)))
			i.saveResponse(r, a, recorder)
			recorder.send()
		default:
			i.replay(w, r, req, old)
		}
	})
}

// detachWithTimeout returns a context that ends detachedTimeout after its parent.
func detachWithTimeout(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(detachedTimeout, cancel) })
	return ctx, func() { stop(); cancel() }
}

// newKeyedRequest reads the body, and returns the id of the request, derived from caller, path and key, and the hash of
// its body and query. It replaces the body, so that it can be read again.
func newKeyedRequest(r *http.Request, who reeve.Principal, key string) (store.Request, error) {
	if len(key) > maxKeyBytes {
		return store.Request{}, &reeve.Error{Code: reeve.Validation, Message: "the Idempotency-Key is too long",
			Fields: []reeve.Field{{Path: "header/" + keyHeader, Message: "is too long", Expected: "at most 255 bytes"}}}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
	if reeve.CodeOf(err) == reeve.Timeout {
		return store.Request{}, err
	}
	if err != nil {
		return store.Request{}, reeve.Errorf(reeve.Validation, "the request body is incomplete")
	}
	if len(body) > bodyLimit {
		return store.Request{}, newBodyTooLarge(bodyLimit)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if c, err := canonjson.Canonical(body); err == nil {
		body = c
	}
	return store.Request{ID: reeve.DeriveID(reeve.PrefixRequest, who.TokenID, who.Workspace, r.URL.EscapedPath(), key),
		Hash: reeve.Hash(append(body, "?"+r.URL.RawQuery...)), Workspace: who.Workspace, User: who.User}, nil
}

func (i *idempotency) claim(ctx context.Context, req store.Request) (old store.Request, mine bool, err error) {
	err = i.db.Update(ctx, func(tx *store.Tx) error {
		old, mine, err = tx.Ledger().ClaimRequest(ctx, req, tx.Now().Add(-keyLifetime), i.attempts.isRunning)
		return err
	})
	return old, mine, err
}

// saveResponse stores the response, or releases the key if the request failed. It does so even if the client has
// disconnected. If saveResponse fails, the next request with the same key is executed again.
func (i *idempotency) saveResponse(r *http.Request, a *attempt, got *responseRecorder) {
	if got.status < http.StatusBadRequest && a.stored != nil && a.stored.Saved {
		return
	}
	req := a.request
	if req.Status = got.status; !isSecretPath(r.URL.Path) {
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
		i.log.Error("cannot store response for idempotency key", "request", requestID(ctx), "error", err)
	case got.status < http.StatusBadRequest:
		i.log.Debug(responseSavedLate, "path", r.URL.Path)
	}
}

// responseSavedLate is logged for a response that was not stored by the transaction that made the change.
const responseSavedLate = "response for idempotency key stored after the change"

// replay responds to a request whose key was claimed before.
func (i *idempotency) replay(w http.ResponseWriter, r *http.Request, req, old store.Request) {
	switch {
	case old.Hash != req.Hash:
		i.errors.write(w, r, reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used for a different request").
			Hintf("use a new key for a new request; nothing was changed"))
	case old.Status == 0:
		i.errors.write(w, r, reeve.Errorf(reeve.InProgress, "a request with this Idempotency-Key is in progress").
			Hintf("repeat the request with the same key later to receive its response"))
	case len(old.Body) == 0 && isSecretPath(r.URL.Path):
		i.errors.write(w, r, reeve.Errorf(reeve.Conflict,
			"the token was created before, and its text is shown only once").
			Hintf("revoke the token and create another with a new key"))
	default:
		if old.Status == http.StatusAccepted && undoPath.MatchString(r.URL.Path) {
			if err := i.refreshResult(r.Context(), &old); err != nil {
				i.errors.write(w, r, err)
				return
			}
		}
		w.Header().Set(replayHeader, "true")
		if len(old.Body) > 0 {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(old.Status)
		_, _ = w.Write(old.Body) // fails only if the client has disconnected
	}
}

// isSecretPath reports whether the response of a POST to a path shows a secret, which is never stored.
func isSecretPath(path string) bool { return path == tokensPath || path == linksPath }

// undoPath matches the undo of an operation. An undo is a call, so its stored response may be a result that was still
// waiting.
var undoPath = regexp.MustCompile(`^/api/operations/[^/]+/undo$`)

// refreshResult replaces a stored result that was still waiting by the current result of its operation.
func (i *idempotency) refreshResult(ctx context.Context, old *store.Request) error {
	var stored reeve.Result
	if err := json.Unmarshal(old.Body, &stored); err != nil {
		return err
	}
	current, err := i.gate.CurrentResult(ctx, principal(ctx).Workspace, stored.OperationID)
	if err != nil {
		return err
	}
	out := newCallOutput(current)
	old.Status = out.Status
	old.Body, err = json.Marshal(out.Body)
	return err
}

// responseRecorder buffers a response until it is stored.
type responseRecorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *responseRecorder) WriteHeader(status int) { r.status = status }

func (r *responseRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(b)
}

func (r *responseRecorder) send() {
	r.ResponseWriter.WriteHeader(r.status)
	_, _ = r.ResponseWriter.Write(r.body.Bytes()) // fails only if the client has disconnected
}
