package console_test

import (
	"net/http"
	"slices"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestC03_TheInboxListsAndCountsWhatWaits(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start(guarded(), kit.Tool("free", reeve.Read, (&kit.Counter{}).Handle))
		a := h.Agent("clerk", "guarded", "free")
		var count api.InboxCount
		if h.Want(http.StatusOK, &count, "GET", "/api/inbox/count", nil); count != (api.InboxCount{}) {
			t.Errorf("%+v", count)
		}
		approval := h.Call("clerk", "guarded", kit.Call{}).ApprovalID
		subject := "agent:" + h.Agent("spender", "free").ID
		h.Want(http.StatusOK, nil, "PUT", "/api/budgets/"+subject, kit.Call{"limit": kit.Call{"calls": 1}})
		h.Call("spender", "free", kit.Call{})
		var in api.Inbox
		h.Want(http.StatusOK, &in, "GET", "/api/inbox", nil)
		want := api.InboxCount{Approvals: 1, Budgets: 1, Total: 2}
		h.Want(http.StatusOK, &count, "GET", "/api/inbox/count", nil)
		if in.Count != want || count != want {
			t.Errorf("%+v, %+v", in.Count, count)
		}
		var kinds []string
		for _, e := range in.Entries {
			kinds = append(kinds, e.Kind+" "+e.AgentName)
			if e.Kind == "approval" && (e.ID != approval || e.Title != "guarded" || e.AgentID != a.ID || e.Since == nil) {
				t.Errorf("%+v", e)
			}
			if e.Kind == "budget" && e.ID != subject {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(kinds, []string{"approval clerk", "budget spender"}) {
			t.Errorf("%v", kinds)
		}
	})
}
