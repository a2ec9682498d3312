package host_test

import (
	"net/url"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The password of the database is what the server lives on: no tool shows it, wherever it has found it.
func TestG21_ThePasswordOfTheDatabase(t *testing.T) {
	t.Parallel()
	const password = "quiet-copper-meadow"
	at, err := url.Parse(storetest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword(at.User.Username(), password)
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: at.String()})
	h.Agent("reader")
	h.Call("reader", "write_file", kit.Object{"path": "env", "content": "say " + password + " at the door"})
	if got := h.Call("reader", "read_file", kit.Object{"path": "env"}); strings.Contains(got.Content, password) ||
		!strings.Contains(got.Content, reeve.Redacted) {
		t.Errorf("%s", got.Content)
	}
}
