package httpapi_test

import (
	"math"
	"net/http"
	"testing"

	"reeve"
)

// What is stored of a budget's use may be less than nothing, or more than can be counted, as a model's nonsense once made it. The first counts as nothing
// and the second as all, and neither switches the limit off.
func TestG17_AUseThatCannotBe(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("a", "file_list")
		h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 2}})
		used := func(want int64) {
			t.Helper()
			for _, b := range decode[reeve.BudgetList](t, h.Want(http.StatusOK, nil, "GET", "/api/budgets", nil)).Budgets {
				if b.Used.Calls != want {
					t.Errorf("%d calls are used, want %d", b.Used.Calls, want)
				}
			}
		}
		call := func(want int) {
			t.Helper()
			if r := h.Do("POST", "/api/agents/a/calls", object{"tool": "file_list", "args": object{"path": "/"}}); r.Status != want {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
		set := func(to string) {
			t.Helper()
			w.exec(t, `UPDATE budgets SET used_calls = `+to+` WHERE subject = $1`, "agent:"+a.ID)
		}
		set("-9000000000000000000")
		used(0)
		call(http.StatusOK)
		used(1)
		call(http.StatusOK)
		call(http.StatusPaymentRequired)
		most := []string{"9223372036854775807"}
		if w.cfg.Database == "" {
			most = append(most, "9223372036854775807 + 5") // which is no whole number there
		}
		for _, n := range most {
			set(n)
			used(math.MaxInt64)
			call(http.StatusPaymentRequired)
		}
		h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"tokens": 5}})
		call(http.StatusOK)
		used(math.MaxInt64)
	})
}
