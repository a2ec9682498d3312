package reeve

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// PrefixNote is the prefix of the ids of notes.
const PrefixNote = "note"

// The limits of a note.
const (
	MaxNote     = 8000 // bytes of the content
	MaxNoteTags = 16   // number of tags
	MaxNoteTag  = 64   // bytes of a tag
)

// NoteOrigin says where the content of a note comes from.
type NoteOrigin string

// The origins of notes.
const (
	NoteByPerson  NoteOrigin = "person"    // a person wrote it
	NoteByAgent   NoteOrigin = "agent"     // an agent wrote it
	NoteUntrusted NoteOrigin = "untrusted" // an agent wrote it after it had read text from outside, or it was imported
)

// NoteOrigins lists the origins of notes.
func NoteOrigins() []NoteOrigin { return []NoteOrigin{NoteByPerson, NoteByAgent, NoteUntrusted} }

// Note is something that agents remember for a user. It belongs to the user. Only Content, Tags and Pinned can be set
// by callers.
type Note struct {
	ID             string     `json:"id"`
	UserID         string     `json:"user_id,omitempty" doc:"User to whom the note belongs"`
	Content        string     `json:"content"`
	Tags           []string   `json:"tags" doc:"Lower case, sorted, each once"`
	Pinned         bool       `json:"pinned" doc:"Pinned notes do not lose rank with age"`
	Origin         NoteOrigin `json:"origin" enum:"person,agent,untrusted" doc:"Where the content comes from"`
	Version        int64      `json:"version" doc:"Number of times the content was written, from 1"`
	AgentID        string     `json:"agent_id,omitempty" doc:"Agent that wrote the content; empty for a person"`
	ConversationID string     `json:"conversation_id,omitempty" doc:"Conversation that it comes from"`
	TurnID         string     `json:"turn_id,omitempty" doc:"Turn or run that it comes from"`
	OperationID    string     `json:"operation_id,omitempty" doc:"Operation that wrote the content"`
	ValidFrom      time.Time  `json:"valid_from" doc:"Since when the content holds"`
	SupersededBy   string     `json:"superseded_by,omitempty" doc:"Note that replaces this one"`
	SupersededAt   *time.Time `json:"superseded_at,omitempty"`
	DeletedAt      *time.Time `json:"deleted_at,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at" doc:"When the content was last written"`
}

// IsCurrent reports whether the note is neither deleted nor superseded. Only current notes are recalled.
func (n Note) IsCurrent() bool { return n.DeletedAt == nil && n.SupersededBy == "" }

// NoteVersion is what a note said before an update.
type NoteVersion struct {
	Version     int64      `json:"version"`
	Content     string     `json:"content"`
	Tags        []string   `json:"tags"`
	Origin      NoteOrigin `json:"origin"`
	AgentID     string     `json:"agent_id,omitempty"`
	OperationID string     `json:"operation_id,omitempty"`
	WrittenAt   time.Time  `json:"written_at"`
}

// NoteChange changes a note. Fields that are nil stay as they are.
type NoteChange struct {
	Content *string   `json:"content,omitempty" maxLength:"8000" doc:"New text; it replaces the old one"`
	Tags    *[]string `json:"tags,omitempty" maxItems:"100" doc:"New tags; they replace the old ones"`
	Pinned  *bool     `json:"pinned,omitempty"`
}

// NoteQuery is a search in the notes of a user.
type NoteQuery struct {
	WorkspaceID string
	UserID      string
	Text        string
	Tags        []string // the notes must have all of them
	Limit       int
}

// NoteResult is the result of a search, best first.
type NoteResult struct {
	Hits []NoteHit
	// WordsOnly says why notes were searched by words only. It is empty if they were also searched by meaning.
	WordsOnly string
}

// NoteHit is a note that a search found.
type NoteHit struct {
	Note
	Score   float64  `json:"score" doc:"Rank of the note; higher is better"`
	Matched []string `json:"matched" doc:"What matched: words, meaning or both"`
}

// NoteErasure says what was removed when a note was forgotten, and what was not.
type NoteErasure struct {
	ID         string           `json:"id"`
	Erased     map[string]int64 `json:"erased" doc:"Number of changed rows by table, such as calls, messages and outputs"`
	NotReached []string         `json:"not_reached" doc:"Where the text may remain"`
}

// CheckNote checks the content of a note. It returns the content without spaces around it.
func CheckNote(content string) (string, error) {
	content = strings.TrimSpace(content)
	if content == "" || len(content) > MaxNote {
		return "", InvalidField("/content", "is empty or too long", "1 to "+strconv.Itoa(MaxNote)+" bytes")
	}
	return content, CheckText("/content", content)
}

// CheckTags returns the tags of a note trimmed, in lower case, sorted and each once. Empty tags are dropped.
func CheckTags(tags []string) ([]string, error) {
	out := []string{}
	for i, tag := range tags {
		tag = strings.ToLower(strings.TrimSpace(tag))
		at := "/tags/" + strconv.Itoa(i)
		if len(tag) > MaxNoteTag {
			return nil, InvalidField(at, "is too long", "at most "+strconv.Itoa(MaxNoteTag)+" bytes")
		}
		if err := CheckText(at, tag); err != nil {
			return nil, err
		}
		if tag != "" && !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	if len(out) > MaxNoteTags {
		return nil, InvalidField("/tags", "has too many different tags", "at most "+strconv.Itoa(MaxNoteTags))
	}
	slices.Sort(out)
	return out, nil
}
