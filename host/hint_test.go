package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A refusal says what would help: what policy denies and what an agent's lifecycle does are not mended by the same.
func TestG02_TheHintIsAboutWhatRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change kit.Object
		hint   string
	}{
		"policy":    {kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "deny"}}}, "change the policy of"},
		"dormant":   {kit.Object{"lifecycle": "dormant"}, "--lifecycle active"},
		"destroyed": {kit.Object{"lifecycle": "destroyed"}, "use another agent"},
	} {
		var ran kit.Counter
		h := reevetest.Start(t, kit.Tool("act", reeve.Keyed, ran.Handle))
		a := h.Agent("a", "act")
		kit.UpdateAgent(h, a, c.change)
		if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "act"}); status != http.StatusForbidden ||
			p.Code != reeve.Denied ||
			!strings.Contains(p.Hint, c.hint) || c.hint != "change the policy of" &&
			strings.Contains(p.Hint, "policy") {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
}
