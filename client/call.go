package client

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"reeve"
	"reeve/api"
)

// Call makes an agent call a tool. If the gate refuses the call, Call returns an error. If the tool fails, the result
// has IsError set. If the call waits for approval, the result has the state Parked and an ApprovalID; use
// [OperationService.Wait] to wait for it.
func (s CallService) Call(ctx context.Context, agent string, call api.CallRequest) (out reeve.Result, err error) {
	if call.Key == "" {
		call.Key = s.conn.key()
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "calls"), body: call,
		key:       call.Key,
		retryHint: "repeat the call with Idempotency-Key " + call.Key + "; it is not executed twice"}, &out)
}

// Batch makes an agent call several tools, as one model response does: reads in parallel, others one by one in order.
func (s CallService) Batch(ctx context.Context, agent string, b api.BatchRequest) (out api.BatchResponse, err error) {
	key := s.conn.key()
	b.Calls = slices.Clone(b.Calls)
	for i := range b.Calls {
		if b.Calls[i].Key == "" {
			b.Calls[i].Key = key + "." + strconv.Itoa(i)
		}
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "calls", "batch"), body: b,
		key:       key,
		retryHint: "repeat each call with its idempotency_key (" + key + ".0, .1, ...); none is executed twice"}, &out)
}

// Preview returns the gate's current decision on a call without making the call.
func (s CallService) Preview(ctx context.Context, agent string, call api.CallRequest) (reeve.Explanation, error) {
	return post[reeve.Explanation](ctx, s.conn, path("agents", agent, "calls", "explain"), call)
}

// Explain returns the decision of each gate step for a past call. The id is that of the call or its operation.
func (s CallService) Explain(ctx context.Context, id string) (reeve.Explanation, error) {
	return get[reeve.Explanation](ctx, s.conn, path("calls", id, "explanation"), nil)
}
