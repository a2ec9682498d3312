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
	Source         string     `json:"source,omitempty" doc:"File that it was imported from, such as import:MEMORY.md"`
	ValidFrom      time.Time  `json:"valid_from" doc:"Since when the content holds"`
	SupersededBy   string     `json:"superseded_by,omitempty" doc:"Note that replaces this one"`
	SupersededAt   *time.Time `json:"superseded_at,omitempty"`
	DeletedAt      *time.Time `json:"deleted_at,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at" doc:"When the content was last written"`
}

// IsCurrent reports whether the note is neither deleted nor superseded. Only current notes are recalled.
func (n Note) IsCurrent() bool { return n.DeletedAt == nil && n.SupersededBy == "" }

// IsUntrusted reports whether the note may repeat text from outside.
func (n Note) IsUntrusted() bool { return n.Origin == NoteUntrusted }

// NoteVersion is what a note said before an update.
type NoteVersion struct {
	Version     int64      `json:"version"`
	Content     string     `json:"content"`
	Tags        []string   `json:"tags"`
	Origin      NoteOrigin `json:"origin"`
	AgentID     string     `json:"agent_id,omitempty"`
	OperationID string     `json:"operation_id,omitempty"`
	WrittenAt   time.Time  `json:"written_at"`
	ValidFrom   *time.Time `json:"valid_from,omitempty" doc:"Since when it was true, if that is known"`
}

// NoteChange changes a note. Fields that are nil stay as they are.
type NoteChange struct {
	Content *string   `json:"content,omitempty" maxLength:"8000" doc:"New text; it replaces the old one"`
	Tags    *[]string `json:"tags,omitempty" maxItems:"100" doc:"New tags; they replace the old ones"`
	Pinned  *bool     `json:"pinned,omitempty"`
	// BaseVersion keeps a change from replacing a text that its author has not seen.
	BaseVersion int64 `json:"base_version,omitempty" minimum:"1" doc:"Refuse with STALE unless the note has this version"`
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

// NoteRecord is a note with its history, as exported and imported. A record of another program's note has only Content
// and what is known of Tags, Pinned, Source and ValidFrom; a record of an export has an ID.
type NoteRecord struct {
	ID             string        `json:"id,omitempty" maxLength:"64"`
	Content        string        `json:"content"`
	Tags           []string      `json:"tags,omitempty" maxItems:"100"`
	Pinned         bool          `json:"pinned,omitempty"`
	Source         string        `json:"source,omitempty" maxLength:"500" doc:"File that it comes from"`
	ValidFrom      *time.Time    `json:"valid_from,omitempty" doc:"Since when the content holds. Default: now"`
	Origin         NoteOrigin    `json:"origin,omitempty" enum:"person,agent,untrusted"`
	Version        int64         `json:"version,omitempty" minimum:"1" maximum:"1000000"`
	AgentID        string        `json:"agent_id,omitempty" maxLength:"128"`
	ConversationID string        `json:"conversation_id,omitempty" maxLength:"128"`
	TurnID         string        `json:"turn_id,omitempty" maxLength:"128"`
	OperationID    string        `json:"operation_id,omitempty" maxLength:"128"`
	SupersededBy   string        `json:"superseded_by,omitempty" maxLength:"64"`
	SupersededAt   *time.Time    `json:"superseded_at,omitempty"`
	DeletedAt      *time.Time    `json:"deleted_at,omitempty"`
	CreatedAt      *time.Time    `json:"created_at,omitempty"`
	UpdatedAt      *time.Time    `json:"updated_at,omitempty"`
	Versions       []NoteVersion `json:"versions,omitempty" maxItems:"10000" doc:"What the note said before, oldest first"`
}

// NewNoteRecord returns the record of a note with its earlier versions.
func NewNoteRecord(n Note, versions []NoteVersion) NoteRecord {
	return NoteRecord{ID: n.ID, Content: n.Content, Tags: n.Tags, Pinned: n.Pinned, Source: n.Source,
		ValidFrom: &n.ValidFrom, Origin: n.Origin, Version: n.Version, AgentID: n.AgentID,
		ConversationID: n.ConversationID, TurnID: n.TurnID, OperationID: n.OperationID, SupersededBy: n.SupersededBy,
		SupersededAt: n.SupersededAt, DeletedAt: n.DeletedAt, CreatedAt: &n.CreatedAt, UpdatedAt: &n.UpdatedAt,
		Versions: versions}
}

// ImportOutcome says what an import did with a note.
type ImportOutcome string

// The outcomes of importing a note.
const (
	NoteCreated ImportOutcome = "created" // the note is new
	NoteExists  ImportOutcome = "exists"  // the note was imported before, or the user has an equal note
	NoteSkipped ImportOutcome = "skipped" // the note is not valid
)

// ImportedNote is what an import did with one note.
type ImportedNote struct {
	Outcome ImportOutcome `json:"outcome" enum:"created,exists,skipped"`
	NoteID  string        `json:"note_id,omitempty" doc:"The new or the existing note"`
	Reason  string        `json:"reason,omitempty" doc:"Why the note was not created"`
}

// NoteConsolidation is the result of a consolidation of a user's notes.
type NoteConsolidation struct {
	ChangeSetID string               `json:"change_set_id,omitempty" doc:"Change set with the proposals; empty if there are none"`
	Compared    int                  `json:"compared" doc:"Number of notes that were compared with the others"`
	Changes     []ConsolidatedChange `json:"changes" doc:"Changes that were proposed or, if the policy of the agent allows it, made"`
	More        bool                 `json:"more" doc:"True if notes are left to compare; repeat the request"`
	Problem     string               `json:"problem,omitempty" doc:"Why the model was not asked; near duplicates were found without it"`
}

// ConsolidatedChange is a call that a consolidation made.
type ConsolidatedChange struct {
	Tool        string `json:"tool"`
	Reason      string `json:"reason" doc:"Evidence: the notes, what they say and how similar they are"`
	State       State  `json:"state,omitempty" doc:"State of the operation; empty if the gate refused the call"`
	OperationID string `json:"operation_id"`
	ProposalID  string `json:"proposal_id,omitempty"`
	Code        Code   `json:"code,omitempty" doc:"Why the change was not made"`
	Message     string `json:"message,omitempty"`
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
