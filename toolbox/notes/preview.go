package notes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// withPreview adds a preview to a tool that changes notes. describe returns the notes that a call would change and the
// change as text.
func withPreview[In any](p *Pack, t reeve.Tool,
	describe func(get noteGetter, in In) ([]reeve.Note, string, error)) reeve.Tool {
	t.Previews = true
	t.Preview = func(ctx context.Context, inv *reeve.Invocation) (out reeve.Preview, err error) {
		in, err := reeve.Args[In](inv)
		if err != nil {
			return out, err
		}
		if inv.User == "" {
			return out, errNoUser
		}
		return out, p.DB.View(ctx, func(s *store.Snap) error {
			notes, text, err := describe(func(id string) (reeve.Note, error) {
				return s.Notes().GetCurrentNote(ctx, inv.Workspace, inv.User, id)
			}, in)
			out = reeve.Preview{Change: text, Base: baseOf(notes)}
			return err
		})
	}
	return t
}

// noteGetter returns a current note of the user.
type noteGetter func(id string) (reeve.Note, error)

// baseOf identifies the state of notes on which a change is based.
func baseOf(notes []reeve.Note) string {
	state := []any{}
	for _, n := range notes {
		state = append(state, n.ID, n.Version)
	}
	b, _ := json.Marshal(state)
	return reeve.Hash(b)
}

// checkBase returns an error if the notes have changed since the call was previewed or proposed.
func checkBase(inv *reeve.Invocation, notes ...reeve.Note) error {
	if inv.Base == "" || inv.Base == baseOf(notes) {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "the notes have changed since the preview").
		Hintf("preview the change again and apply the new preview")
}

func describeUpdate(get noteGetter, in updateArgs) ([]reeve.Note, string, error) {
	n, err := get(in.NoteID)
	if err != nil {
		return nil, "", err
	}
	text := describeNote("-", n) + prefixLines("+", in.Content)
	if in.Tags != nil {
		text += fmt.Sprintf("+ tags: %s\n", strings.Join(*in.Tags, ", "))
	}
	return []reeve.Note{n}, text, nil
}

func describeDelete(get noteGetter, in noteArgs) ([]reeve.Note, string, error) {
	n, err := get(in.NoteID)
	if err != nil {
		return nil, "", err
	}
	return []reeve.Note{n}, describeNote("-", n), nil
}

func describeMerge(get noteGetter, in mergeArgs) ([]reeve.Note, string, error) {
	var notes []reeve.Note
	var b strings.Builder
	isUntrusted := false
	for _, id := range in.NoteIDs {
		n, err := get(id)
		if err != nil {
			return nil, "", err
		}
		notes, isUntrusted = append(notes, n), isUntrusted || n.Origin == reeve.NoteUntrusted
		b.WriteString(describeNote("-", n))
	}
	b.WriteString(prefixLines("+", in.Content))
	if len(in.Tags) > 0 {
		fmt.Fprintf(&b, "+ tags: %s\n", strings.Join(in.Tags, ", "))
	}
	if isUntrusted {
		b.WriteString("+ origin: untrusted\n")
	}
	return notes, b.String(), nil
}

// describeNote returns a note as lines of a change.
func describeNote(sign string, n reeve.Note) string {
	text := prefixLines(sign, n.Content)
	text += fmt.Sprintf("%s note: %s, origin: %s", sign, n.ID, n.Origin)
	if len(n.Tags) > 0 {
		text += ", tags: " + strings.Join(n.Tags, ", ")
	}
	return text + "\n"
}

func prefixLines(sign, text string) string {
	return sign + " " + strings.ReplaceAll(text, "\n", "\n"+sign+" ") + "\n"
}
