package client

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"reeve"
	"reeve/api"
)

// Call has an agent call a tool. A refusal is an error; a tool's own failure is a result with IsError set; a call that
// waits for a person is a result in state Parked with an ApprovalID, which [OperationService.Wait] can follow.
func (s CallService) Call(ctx context.Context, agent string, call api.CallRequest) (out reeve.Result, err error) {
	if call.Key == "" {
		call.Key = s.conn.key()
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "calls"), body: call,
		key:   call.Key,
		again: "ask again with the Idempotency-Key " + call.Key + ": nothing is done twice"}, &out)
}

// Batch has an agent make several calls, as one model response does: reads together, others alone and in order.
func (s CallService) Batch(ctx context.Context, agent string, b api.BatchRequest) (out api.BatchResponse, err error) {
	key := s.conn.key()
	b.Calls = slices.Clone(b.Calls)
	for i := range b.Calls {
		if b.Calls[i].Key == "" {
			b.Calls[i].Key = key + "." + strconv.Itoa(i)
		}
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "calls", "batch"), body: b,
		key:   key,
		again: "ask again with the idempotency_key of each call, " + key + ".0 and so on: nothing is done twice"}, &out)
}

// Preview returns the gate's decision on a call without making the call.
func (s CallService) Preview(ctx context.Context, agent string, call api.CallRequest) (reeve.Explanation, error) {
	return post[reeve.Explanation](ctx, s.conn, path("agents", agent, "calls", "explain"), call)
}

// Explain returns the verdict of each gate step on a past call. The id is that of the call or of its operation.
func (s CallService) Explain(ctx context.Context, id string) (reeve.Explanation, error) {
	return get[reeve.Explanation](ctx, s.conn, path("calls", id, "explanation"), nil)
}
