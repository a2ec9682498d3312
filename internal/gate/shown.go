package gate

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Shown takes secrets out of what is shown of a workspace besides the results of calls.
type Shown struct{ view *workspaceView }

// Shown gives what knows a workspace's secrets as of a snapshot.
func (g *Gate) Shown(ctx context.Context, s *store.Snap, workspace string) (Shown, error) {
	w, err := g.views.workspace(ctx, g, s, workspace)
	if err != nil {
		return Shown{}, err
	}
	g.views.mu.Lock()
	defer g.views.mu.Unlock()
	g.views.workspaces[workspace] = w // to read it anew takes a tenth of a second
	return Shown{w}, nil
}

// Operation is an operation as it is shown. What it keeps is what takes it back, to the byte.
func (v Shown) Operation(op *reeve.Operation) { op.Undo = v.view.shownUndo(op.Undo) }

// Invocation is one of no tool's, for its Slice and its Head.
func (v Shown) Invocation() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Secrets: v.view.scrubber.find, Begun: v.view.scrubber.begun}
}

// Deciding is Invocation for those who may decide on calls: what only looks like a secret is no secret to them, since
// the rest of a change that is too long for its card is read this way. Results of tools were scrubbed when they were kept.
func (v Shown) Deciding() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Secrets: v.view.scrubber.known.spelt, Begun: v.view.scrubber.known.begun}
}

// Stored is a text as it is shown to those who are to judge it, such as a diff: without the secrets that are stored. What only looks like one stays, since whoever merges it must see it. One that was cut does
// not end within a secret.
func (v Shown) Stored(text string, cut bool) string {
	inv := reeve.Invocation{Secrets: v.view.scrubber.known.spelt}
	if cut {
		inv.Begun = v.view.scrubber.begun
	}
	return inv.Head(text, len(text))
}

// Overseen is what is shown of an approval or a proposal to those who may look but not decide: without what looks
// like a secret.
func (v Shown) Overseen(preview string) string { return v.view.scrubber.scrub(preview) }

// Change is what is shown of a change: it may leave a part of a secret in another place.
type Change struct {
	Shown
	known reeve.Pieces // of the stored secrets that are anywhere in it
}

// Change knows the secrets in all texts that are shown of a change.
func (v Shown) Change(texts ...string) Change {
	c := Change{v, reeve.Pieces{}}
	for _, text := range texts {
		for _, s := range v.view.scrubber.known.spelt(text) {
			c.known.Add(text[s.From:s.To])
		}
	}
	return c
}

// longPart is how many characters of a secret are shown nowhere in a change. Fewer may be a word of somebody's, and are left out only where the secret was.
const longPart = 8

// long finds long parts of the change's secrets.
func (v Change) long(text string) (found []reeve.Range) {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		for _, s := range v.known.In(line) {
			if s.To-s.From >= longPart {
				found = append(found, reeve.Range{From: at + s.From, To: at + s.To})
			}
		}
		at += len(line)
	}
	return found
}

// Text is a name or a message as it is shown: as Stored, and without long parts of the change's secrets.
func (v Change) Text(text string) string {
	shown, _ := reeve.Veiled(text, append(v.view.scrubber.known.spelt(text), v.long(text)...))
	return v.Stored(shown, false)
}

// Patch is a diff by git as it is shown: as Text, and without what a change leaves of a secret in other lines of the same file.
func (v Change) Patch(text string, cut bool) string {
	var out strings.Builder
	for text != "" {
		file := text
		if next := strings.Index(text, "\ndiff --git "); next >= 0 {
			file = text[:next+1]
		}
		text = text[len(file):]
		hidden := v.view.scrubber.known.spelt(file)
		known := reeve.Pieces{}
		for _, s := range hidden {
			known.Add(file[s.From:s.To])
		}
		at := max(0, strings.Index(file, "\n@@ ")) // before that are names
		for line := range strings.SplitAfterSeq(file[at:], "\n") {
			for _, s := range known.In(line) {
				hidden = append(hidden, reeve.Range{From: at + s.From, To: at + s.To})
			}
			at += len(line)
		}
		shown, _ := reeve.Veiled(file, append(hidden, v.long(file)...))
		out.WriteString(shown)
	}
	return v.Stored(out.String(), cut)
}

// shownUndo is the call that takes an operation back as it is shown: it holds what was there before, and that may be a secret.
func (w *workspaceView) shownUndo(u *reeve.Undo) *reeve.Undo {
	if u == nil {
		return nil
	}
	return &reeve.Undo{Tool: u.Tool, Args: json.RawMessage(w.shownArgs(u.Tool, u.Args))}
}

// shownArgs are the arguments of an undo as they are shown. Where a secret was taken out they are not to be called with: the mark would be written in its place. So they do not expect
// what was left any more, and are refused.
func (w *workspaceView) shownArgs(tool string, args json.RawMessage) string {
	var names []string
	if e := w.tools[tool]; e != nil {
		names = e.tool.Names
	}
	text := w.scrubber.scrub(string(args), names...)
	var members map[string]json.RawMessage
	if text == string(args) || json.Unmarshal([]byte(text), &members) != nil || members["expect"] == nil {
		return text
	}
	members["expect"] = mustJSON(reeve.Redacted)
	return string(mustJSON(members))
}

// recordedArgs returns the call's arguments as the ledger keeps them, to be shown. The arguments of an undo are the data
// from before the change, not something that a caller sent: they are scrubbed, and kept with the operation that is undone.
func (d *Decision) recordedArgs() string {
	if d.undoes == "" {
		return string(d.args)
	}
	return d.view.workspace.shownArgs(d.call.Tool, d.args)
}

// trueArgs are the arguments that a recorded call was made with.
func (g *Gate) trueArgs(ctx context.Context, op reeve.Operation, info reeve.ActionInfo, recorded string) (args json.RawMessage, err error) {
	args = json.RawMessage(recorded)
	if info.Undoes == "" || reeve.Hash(args) == op.ArgsHash {
		return args, nil
	}
	err = g.DB.View(ctx, func(s *store.Snap) error {
		undone, err := s.GetOperation(ctx, op.WorkspaceID, info.Undoes)
		if err == nil && undone.Undo != nil {
			args, err = reeve.Canonical(undone.Undo.Args)
		}
		return err
	})
	return args, err
}
