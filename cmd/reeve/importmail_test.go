package main

import (
	"os"
	"path/filepath"
	"testing"

	"reeve/toolbox/mail/mailbox"
)

// TestI16_SourceNameIsDeterministic checks that sourceName is deterministic, because an interrupted import is found by
// it.
func TestI16_SourceNameIsDeterministic(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.mbox")
	for flags, opt := range map[string]mailbox.Options{
		"":                                    {},
		" format=mbox":                        {Format: "mbox"},
		" inbox=jane@example.org":             {Inbox: "jane@example.org"},
		" format=mbox inbox=jane@example.org": {Format: "mbox", Inbox: "jane@example.org"},
	} {
		for range 100 {
			if got, want := sourceName(path, opt), host+":"+path+flags; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}
