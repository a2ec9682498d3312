package host_test

import (
	"strings"
	"testing"

	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/model"
)

// OnBothDatabases runs a test on both databases, with short waits.
func OnBothDatabases(t *testing.T, f func(t *testing.T, cfg host.Config)) {
	t.Run("sqlite", func(t *testing.T) { f(t, FastConfig(t)) })
	t.Run("postgres", func(t *testing.T) {
		cfg := FastConfig(t)
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
		f(t, cfg)
	})
}

// ScriptedModel is a rehearsal model that follows a script.
func ScriptedModel(t testing.TB, text string) model.Model {
	t.Helper()
	s, err := model.ParseScript([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return model.Rehearsal(s)
}
