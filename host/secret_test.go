package host_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Servers that share a database and not the key: the second says so when it starts, to the doctor, and to whoever makes
// a call that needs a secret.
func TestSharedDatabase_NeedsTheSameKey(t *testing.T) {
	t.Parallel()
	url, far := storetest.PostgresURL(t), kit.NewWitness(t)
	start := func(key string) (*reevetest.Host, *kit.LogBuffer) {
		cfg, log := kit.FastConfig(t), &kit.LogBuffer{}
		cfg.Database, cfg.SecretKey, cfg.Log = url, strings.Repeat(key, 32), slog.New(slog.NewTextHandler(log, nil))
		return reevetest.StartWith(t, cfg), log
	}
	const complaint = "1 of 1 secrets cannot be decrypted with this server's key"
	one, _ := start("ab")
	one.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/KK", map[string]any{"value": "topsecret-value"})
	kit.DefineHTTPTool(one, "look", reeve.Read, map[string]any{"method": "GET", "url": far.URL + "/look",
		"headers": map[string]any{"X-Key": "${secret:KK}"}}, nil)
	one.Agent("a", "look")
	same, log := start("ab")
	if d := kit.GetHealth(same, "secrets"); !d.OK || strings.Contains(log.String(), "secret.key") {
		t.Errorf("with the same key: %+v, %s", d, log)
	}
	other, log := start("cd")
	if !strings.Contains(log.String(), complaint) || !strings.Contains(log.String(), "secret.key") {
		t.Errorf("it started silently: %s", log)
	}
	if d := kit.GetHealth(other, "secrets"); d.OK || d.Detail != complaint || !strings.Contains(d.Hint, "secret.key") {
		t.Errorf("the doctor says %+v", d)
	}
	if said := string(other.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "look"}).Body); !strings.Contains(said,
		"KK cannot be read now") || !strings.Contains(said, "servers that share a database need the same secret.key") {
		t.Errorf("the call says %s", said)
	}
}
