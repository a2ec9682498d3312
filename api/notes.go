package api

import "reeve"

// NoteRequest saves a note about the caller.
type NoteRequest struct {
	Content string   `json:"content" minLength:"1" maxLength:"8000" doc:"At most 8000 bytes"`
	Tags    []string `json:"tags,omitempty" maxItems:"100" doc:"Up to 16 tags; stored trimmed and in lower case"`
	Pinned  bool     `json:"pinned,omitempty" doc:"True if the note must not lose rank with age"`
}

// NoteList is a page of notes, newest first.
type NoteList struct {
	Notes []reeve.Note `json:"notes"`
	Next  string       `json:"next_cursor,omitempty"`
}

// NoteImportRequest imports notes of the caller.
type NoteImportRequest struct {
	Notes     []reeve.NoteRecord `json:"notes" minItems:"1" maxItems:"500"`
	DryRun    bool               `json:"dry_run,omitempty" doc:"True to change nothing"`
	Untrusted bool               `json:"untrusted,omitempty" doc:"True if the notes come from a source that you do not trust"`
}

// NoteImport is the result of an import.
type NoteImport struct {
	Results []reeve.ImportedNote `json:"results" doc:"One for each note, in order"`
	DryRun  bool                 `json:"dry_run,omitempty"`
}

// NoteExport is a page of all notes of a user with their history, oldest first.
type NoteExport struct {
	Notes []reeve.NoteRecord `json:"notes"`
	Next  string             `json:"next_cursor,omitempty"`
}

// NoteSearch is the result of a search in notes, best first.
type NoteSearch struct {
	Notes     []reeve.NoteHit `json:"notes"`
	WordsOnly string          `json:"words_only,omitempty" doc:"Why notes were searched by words only"`
}

// NoteHistory says where a note comes from.
type NoteHistory struct {
	Note       reeve.Note          `json:"note"`
	Versions   []reeve.NoteVersion `json:"versions" doc:"What the note said before, oldest first"`
	Replaces   []reeve.Note        `json:"replaces" doc:"Notes that it replaces"`
	ReplacedBy []reeve.Note        `json:"replaced_by" doc:"Note that replaces it, the note that replaces that one, and so on"`
}
