package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

type callInput struct {
	AgentPath
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"Requests with the same key make the call only once. A key is valid per user and session, or per user and run"`
	Body api.CallRequest
}

// newCall converts a request into a call for the gate. It fails if the header and the body have different keys.
func newCall(who reeve.Principal, agent, key string, r api.CallRequest) (reeve.Call, error) {
	if key == "" {
		key = r.Key
	} else if r.Key != "" && r.Key != key {
		return reeve.Call{}, &reeve.Error{Code: reeve.Validation,
			Message: "the Idempotency-Key header and idempotency_key differ",
			Fields:  []reeve.Field{{Path: "/idempotency_key", Message: "differs from the header", Expected: key}}}
	}
	c := reeve.Call{Workspace: who.Workspace, Agent: agent, Tool: r.Tool, Args: r.Args,
		Session: r.Session, Run: r.Run, User: who.User, Via: reeve.ViaREST,
		Tools: r.Tools, PreviewOnly: r.PreviewOnly, Base: r.Base, Reason: r.Reason}
	if key != "" {
		c.Operation = key // prepareCall derives the operation id from it
	}
	return c, nil
}

// callHandlers serves tool calls, their explanations and their stored outputs.
type callHandlers struct {
	db       *store.DB
	gate     *gate.Gate
	redactor viewRedactor
}

// prepareCall converts a request into a call, and checks that the caller may see its session and run. It resolves the
// agent before it derives the operation id, so that a key means the same with the agent's id and name.
func (h *callHandlers) prepareCall(ctx context.Context, who reeve.Principal, agent, key string,
	r api.CallRequest) (reeve.Call, error) {
	c, err := newCall(who, agent, key, r)
	if err != nil || c.Operation == "" && c.Session == "" && c.Run == "" {
		return c, err
	}
	err = h.db.View(ctx, func(snap *store.Snap) (err error) {
		if c.Session, err = resolveSession(ctx, snap, who, c.Session); err != nil {
			return err
		}
		if err := checkSessionAccess(ctx, snap, who, c.Session, c.Run); err != nil || c.Operation == "" {
			return err
		}
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, agent)
		c.Agent, c.Operation = a.ID, reeve.OperationKey(who.Workspace, a.ID, c.Operation)
		return err
	})
	return c, err
}

type callOutput struct {
	Status int
	Body   reeve.Result
}

// newCallOutput returns the response for a result, with status 202 while the call waits and 200 otherwise.
func newCallOutput(r reeve.Result) *callOutput {
	out := &callOutput{Status: http.StatusOK, Body: r}
	switch r.State {
	case reeve.Parked, reeve.Prepared, reeve.Dispatched, reeve.Unknown, reeve.ProposedOp:
		if r.Code != reeve.Skipped {
			out.Status = http.StatusAccepted
		}
	case reeve.Committed, reeve.Failed, reeve.DeniedOp:
	}
	return out
}

func (h *callHandlers) call(ctx context.Context, who reeve.Principal, in *callInput) (*callOutput, error) {
	c, err := h.prepareCall(ctx, who, in.Agent, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	res, err := h.gate.Call(ctx, c)
	if err != nil {
		return nil, &refusedCall{res.CallID, err}
	}
	return newCallOutput(res), nil
}

// callAll makes several calls in order. Each call without a key gets a key derived from the batch's key.
func (h *callHandlers) callAll(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Makes each call of the batch once"`
	Body api.BatchRequest
}) (*body[api.BatchResponse], error) {
	calls := make([]reeve.Call, len(in.Body.Calls))
	for i, r := range in.Body.Calls {
		var err error
		if in.Key != "" && r.Key == "" {
			r.Key = in.Key + "#" + strconv.Itoa(i)
		}
		if calls[i], err = h.prepareCall(ctx, who, in.Agent, "", r); err != nil {
			return nil, err
		}
	}
	out := &body[api.BatchResponse]{Body: api.BatchResponse{Results: make([]reeve.Result, len(calls))}}
	last := 0 // index of the last call that was made
	for i, a := range h.gate.CallBatch(ctx, calls) {
		switch {
		case !a.Made:
			out.Body.Results[i] = newSkippedResult(last, calls[last].Tool)
			continue
		case a.Err != nil && a.Result.CallID == "":
			return nil, a.Err // not recorded: the agent does not exist or the store failed
		}
		out.Body.Results[i], last = a.Result, i
	}
	return out, nil
}

// newSkippedResult returns the result of a call that was not made because its run waits for an earlier call of the
// batch, given by index and tool.
func newSkippedResult(index int, tool string) reeve.Result {
	return reeve.Result{IsError: true, Code: reeve.Conflict,
		Message: fmt.Sprintf("the call was not made: its run waits for call %d of the batch, %s", index+1, tool),
		Hint: "make the call after that one has its result; a batch with an Idempotency-Key can be sent again " +
			"unchanged"}
}

func (h *callHandlers) preview(ctx context.Context, who reeve.Principal,
	in *callInput) (*body[reeve.Explanation], error) {
	c, err := h.prepareCall(ctx, who, in.Agent, in.Key, in.Body)
	if err != nil {
		return nil, err
	}
	preview := h.gate.PreviewWithoutTool // only members may run the tool's own preview
	if who.Role.Allows(reeve.Member) {
		preview = h.gate.Preview
	}
	x, err := preview(ctx, c)
	return &body[reeve.Explanation]{x}, err
}

func (h *callHandlers) explain(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Explanation], error) {
	x, err := h.gate.Explain(ctx, who.Workspace, in.ID)
	if err == nil {
		err = h.checkCall(ctx, who, x.CallID, in.ID)
	}
	if err != nil {
		return nil, err
	}
	return &body[reeve.Explanation]{x}, h.db.View(ctx, func(snap *store.Snap) error {
		return h.redactor.redactOne(ctx, snap, who, x.Approval, x.Proposal)
	})
}

// checkCall fails with NOT_FOUND if the caller does not see a call. The error names the id that the caller used.
func (h *callHandlers) checkCall(ctx context.Context, who reeve.Principal, id, shown string) error {
	return h.db.View(ctx, func(snap *store.Snap) error {
		_, err := visibleLedger(snap, who).GetCall(ctx, who.Workspace, id)
		if reeve.CodeOf(err) == reeve.NotFound {
			return newNotFound("call", shown)
		}
		return err
	})
}

func (h *callHandlers) readOutput(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Hash   string `path:"hash" pattern:"^[0-9a-f]{64}$" doc:"Hash of the output, as in a call's result"`
	Offset int    `query:"offset" minimum:"0" maximum:"1000000000" doc:"First byte to read"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1048576" default:"65536" doc:"Most bytes to read"`
}) (*body[api.OutputSlice], error) {
	out := &body[api.OutputSlice]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		inv := redaction.Invocation()
		if who.Role.Allows(reeve.Member) {
			inv = redaction.DeciderInvocation()
		}
		got, err := visibleLedger(snap, who).GetOutput(ctx, inv, in.Hash, in.Offset, in.Limit)
		if err != nil {
			return err
		}
		b := got.BytePrefix(in.Limit)
		// binary output is returned as bytes
		if whole := got.TextPrefix(in.Limit); len(whole) > 0 && utf8.Valid(whole) {
			b = whole
		}
		out.Body = api.OutputSlice{Offset: in.Offset, Size: got.Size}
		if len(b) > 0 {
			from, to, text := got.RedactedPart(len(b))
			out.Body = api.NewOutputSlice([]byte(text), from, to, got.Size)
		}
		return nil
	})
	return out, err
}
