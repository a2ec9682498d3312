package host_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// Whoever makes a call again after the time of its approval is over need not wait until the loop has noticed, which
// does not run here: they are told, or asked anew. No list shows it as pending.
func TestG14_WhoAsksAgainInTimeForTheNext(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			var g guarded
			cfg := quick(t)
			cfg.ApprovalTTL = host.Duration(time.Second) // the least there is
			if engine == "postgres" {
				cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
			}
			h := reevetest.StartWith(t, cfg, g.tool())
			a := h.Agent("a", "guarded")
			late := func(res reeve.Result) {
				t.Helper()
				eventually(t, "the approval's time to be over", func() bool {
					var v reeve.Approval
					h.Want(http.StatusOK, &v, "GET", "/api/approvals/"+res.ApprovalID, nil)
					return v.State == reeve.ApprovalExpired
				})
			}
			keyed, inRun := call{"tool": "guarded", "idempotency_key": "k"}, call{"tool": "guarded", "run": "r"}
			first, _, _ := do(h, a.ID, keyed)
			late(first)
			var list api.ApprovalList
			h.Want(http.StatusOK, &list, "GET", "/api/approvals?state=pending", nil)
			if op := operation(h, first.OperationID); len(list.Approvals) != 0 || len(inbox(h).Approvals) != 0 ||
				op.State != reeve.Parked {
				t.Errorf("%+v is pending; %+v", list.Approvals, op)
			}
			if h.Want(http.StatusOK, &list, "GET", "/api/approvals?state=expired", nil); len(list.Approvals) != 1 ||
				list.Approvals[0].State != reeve.ApprovalExpired {
				t.Errorf("%+v has expired", list.Approvals)
			}
			if x := explained(h, first.CallID); x.Approval.State != reeve.ApprovalExpired ||
				!strings.Contains(x.Outcome, "expired") {
				t.Errorf("it is explained as %q, %+v", x.Outcome, x.Approval)
			}
			again, _, _ := do(h, a.ID, keyed)
			if op := operation(h, first.OperationID); again.State != reeve.DeniedOp ||
				again.OperationID != first.OperationID || !strings.Contains(again.Message, "expired") ||
				op.State != reeve.DeniedOp {
				t.Errorf("%+v, %+v", again, op)
			}
			was, _, _ := do(h, a.ID, inRun)
			late(was)
			anew, problem, _ := do(h, a.ID, inRun)
			if anew.State != reeve.Parked || anew.ApprovalID == was.ApprovalID || operation(h, was.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("%+v %+v", anew, problem)
			}
			if g.ran.count() != 0 {
				t.Errorf("%d ran", g.ran.count())
			}
		})
	}
}

// An undo that nobody approved in time is asked for anew at once, and who has asked for it with a key is told so.
func TestO03_AnUndoThatNobodyApprovedInTime(t *testing.T) {
	t.Parallel()
	cfg := quick(t)
	cfg.ApprovalTTL = host.Duration(time.Second) // the least there is
	h := reevetest.StartWith(t, cfg)
	u := &undoing{h, h.Agent("a", "file_write", "file_read", "file_restore")}
	u.policy("ask")
	u.write("1")
	op := u.write("2")
	undo := func(status int) (res reeve.Result) {
		t.Helper()
		r := u.Do("POST", "/api/operations/"+op+"/undo", nil, "Idempotency-Key", "k")
		if r.Decode(t, &res); r.Status != status {
			t.Errorf("status %d, want %d: %s", r.Status, status, r.Body)
		}
		return res
	}
	first := undo(http.StatusAccepted)
	eventually(t, "the approval's time to be over", func() bool {
		var v reeve.Approval
		u.Want(http.StatusOK, &v, "GET", "/api/approvals/"+first.ApprovalID, nil)
		return v.State == reeve.ApprovalExpired
	})
	if v := undo(http.StatusOK); v.OperationID != first.OperationID || v.State != reeve.DeniedOp ||
		v.Code != reeve.Denied || !strings.Contains(v.Message, "expired") {
		t.Errorf("with its key: %+v", v)
	}
	if v := u.undo(op); v.State != reeve.Parked || v.OperationID == first.OperationID {
		t.Errorf("it was not asked for anew: %+v", v)
	}
}

// A word on the outcome of what has not run is refused, and says what the operation waits for.
func TestG15_AWordOnWhatWaitsForAnother(t *testing.T) {
	t.Parallel()
	var g guarded
	var ran counter
	h := reevetest.Start(t, g.tool(), tool("send", reeve.Keyed, ran.handle))
	parked := h.Call(h.Agent("a", "guarded").ID, "guarded", nil)
	proposed := h.Call(proposer(h, "b", "send").ID, "send", nil)
	for op, want := range map[string][2]string{parked.OperationID: {parked.ApprovalID, "reeve approvals approve " +
		parked.ApprovalID}, proposed.OperationID: {proposed.ProposalID, "reeve proposals show cs_"}} {
		var p api.Problem
		h.Want(http.StatusConflict, &p, "POST", "/api/operations/"+op+"/resolve", object{"resolution": "skip"})
		if !strings.Contains(p.Detail, "waits for the approval "+want[0]) &&
			!strings.Contains(p.Detail, "the proposal "+want[0]) || !strings.Contains(p.Hint, want[1]) {
			t.Errorf("%+v", p)
		}
	}
}
