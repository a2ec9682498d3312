package memory_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
	"reeve/toolbox/notes/notefile"
)

// importNotes imports records over REST.
func importNotes(h *reevetest.Host, r api.NoteImportRequest, headers ...string) (out api.NoteImport) {
	h.T.Helper()
	h.Want(http.StatusOK, &out, "POST", "/api/notes/import", r, headers...)
	return out
}

// exportNotes returns all notes of a user.
func exportNotes(h *reevetest.Host, headers ...string) (all []reeve.NoteRecord) {
	h.T.Helper()
	for cursor := ""; ; {
		var page api.NoteExport
		h.Want(http.StatusOK, &page, "GET", "/api/notes/export?limit=3&cursor="+cursor, nil, headers...)
		all = append(all, page.Notes...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// outcomes returns the outcomes of an import, with their reasons.
func outcomes(v api.NoteImport) string {
	var out []string
	for _, r := range v.Results {
		out = append(out, strings.TrimSpace(string(r.Outcome)+" "+r.Reason))
	}
	return strings.Join(out, ", ")
}

// A dry run changes nothing, an import adds each note once, and a repeated import adds nothing, even if notes were
// changed, deleted or forgotten since. Notes that are not valid are skipped with a reason.
func TestN13_RepeatedImportAddsNothing(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		newNote(h, "I have this already")
		r := api.NoteImportRequest{DryRun: true, Notes: []reeve.NoteRecord{
			{Content: "Deploys happen on Thursday", Tags: []string{"Work"}, Source: "import:a.md"},
			{Content: "My cat is called Minka", Source: "import:a.md"},
			{Content: "The landlord is Karlis Berzins", Source: "import:a.md"},
			{Content: "I have this already", Source: "import:a.md"},
			{Content: strings.Repeat("x", 8001), Source: "import:a.md"},
			{Content: "tags", Tags: strings.Fields("a b c d e f g h i j k l m n o p q")}}}
		const first = "created, created, created, exists you have an equal note, " +
			"skipped content is empty or too long; expected 1 to 8000 bytes, " +
			"skipped tags has too many different tags; expected at most 16"
		if got := outcomes(importNotes(h, r)); got != first || len(kit.ListNotes(h, "")) != 1 {
			t.Fatalf("a dry run: %s, %v", got, kit.ListNotes(h, ""))
		}
		r.DryRun = false
		got := importNotes(h, r)
		if outcomes(got) != first {
			t.Fatalf("got %s", outcomes(got))
		}
		var n reeve.Note
		h.Want(http.StatusOK, &n, "GET", "/api/notes/"+got.Results[0].NoteID, nil)
		if n.Origin != reeve.NoteByPerson || n.Source != "import:a.md" || !slices.Equal(n.Tags, []string{"work"}) {
			t.Errorf("got %+v", n)
		}
		h.Want(http.StatusOK, nil, "PATCH", "/api/notes/"+got.Results[0].NoteID, kit.Object{"content": "On Friday"})
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/notes/"+got.Results[1].NoteID, nil)
		h.Want(http.StatusOK, nil, "POST", "/api/notes/"+got.Results[2].NoteID+"/forget", kit.Object{})
		before := sortedNotes(h)
		again := outcomes(importNotes(h, r))
		if !strings.HasPrefix(again, "exists it was imported before, exists it was imported before, "+
			"exists it was imported before, and forgotten, exists it was imported before, skipped") ||
			sortedNotes(h) != before {
			t.Errorf("again: %s, %s", again, sortedNotes(h))
		}
		if got := texts(h, "landlord"); len(got) != 0 {
			t.Errorf("a forgotten note is back: %v", got)
		}
	})
}

// An export imported elsewhere, or for another user of the same server, exports the same again.
func TestN14_ExportRoundTripLosesNothing(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", nil, memoryTools...)
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		a := write(h, "memory_save", kit.Object{"content": "Lives in Riga", "tags": []string{"home"}}, ann...).NoteID
		b := write(h, "memory_save", kit.Object{"content": "Moved to Tallinn"}, ann...).NoteID
		write(h, "memory_update", kit.Object{"note_id": b, "content": "Moved to Tallinn in May"}, ann...)
		write(h, "memory_merge", kit.Object{"note_ids": []string{a, b}, "content": "Lives in Tallinn since May"}, ann...)
		gone := write(h, "memory_save", kit.Object{"content": "Wrong"}, ann...).NoteID
		write(h, "memory_delete", kit.Object{"note_id": gone}, ann...)
		var pinned reeve.Note
		h.Want(http.StatusCreated, &pinned, "POST", "/api/notes", kit.Object{"content": "I am Ann\n\n---\nsecond: part",
			"pinned": true, "tags": []string{"me", "a: b"}}, ann...)
		importNotes(h, api.NoteImportRequest{Untrusted: true, Notes: []reeve.NoteRecord{{Content: "From a page",
			Source: "import:page.md"}}}, ann...)
		all := exportNotes(h, ann...)
		if len(all) != 6 || len(all[1].Versions) != 1 || all[0].SupersededBy != all[2].ID || all[3].DeletedAt == nil ||
			all[5].Origin != reeve.NoteUntrusted {
			t.Fatalf("got %s", kit.MustJSON(all))
		}
		file := filepath.Join(t.TempDir(), "notes.json")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := notefile.WriteJSON(f, all); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		plan, err := notefile.Read(file, "")
		if err != nil || len(plan.Problems) > 0 {
			t.Fatalf("%v, %+v", err, plan.Problems)
		}
		other := reevetest.Start(t)
		importNotes(other, api.NoteImportRequest{Notes: plan.Notes})
		if got := exportNotes(other); string(kit.MustJSON(got)) != string(kit.MustJSON(all)) {
			t.Errorf("elsewhere:\n%s\nwant\n%s", kit.MustJSON(got), kit.MustJSON(all))
		}
		doubted := reevetest.Start(t) // an import that the person does not trust, whatever the file says
		importNotes(doubted, api.NoteImportRequest{Untrusted: true, Notes: plan.Notes})
		for _, n := range exportNotes(doubted) {
			for _, v := range append(n.Versions, reeve.NoteVersion{Origin: n.Origin}) {
				if v.Origin != reeve.NoteUntrusted {
					t.Errorf("%s became %s", n.Content, v.Origin)
				}
			}
		}
		if again := outcomes(importNotes(other, api.NoteImportRequest{Notes: plan.Notes})); strings.Contains(again, "created") {
			t.Errorf("again: %s", again)
		}
		for range 2 { // the ids belong to Ann
			importNotes(h, api.NoteImportRequest{Notes: plan.Notes}, ben...)
		}
		got := exportNotes(h, ben...)
		ids := map[string]string{}
		for i := range got {
			ids[got[i].ID] = all[i].ID
		}
		for i := range got {
			if got[i].ID == all[i].ID {
				t.Errorf("the note %s belongs to two users", got[i].ID)
			}
			got[i].ID, got[i].SupersededBy = ids[got[i].ID], ids[got[i].SupersededBy]
		}
		if string(kit.MustJSON(got)) != string(kit.MustJSON(all)) {
			t.Errorf("for Ben:\n%s\nwant\n%s", kit.MustJSON(got), kit.MustJSON(all))
		}

		dir := t.TempDir()
		if n, err := notefile.WriteMarkdown(dir, all); err != nil || n != 3 {
			t.Fatalf("%d, %v", n, err)
		}
		if plan, err = notefile.Read(dir, notefile.Markdown); err != nil || len(plan.Problems) > 0 {
			t.Fatalf("%v, %+v", err, plan.Problems)
		}
		third := reevetest.Start(t)
		importNotes(third, api.NoteImportRequest{Notes: plan.Notes})
		var live []reeve.NoteRecord
		for _, n := range all {
			if n.DeletedAt == nil && n.SupersededBy == "" {
				live = append(live, n)
			}
		}
		if got := exportNotes(third); string(kit.MustJSON(got)) != string(kit.MustJSON(live)) {
			t.Errorf("from Markdown:\n%s\nwant\n%s", kit.MustJSON(got), kit.MustJSON(live))
		}
	})
}

// An export with bad records, or that claims another user's notes, changes nothing of that user's.
func TestN14_BadRecordsAreSkipped(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		id := write(h, "memory_save", kit.Object{"content": "Ann's own note"}, ann...).NoteID
		got := outcomes(importNotes(h, api.NoteImportRequest{Notes: []reeve.NoteRecord{
			{ID: "op_1", Content: "x"},
			{ID: "note_1", Content: "x", SupersededBy: "note_1"},
			{ID: id, Content: "stolen", SupersededBy: "note_9", Version: 3,
				Versions: []reeve.NoteVersion{{Version: 2, Content: "b", Origin: "person"}}},
			{ID: "note_2", Content: "x", Version: 2, Versions: []reeve.NoteVersion{{Version: 2, Content: "b", Origin: "person"}}},
			{ID: "note_3", Content: "x", Version: 2, Versions: []reeve.NoteVersion{{Version: 1, Content: "b", Origin: "king"}}}}},
			ben...))
		if got != "skipped id is not the id of a note; expected an id that an export wrote, "+
			"skipped superseded_by is the note itself; expected the id of another note, created, "+
			"skipped versions are not in order; expected ascending versions below the note's own, "+
			"skipped versions have an unknown origin; expected person, agent or untrusted" {
			t.Errorf("got %s", got)
		}
		if got := exportNotes(h, ann...); len(got) != 1 || got[0].Content != "Ann's own note" || got[0].SupersededBy != "" {
			t.Errorf("Ann has %+v", got)
		}
	})
}

// writeFiles writes files into a new folder.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readNotes returns the notes of a file or folder as texts with their tags, and the problems.
func readNotes(t *testing.T, path string, want notefile.Format) (notes, problems string) {
	t.Helper()
	plan, err := notefile.Read(path, "")
	if err != nil {
		t.Fatal(err)
	}
	kit.Equal(t, plan.Format, want, "format")
	var list []string
	for _, n := range plan.Notes {
		text := fmt.Sprintf("%s %v %s", n.Content, n.Tags, strings.TrimPrefix(n.Source, "import:"))
		if n.ValidFrom != nil {
			text += " " + n.ValidFrom.Format("2006-01-02")
		}
		list = append(list, text)
	}
	for _, p := range plan.Problems {
		problems += p.File + ": " + p.Message + "\n"
	}
	return strings.Join(list, "\n"), problems
}

// Each program's files become notes: headings become context and tags, lists and paragraphs become notes.
func TestN13_FormatsAreRead(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{
		"CLAUDE.md": "# Project\n\nUse Go 1.26.\nNever cgo.\n\n## Code style\n- tabs, not spaces\n  - except YAML\n1. short lines\n\n" +
			"```sh\nmake\n\nmake test\n```\n<!-- hidden\n- not this -->\n---\n@docs/more.md\n",
		"claw/MEMORY.md":            "# Memory\n- **Ann** likes tea\n",
		"claw/memory/2026-03-28.md": "Met Karlis\n",
		"claw/SOUL.md":              "I am a lobster\n",
		"notes/a.md":                "---\ntags: [Food, home]\nauthor: me\n---\nTea, not coffee\n",
		"notes/.git/b.md":           "hidden\n",
		"notes/bad.md":              "\xff\xfe\x00",
		"notes/broken.md":           "---\n: [\n---\nx\n",
		"agent.af": `{"agents":[{"name":"a","block_ids":["block-0","block-1"],"memory_blocks":[],"messages":[{"role":"system"}]}],` +
			`"blocks":[{"label":"human","value":"Name: Chad\n\nLikes sailing"},{"label":"persona","value":"I am Sam"},` +
			`{"label":"plans","value":" "}]}`,
		"old.af": `{"core_memory":[{"label":"human","value":"Name: Eve"}],"messages":[]}`,
	})
	for _, c := range []struct {
		path     string
		format   notefile.Format
		notes    string
		problems string
	}{
		{"CLAUDE.md", notefile.Claude, "Project: Use Go 1.26.\nNever cgo. [project] CLAUDE.md\n" +
			"Code style: tabs, not spaces\n  - except YAML [code style] CLAUDE.md\nCode style: short lines [code style] CLAUDE.md\n" +
			"Code style: ```sh\nmake\n\nmake test\n``` [code style] CLAUDE.md",
			"CLAUDE.md: @docs/more.md refers to another file; import that file too\n"},
		{"claw", notefile.OpenClaw, "Memory: **Ann** likes tea [memory] MEMORY.md\nMet Karlis [] memory/2026-03-28.md 2026-03-28", ""},
		{"notes", notefile.Markdown, "Tea, not coffee [food home] a.md", "bad.md: is not a text in UTF-8\n" +
			"broken.md: its front matter is not valid YAML"},
		{"agent.af", notefile.Letta, "Name: Chad [human] agent.af\nLikes sailing [human] agent.af",
			"agent.af: the block \"persona\" describes the agent and is not a note\n" +
				"agent.af: the block \"plans\" is empty\nagent.af: 1 messages were left out, because only memory blocks become notes\n"},
		{"old.af", notefile.Letta, "Name: Eve [human] old.af", ""},
	} {
		notes, problems := readNotes(t, filepath.Join(dir, c.path), c.format)
		if notes != c.notes || !strings.HasPrefix(problems, c.problems) || c.problems == "" && problems != "" {
			t.Errorf("%s:\n%s\nwant\n%s\nproblems %q, want %q", c.path, notes, c.notes, problems, c.problems)
		}
	}
	quoted, _ := json.Marshal(`{"blocks":[{"label":"human","value":"Name: Zoe"}]}`)
	file := filepath.Join(writeFiles(t, map[string]string{"text.af": string(quoted)}), "text.af")
	if notes, _ := readNotes(t, file, notefile.Letta); notes != "Name: Zoe [human] text.af" {
		t.Errorf("an agent file within a JSON string: %s", notes)
	}
	file = filepath.Join(writeFiles(t, map[string]string{"wrong.af": `{"blocks":[{"label":7}]}`}), "wrong.af")
	if _, problems := readNotes(t, file, notefile.Letta); problems !=
		`wrong.af: is not a Letta agent file: blocks.label cannot be a JSON number`+"\n" {
		t.Errorf("an agent file with a wrong type: %s", problems)
	}
	for _, path := range []string{"absent.md", "picture.png"} {
		if _, err := notefile.Read(filepath.Join(dir, path), ""); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// A text that is too long for a note is split between paragraphs or words, and nothing of it is lost.
func TestN13_LongTextsAreSplit(t *testing.T) {
	t.Parallel()
	var words []string
	for i := range 5000 {
		words = append(words, fmt.Sprintf("wörd%d", i))
	}
	text := strings.Join(words, " ")
	dir := writeFiles(t, map[string]string{"long.md": text})
	plan, err := notefile.Read(dir, "")
	if err != nil || len(plan.Notes) < 5 {
		t.Fatalf("%v, %d notes", err, len(plan.Notes))
	}
	var parts []string
	for _, n := range plan.Notes {
		if len(n.Content) > reeve.MaxNote {
			t.Errorf("a note has %d bytes", len(n.Content))
		}
		parts = append(parts, n.Content)
	}
	if strings.Join(parts, " ") != text {
		t.Error("a part of the text is lost")
	}
}
