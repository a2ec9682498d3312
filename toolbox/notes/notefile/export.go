package notefile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"reeve"
)

// exportFormat identifies an export of Reeve.
const exportFormat = "reeve-notes"

// export is an export of Reeve as JSON.
type export struct {
	Format  string             `json:"format"`
	Version int                `json:"version"`
	Notes   []reeve.NoteRecord `json:"notes"`
}

// WriteJSON writes all notes with their history as one JSON document.
func WriteJSON(w io.Writer, notes []reeve.NoteRecord) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(export{Format: exportFormat, Version: 1, Notes: notes})
}

// describeJSONError says what is wrong with a JSON file, without the names of Go types.
func describeJSONError(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s cannot be a JSON %s", cmp.Or(t.Field, "the file"), t.Value)
	}
	if t, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("%s is not a time such as 2026-03-01T07:00:00Z", t.Value)
	}
	return err.Error()
}

// readExport reads an export of Reeve.
func (r *reader) readExport(name string, b []byte) {
	var e export
	if err := json.Unmarshal(b, &e); err != nil {
		r.problem(name, "is not an export of notes: %s", describeJSONError(err))
		return
	}
	if e.Format != exportFormat || e.Version != 1 {
		r.problem(name, "is an export that this version of Reeve cannot read (format %q, version %d)", e.Format,
			e.Version)
		return
	}
	r.plan.Notes = append(r.plan.Notes, e.Notes...)
}

// header is the front matter of a note. In files of other programs, tags may be one string.
type header struct {
	ID             string   `yaml:"id,omitempty"`
	Tags           any      `yaml:"tags,omitempty"`
	Pinned         bool     `yaml:"pinned,omitempty"`
	Origin         string   `yaml:"origin,omitempty"`
	Source         string   `yaml:"source,omitempty"`
	Version        int64    `yaml:"version,omitempty"`
	ValidFrom      textTime `yaml:"valid_from,omitempty"`
	CreatedAt      textTime `yaml:"created_at,omitempty"`
	UpdatedAt      textTime `yaml:"updated_at,omitempty"`
	AgentID        string   `yaml:"agent_id,omitempty"`
	ConversationID string   `yaml:"conversation_id,omitempty"`
	TurnID         string   `yaml:"turn_id,omitempty"`
	OperationID    string   `yaml:"operation_id,omitempty"`
}

// textTime is a time written as text. Times that other programs write in another form are ignored.
type textTime string

func newTextTime(at *time.Time) textTime {
	if at == nil {
		return ""
	}
	return textTime(at.UTC().Format(time.RFC3339Nano))
}

func (t textTime) time() *time.Time {
	at, err := reeve.ParseInstant(string(t))
	if err != nil {
		return nil
	}
	return &at
}

// tagList returns the tags of the front matter.
func (h header) tagList() (tags []string) {
	switch v := h.Tags.(type) {
	case string:
		tags = strings.FieldsFunc(v, func(c rune) bool { return c == ',' })
	case []any:
		for _, tag := range v {
			tags = append(tags, fmt.Sprint(tag))
		}
	}
	return tags
}

func (h header) record(content string) reeve.NoteRecord {
	return reeve.NoteRecord{ID: h.ID, Content: content, Tags: h.tagList(), Pinned: h.Pinned,
		Origin: reeve.NoteOrigin(h.Origin), Source: h.Source, Version: h.Version, ValidFrom: h.ValidFrom.time(),
		CreatedAt: h.CreatedAt.time(), UpdatedAt: h.UpdatedAt.time(), AgentID: h.AgentID,
		ConversationID: h.ConversationID, TurnID: h.TurnID, OperationID: h.OperationID}
}

// WriteMarkdown writes the current notes into a folder, each as one file with front matter. It returns their number. It
// replaces files of the same notes and leaves other files alone.
func WriteMarkdown(dir string, notes []reeve.NoteRecord) (n int, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fileError(dir, err)
	}
	for _, r := range notes {
		if r.DeletedAt != nil || r.SupersededBy != "" {
			continue
		}
		if strings.ContainsAny(r.ID, `/\.`) || r.ID == "" {
			return n, reeve.Errorf(reeve.Validation, "%q is not the id of a note", r.ID)
		}
		h := header{ID: r.ID, Pinned: r.Pinned, Origin: string(r.Origin), Source: r.Source, Version: r.Version,
			ValidFrom: newTextTime(r.ValidFrom), CreatedAt: newTextTime(r.CreatedAt),
			UpdatedAt: newTextTime(r.UpdatedAt), AgentID: r.AgentID, ConversationID: r.ConversationID,
			TurnID: r.TurnID, OperationID: r.OperationID}
		if len(r.Tags) > 0 {
			h.Tags = r.Tags
		}
		front, err := yaml.Marshal(h)
		if err != nil {
			return n, err
		}
		file := filepath.Join(dir, r.ID+".md")
		if err := os.WriteFile(file, []byte("---\n"+string(front)+"---\n\n"+r.Content+"\n"), 0o600); err != nil {
			return n, fileError(file, err)
		}
		n++
	}
	return n, nil
}

// fileError returns the error for a file that cannot be written.
func fileError(file string, err error) error {
	return reeve.Errorf(reeve.Unavailable, "cannot write %s: %s", file, plainError(err)).
		Hintf("choose a folder in which you may write")
}
