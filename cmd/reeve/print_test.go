package main

import (
	"bytes"
	"testing"
)

// What an agent wrote cannot move the cursor, hide text or turn it around on the terminal of the person who approves.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":           "a\tb\nc",
		"rm -rf\x1b[2K\rls": "rm -rf\uFFFD[2K\uFFFDls",
		"a\u202egnp.exe":    "a\uFFFDgnp.exe",
		"\u009b31mred":      "\uFFFD31mred",
		"grüße, 漢字, 👋":      "grüße, 漢字, 👋",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	(&app{}).table(&b, "ID TEXT", [][]string{{"one", cut("first line\nsecond line that is long", 15)}, {"three", ""}})
	if want := "ID     TEXT\none    first line sec…\nthree  -\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Help offers what the command takes: no agent is made as one that is over.
func TestLivesOfAnAgent(t *testing.T) {
	if made := agentsCreate(&app{}).Flag("lifecycle").Usage; made != "created, active or dormant" {
		t.Errorf("create offers %q", made)
	}
	if changed := agentsUpdate(&app{}).Flag("lifecycle").Usage; changed != "created, active, dormant or destroyed" {
		t.Errorf("update offers %q", changed)
	}
}
