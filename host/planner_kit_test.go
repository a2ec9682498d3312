package host_test

import (
	"testing"

	"reeve/model"
)

// script is a rehearsal model that follows a script.
func script(t testing.TB, text string) model.Model {
	t.Helper()
	s, err := model.ParseScript([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return model.Rehearsal(s)
}
