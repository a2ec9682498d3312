package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A preview writes nothing and shows the exact change. Applying it is bound to its base.
func TestG16_APreviewChangesNothing(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_write", "file_edit", "file_delete", "file_read")
	write := func(c kit.Call) (reeve.Result, api.Problem, int) {
		return kit.TryCall(h, a.ID, c.With("tool", "file_write"))
	}
	args := func(s string) map[string]any {
		return map[string]any{"path": "/shared/a.txt", "content": s, "overwrite": true}
	}
	read := func() string {
		res, _, _ := kit.TryCall(h, a.ID,
			kit.Call{"tool": "file_read", "args": map[string]any{"path": "/shared/a.txt"}})
		return res.Content
	}
	missing := read()
	shown, _, status := write(kit.Call{"args": args("one\n"), "preview_only": true})
	if status != http.StatusOK || !shown.Preview || shown.Base == "" || !strings.Contains(shown.Content, "one") ||
		shown.OperationID != "" {
		t.Fatalf("%d %+v", status, shown)
	}
	if read() != missing || len(kit.ListOperations(h)) != 0 {
		t.Errorf("after a preview there is %q, and %d operations", read(), len(kit.ListOperations(h)))
	}
	if res, _, _ := write(kit.Call{"args": args("one\n"), "base": shown.Base}); res.State != reeve.Committed {
		t.Fatalf("%+v", res)
	}
	if _, p, status := write(kit.Call{"args": args("two\n"), "base": shown.Base}); status != http.StatusConflict ||
		p.Code != reeve.Stale {
		t.Errorf("with a stale base: %d %+v", status, p)
	}
	second, _, _ := write(kit.Call{"args": args("two\n"), "preview_only": true})
	if !strings.Contains(second.Content, "-one") || !strings.Contains(second.Content, "+two") {
		t.Errorf("the diff is %q", second.Content)
	}
	if res, _, _ := write(kit.Call{"args": args("meanwhile\n")}); res.State != reeve.Committed {
		t.Fatalf("%+v", res)
	}
	if _, p, status := write(kit.Call{"args": args("two\n"), "base": second.Base}); status != http.StatusConflict ||
		p.Code != reeve.Stale || read() == missing {
		t.Errorf("%d %+v", status, p)
	}
	if !strings.Contains(read(), "meanwhile") {
		t.Errorf("the file holds %q", read())
	}
	for _, c := range []kit.Call{{"tool": "file_delete", "args": map[string]any{"path": "/shared/a.txt"}}} {
		res, p, status := kit.TryCall(h, a.ID, c.With("preview_only", true))
		if status != http.StatusOK || !res.Preview || !strings.Contains(read(), "meanwhile") {
			t.Errorf("%v: %d %+v %+v", c, status, res, p)
		}
	}
	if _, p, status := kit.TryCall(h, a.ID,
		kit.Call{"tool": "file_read", "args": map[string]any{"path": "/shared/a.txt"},
			"preview_only": true}); status != http.StatusNotImplemented || p.Code != reeve.Unsupported {
		t.Errorf("a preview of a tool that has none: %d %+v", status, p)
	}
}

// A preview needs no approval, but the other steps of the gate apply.
func TestG16_PreviewNeedsNoApprovalButIsDecided(t *testing.T) {
	t.Parallel()
	var g guardedTool
	h := reevetest.Start(t, g.tool())
	a := h.Agent("a", "guarded")
	res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "preview_only": true, "idempotency_key": "k"})
	if status != http.StatusOK || !res.Preview || len(kit.GetInbox(h).Approvals) != 0 {
		t.Errorf("%d %+v", status, res)
	}
	// the key is still free
	if res := h.Call(a.ID, "guarded", nil, "Idempotency-Key", "k"); res.Replayed || res.State != reeve.Parked {
		t.Errorf("%+v", res)
	}
	kit.UpdateAgent(h, a, map[string]any{"policy": map[string]any{"tools": map[string]any{"guarded": "deny"}}})
	if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "preview_only": true}); status != http.StatusForbidden ||
		p.Code != reeve.Denied {
		t.Errorf("%d %+v", status, p)
	}
	if g.ran.Count() != 0 {
		t.Errorf("%d ran", g.ran.Count())
	}
}
