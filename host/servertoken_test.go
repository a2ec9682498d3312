package host_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A file that holds the token of somebody who is no owner gets a server token in its place.
func TestI06_TheServersTokenIsAnOwners(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, member := h.Dir(), kit.NewTokenFor(h, "ann", "member")[1][len("Bearer "):]
	h.Stop()
	if err := os.WriteFile(filepath.Join(dir, "owner.token"), []byte(member), 0o600); err != nil {
		t.Fatal(err)
	}
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/tokens", nil)
	if h.Token == member || !h.TokenRenewed() {
		t.Error("a member's token is the server's")
	}
	h.Want(http.StatusForbidden, nil, "GET", "/api/tokens", nil, "Authorization", "Bearer "+member)
}
