package main

import (
	"bytes"
	"testing"
)

// TestSanitize checks that text of an agent cannot move the cursor, hide text or reverse its direction in a terminal.
func TestSanitize(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":           "a\tb\nc",
		"rm -rf\x1b[2K\rls": "rm -rf\uFFFD[2K\uFFFDls",
		"a\u202egnp.exe":    "a\uFFFDgnp.exe",
		"\u009b31mred":      "\uFFFD31mred",
		"grüße, 漢字, 👋":      "grüße, 漢字, 👋",
	} {
		if got := sanitize(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestPrintTable(t *testing.T) {
	var b bytes.Buffer
	(&app{}).printTable(&b, "ID TEXT", [][]string{{"one", truncate("first line\nsecond line that is long", 15)},
		{"three", ""}})
	if want := "ID     TEXT\none    first line sec…\nthree  -\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestLifecycleHelp checks that the help of --lifecycle lists the values that the command accepts.
func TestLifecycleHelp(t *testing.T) {
	if usage := agentsCreate(&app{}).Flag("lifecycle").Usage; usage != "created, active or dormant" {
		t.Errorf("create offers %q", usage)
	}
	if usage := agentsUpdate(&app{}).Flag("lifecycle").Usage; usage != "created, active, dormant or destroyed" {
		t.Errorf("update offers %q", usage)
	}
}
