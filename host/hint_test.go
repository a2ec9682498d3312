package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// A refusal says what would help: what policy denies and what an agent's lifecycle does are not mended by the same.
func TestG02_TheHintIsAboutWhatRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change Object
		hint   string
	}{
		"policy":    {Object{"policy": Object{"tools": Object{"act": "deny"}}}, "change the policy of"},
		"dormant":   {Object{"lifecycle": "dormant"}, "--lifecycle active"},
		"destroyed": {Object{"lifecycle": "destroyed"}, "use another agent"},
	} {
		var ran Counter
		h := reevetest.Start(t, Tool("act", reeve.Keyed, ran.Handle))
		a := h.Agent("a", "act")
		UpdateAgent(h, a, c.change)
		if _, p, status := TryCall(h, a.ID, Call{"tool": "act"}); status != http.StatusForbidden ||
			p.Code != reeve.Denied ||
			!strings.Contains(p.Hint, c.hint) || c.hint != "change the policy of" &&
			strings.Contains(p.Hint, "policy") {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
}
