package gate

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/redact"
	"reeve/internal/store"
)

// Redaction redacts what is shown of a workspace besides the results of calls.
type Redaction struct{ view *workspaceView }

// Redaction returns the Shown of a workspace as of a snapshot.
func (g *Gate) Redaction(ctx context.Context, s *store.Snap, workspace string) (Redaction, error) {
	w, err := g.views.workspace(ctx, g, s, workspace)
	if err != nil {
		return Redaction{}, err
	}
	g.views.mu.Lock()
	defer g.views.mu.Unlock()
	g.views.workspaces[workspace] = w // to read it anew takes a tenth of a second
	return Redaction{w}, nil
}

// Operation is an operation as it is shown. What it keeps is what takes it back, to the byte.
func (v Redaction) Operation(op *reeve.Operation) { op.Undo = v.view.shownUndo(op.Undo) }

// Invocation returns an invocation of no tool, for its RedactedSlice and RedactedHead.
func (v Redaction) Invocation() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Redactor: v.view.redactor}
}

// DeciderInvocation is like Invocation, for persons who may decide on calls: it removes stored secrets only. The rest
// of a change that is too long for its card is read this way.
func (v Redaction) DeciderInvocation() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Redactor: v.storedSecretsOnly()}
}

// storedSecretsOnly removes the workspace's stored secrets and nothing else.
func (v Redaction) storedSecretsOnly() *redact.Redactor { return v.view.redactor.StoredOnly() }

// StoredSecretsOnly returns a text for persons who judge it, such as a diff: without stored secrets, but with
// everything that only looks like one. A text that was cut does not end within a secret.
func (v Redaction) StoredSecretsOnly(text string, cut bool) string {
	if cut {
		return v.storedSecretsOnly().Head(text, len(text))
	}
	return redact.Replace(text, v.storedSecretsOnly().Find(text))
}

// ForObservers returns the preview of an approval or a proposal for persons who may look but not decide: without
// secrets of any kind.
func (v Redaction) ForObservers(preview string) string { return v.view.redactor.Text(preview) }

// ChangeRedaction redacts the texts that are shown of one change, each of which may hold a part of a secret in another.
type ChangeRedaction struct {
	Redaction
	fragments redact.Fragments // of the stored secrets in all texts
}

// Change collects the secrets in all texts that are shown of a change.
func (v Redaction) Change(texts ...string) ChangeRedaction {
	c := ChangeRedaction{v, redact.Fragments{}}
	for _, text := range texts {
		for _, s := range v.storedSecretsOnly().Find(text) {
			c.fragments.Add(text[s.From:s.To])
		}
	}
	return c
}

// longPart is how many characters in a row of a secret a change shows nowhere. Fewer may be an ordinary word, and are
// hidden only in the file that holds the secret.
const longPart = 8

// longParts finds long parts of the change's secrets.
func (v ChangeRedaction) longParts(text string) (found []redact.Range) {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		for _, s := range v.fragments.Find(line) {
			if s.To-s.From >= longPart {
				found = append(found, redact.Range{From: at + s.From, To: at + s.To})
			}
		}
		at += len(line)
	}
	return found
}

// Text redacts a name or a message: stored secrets and long parts of the change's secrets.
func (v ChangeRedaction) Text(text string) string {
	shown, _ := redact.Line(text, append(v.storedSecretsOnly().Find(text), v.longParts(text)...))
	return v.StoredSecretsOnly(shown, false)
}

// Patch redacts a diff by git: as Text does, and also what the change leaves of a secret in other lines of a file.
func (v ChangeRedaction) Patch(text string, cut bool) string {
	var out strings.Builder
	for text != "" {
		file := text
		if next := strings.Index(text, "\ndiff --git "); next >= 0 {
			file = text[:next+1]
		}
		text = text[len(file):]
		hidden := v.storedSecretsOnly().Find(file)
		fragments := redact.Fragments{}
		for _, s := range hidden {
			fragments.Add(file[s.From:s.To])
		}
		at := max(0, strings.Index(file, "\n@@ ")) // names come before that
		for line := range strings.SplitAfterSeq(file[at:], "\n") {
			for _, s := range fragments.Find(line) {
				hidden = append(hidden, redact.Range{From: at + s.From, To: at + s.To})
			}
			at += len(line)
		}
		shown, _ := redact.Line(file, append(hidden, v.longParts(file)...))
		out.WriteString(shown)
	}
	return v.StoredSecretsOnly(out.String(), cut)
}

// shownUndo returns the call that undoes an operation as it is shown: what it restores may be a secret.
func (w *workspaceView) shownUndo(u *reeve.Undo) *reeve.Undo {
	if u == nil {
		return nil
	}
	return &reeve.Undo{Tool: u.Tool, Args: json.RawMessage(w.shownArgs(u.Tool, u.Args))}
}

// shownArgs returns the arguments of an undo as they are shown. A call with redacted arguments is refused: it would
// write the mark in the place of the secret.
func (w *workspaceView) shownArgs(tool string, args json.RawMessage) string {
	var names []string
	if e := w.tools[tool]; e != nil {
		names = e.tool.Names
	}
	return w.redactor.Text(string(args), names...)
}

// recordedArgs returns the call's arguments as they are recorded. Those of an undo hold what was there before and are
// redacted; the operation that it undoes keeps them whole.
func (d *Decision) recordedArgs() string {
	if d.undoes == "" {
		return string(d.args)
	}
	return d.view.workspace.shownArgs(d.call.Tool, d.args)
}

// trueArgs are the arguments that a recorded call was made with.
func (g *Gate) trueArgs(ctx context.Context, op reeve.Operation, info reeve.ActionInfo,
	recorded string) (args json.RawMessage, err error) {
	args = json.RawMessage(recorded)
	if info.Undoes == "" || reeve.Hash(args) == op.ArgsHash {
		return args, nil
	}
	err = g.DB.View(ctx, func(s *store.Snap) error {
		undone, err := s.Ledger().GetOperation(ctx, op.WorkspaceID, info.Undoes)
		if err == nil && undone.Undo != nil {
			if args, err = canonjson.Canonical(undone.Undo.Args); err != nil {
				return reeve.InvalidJSON(err)
			}
		}
		return err
	})
	return args, err
}
