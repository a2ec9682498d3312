package httpapi_test

import (
	"math"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// What is stored of a budget's use may be less than nothing, or more than can be counted, as a model's nonsense once made it. The first counts as nothing
// and the second as all, and neither switches the limit off.
func TestG17_AUseThatCannotBe(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("a", "file_list")
		h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 2}})
		used := func(want int64) {
			t.Helper()
			for _, b := range decode[api.BudgetList](t, h.Want(http.StatusOK, nil, "GET", "/api/budgets", nil)).Budgets {
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

// A budget that is damaged refuses the calls that draw on it, and no others; it is listed and named, and setting it again mends it.
func TestG17_ADamagedBudget(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("a", "file_list")
		h.Agent("b", "file_list")
		subject := "agent:" + a.ID
		values := map[string][]any{"limit_calls": {-1}}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			values = map[string][]any{"limit_calls": {-1, "x", 1.5}, "limit_millis": {"x"}, "used_calls": {"x", []byte{0}}}
		}
		for column, list := range values {
			for _, value := range list {
				for _, over := range []string{"end", "park"} {
					h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 1000}, "on_exceed": over})
					w.exec(t, `UPDATE budgets SET `+column+` = $1 WHERE subject = $2`, value, subject)
					define(t, h, object{"id": "fresh_" + reeve.Secret(4)}) // has it read again
					call := object{"tool": "file_list", "args": object{"path": "/"}}
					if p := refused(t, h.Do("POST", "/api/agents/a/calls", call), http.StatusPaymentRequired, reeve.BudgetExceeded); !strings.Contains(p.Detail, subject) || !strings.Contains(p.Detail, column) ||
						!strings.Contains(p.Hint, "PUT /api/budgets/"+subject) {
						t.Errorf("%s of %v: %+v", column, value, p)
					}
					if res := h.Call("b", "file_list", object{"path": "/"}); res.IsError {
						t.Errorf("another agent's call: %+v", res)
					}
					if l := decode[api.BudgetList](t, h.Want(http.StatusOK, nil, "GET", "/api/budgets", nil)).Budgets; len(l) != 1 || !strings.Contains(l[0].Broken, column) {
						t.Errorf("listed: %+v", l)
					}
					if said := ailing(t, h, "budgets"); len(said) != 1 || !strings.Contains(said[0], subject) {
						t.Errorf("the doctor says %q", said)
					}
					h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 1000}})
					if res := h.Call("a", "file_list", object{"path": "/"}); res.IsError {
						t.Errorf("%s of %v, mended: %+v", column, value, res)
					}
				}
			}
		}
	})
}

// When a secret was stored decides nothing: it is scrubbed whatever is in its row instead.
func TestI09_WhenASecretWasStoredDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t, trick("leak", reeve.Read, "", says("the word is opensesame-4711-xyz", nil)))
	h.Agent("a", "leak")
	h.Want(204, nil, "PUT", "/api/secrets/WORD", object{"value": "opensesame-4711-xyz"})
	w.exec(t, `UPDATE secrets SET updated_at = 'x'`)
	define(t, h, object{"id": "fresh"}) // has it read again
	if res := h.Call("a", "leak", nil); res.IsError || strings.Contains(res.Content, "opensesame") {
		t.Errorf("%+v", res)
	}
	h.Want(200, nil, "GET", "/api/secrets", nil)
}
