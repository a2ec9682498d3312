package notes

import (
	"cmp"
	"context"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

type listArgs struct {
	Tag   string `json:"tag,omitempty" maxLength:"100" doc:"Only notes that have this tag"`
	Limit int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" doc:"Number of notes"`
	After int64  `json:"after,omitempty" minimum:"0" doc:"The value of next of the previous page"`
}

// listed is a note without its text. Its origin comes before the title, so that no cut separates a text from it.
type listed struct {
	NoteID    string           `json:"note_id"`
	Origin    reeve.NoteOrigin `json:"origin"`
	Title     string           `json:"title"`
	Tags      []string         `json:"tags,omitempty"`
	Size      int              `json:"size" doc:"Bytes of the text"`
	Pinned    bool             `json:"pinned,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	UpdatedAt time.Time        `json:"updated_at"`
}

type listResult struct {
	Notes []listed `json:"notes"`
	Next  int64    `json:"next,omitempty" doc:"Set if there may be more: after of the next page"`
}

// gotten is a note with its text, which comes last, because a long result is cut off at its end.
type gotten struct {
	listed
	Content string `json:"content"`
}

const (
	defaultListed = 20
	maxTitle      = 80 // bytes
)

func listNote(n reeve.Note) listed {
	title, _, _ := strings.Cut(strings.TrimSpace(n.Content), "\n")
	return listed{NoteID: n.ID, Title: reeve.Truncate(title, maxTitle), Tags: n.Tags, Origin: n.Origin,
		Size: len(n.Content), Pinned: n.Pinned, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}
}

// markUntrusted reports that a result quotes a note, which may be untrusted.
func markUntrusted(inv *reeve.Invocation, n reeve.Note) {
	if n.IsUntrusted() {
		inv.MarkUntrusted()
	}
}

func (p *Pack) get(ctx context.Context, in noteArgs) (out gotten, err error) {
	inv := reeve.InvocationFrom(ctx)
	if inv.User == "" {
		return out, errNoUser
	}
	err = p.DB.View(ctx, func(s *store.Snap) error {
		n, err := s.Notes().GetCurrentNote(ctx, inv.Workspace, inv.User, in.NoteID)
		out = gotten{listNote(n), n.Content}
		markUntrusted(inv, n)
		return err
	})
	return out, err
}

func (p *Pack) list(ctx context.Context, in listArgs) (listResult, error) {
	inv := reeve.InvocationFrom(ctx)
	out := listResult{Notes: []listed{}}
	if inv.User == "" {
		return out, errNoUser
	}
	limit := cmp.Or(in.Limit, defaultListed)
	err := p.DB.View(ctx, func(s *store.Snap) error {
		notes, next, err := s.Notes().ListNotes(ctx, inv.Workspace, store.NoteFilter{User: inv.User,
			Tag: strings.ToLower(strings.TrimSpace(in.Tag)), Before: in.After, Limit: limit})
		for _, n := range notes {
			out.Notes = append(out.Notes, listNote(n))
			markUntrusted(inv, n)
		}
		if len(notes) == limit {
			out.Next = next
		}
		return err
	})
	return out, err
}
