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

// Redaction redacts data of a workspace that is shown outside of results of calls.
type Redaction struct{ view *workspaceView }

// Redaction returns the Redaction of a workspace at the revision of a snapshot.
func (g *Gate) Redaction(ctx context.Context, s *store.Snap, workspace string) (Redaction, error) {
	w, err := g.viewCache.getWorkspace(ctx, g, s, workspace)
	if err != nil {
		return Redaction{}, err
	}
	g.viewCache.mu.Lock()
	defer g.viewCache.mu.Unlock()
	g.viewCache.workspaces[workspace] = w // loading it takes a tenth of a second
	return Redaction{w}, nil
}

// Operation redacts the undo of an operation. The stored operation keeps it unredacted.
func (v Redaction) Operation(op *reeve.Operation) { op.Undo = v.view.redactUndo(op.Undo) }

// Invocation returns an invocation without a tool, for its methods RedactedSlice and RedactedHead.
func (v Redaction) Invocation() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Redactor: v.view.redactor}
}

// DeciderInvocation is Invocation for users who may decide on calls. It removes stored secrets only. It serves to read
// the rest of a preview that is too long to show at once.
func (v Redaction) DeciderInvocation() *reeve.Invocation {
	return &reeve.Invocation{Workspace: v.view.ws.ID, Redactor: v.storedSecretsOnly()}
}

// storedSecretsOnly returns a redactor that removes only the workspace's stored secrets.
func (v Redaction) storedSecretsOnly() *redact.Redactor { return v.view.redactor.StoredOnly() }

// StoredSecretsOnly redacts a text, such as a diff, for users who decide on it. It removes stored secrets and keeps
// text that only looks like a secret. Set cut if the text was truncated, so that a secret that is cut off at its end is
// removed.
func (v Redaction) StoredSecretsOnly(text string, cut bool) string {
	if cut {
		return v.storedSecretsOnly().Head(text, len(text))
	}
	return redact.Replace(text, v.storedSecretsOnly().Find(text))
}

// ForDeciders redacts the arguments and the preview of a call for users who may decide on it. It removes stored secrets
// and keeps what only looks like a secret. JSON stays JSON.
func (v Redaction) ForDeciders(text string) string { return v.storedSecretsOnly().Text(text) }

// ForObservers redacts the arguments and the preview of a call for users who may not decide on it. It removes secrets
// of any kind.
func (v Redaction) ForObservers(text string) string { return v.view.redactor.Text(text) }

// ChangeRedaction redacts the texts of one change together, because a text may contain a part of a secret in another
// text.
type ChangeRedaction struct {
	Redaction
	fragments redact.Fragments // fragments of the stored secrets in all texts
}

// Change returns the redaction for the given texts of a change.
func (v Redaction) Change(texts ...string) ChangeRedaction {
	c := ChangeRedaction{v, redact.Fragments{}}
	for _, text := range texts {
		for _, s := range v.storedSecretsOnly().Find(text) {
			c.fragments.Add(text[s.From:s.To])
		}
	}
	return c
}

// minLongPart is the length from which a part of a secret is removed from all texts of a change. A shorter part may be
// an ordinary word and is removed only from the file that contains the secret.
const minLongPart = 8

// findLongParts returns the ranges of long parts of the change's secrets in a text.
func (v ChangeRedaction) findLongParts(text string) (found []redact.Range) {
	at := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		for _, s := range v.fragments.Find(line) {
			if s.To-s.From >= minLongPart {
				found = append(found, redact.Range{From: at + s.From, To: at + s.To})
			}
		}
		at += len(line)
	}
	return found
}

// Text redacts a name or a message of the change. It removes stored secrets and long parts of them.
func (v ChangeRedaction) Text(text string) string {
	shown, _ := redact.Line(text, append(v.storedSecretsOnly().Find(text), v.findLongParts(text)...))
	return v.StoredSecretsOnly(shown, false)
}

// Patch redacts a git diff. In addition to Text, it removes short parts of a file's secrets from all lines of that
// file.
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
		at := max(0, strings.Index(file, "\n@@ ")) // skip the file names
		for line := range strings.SplitAfterSeq(file[at:], "\n") {
			for _, s := range fragments.Find(line) {
				hidden = append(hidden, redact.Range{From: at + s.From, To: at + s.To})
			}
			at += len(line)
		}
		shown, _ := redact.Line(file, append(hidden, v.findLongParts(file)...))
		out.WriteString(shown)
	}
	return v.StoredSecretsOnly(out.String(), cut)
}

// redactUndo returns the call that undoes an operation without secrets, which the data that it restores may contain.
func (w *workspaceView) redactUndo(u *reeve.Undo) *reeve.Undo {
	if u == nil {
		return nil
	}
	return &reeve.Undo{Tool: u.Tool, Args: json.RawMessage(w.redactUndoArgs(u.Tool, u.Args))}
}

// redactUndoArgs returns the arguments of an undo without secrets. The gate refuses a call with redacted arguments; see
// checkNoMark.
func (w *workspaceView) redactUndoArgs(tool string, args json.RawMessage) string {
	var names []string
	if e := w.tools[tool]; e != nil {
		names = e.tool.FileNameFields
	}
	return w.redactor.Text(string(args), names...)
}

// argsForRecord returns the call's arguments as they are recorded. The arguments of an undo are redacted. The operation
// that it undoes keeps them unredacted.
func (d *Decision) argsForRecord() string {
	if d.undoes == "" {
		return string(d.args)
	}
	return d.view.workspace.redactUndoArgs(d.call.Tool, d.args)
}

// getOriginalArgs returns the arguments with which a recorded call was made. For an undo it reads them from the
// operation that is undone, if the recorded ones are redacted.
func (g *Gate) getOriginalArgs(ctx context.Context, op reeve.Operation, info reeve.ActionInfo,
	recorded string) (args json.RawMessage, err error) {
	args = json.RawMessage(recorded)
	if info.Undoes == "" || reeve.Hash(args) == op.ArgsHash {
		return args, nil
	}
	err = g.DB.View(ctx, func(s *store.Snap) error {
		undone, err := s.Ledger().GetOperation(ctx, op.WorkspaceID, info.Undoes)
		if err == nil && undone.Undo != nil {
			args, err = canonjson.Canonical(undone.Undo.Args)
		}
		return err
	})
	return args, err
}

// RedactText returns a function that removes the secrets of a workspace, at the revision of a snapshot, from texts. It
// returns at most n bytes of a text.
func (g *Gate) RedactText(ctx context.Context, s *store.Snap, workspace string) (func(text string, n int) string,
	error) {
	v, err := g.Redaction(ctx, s, workspace)
	if err != nil {
		return nil, err
	}
	return func(text string, n int) string {
		if len(text) <= n {
			return v.view.redactor.Text(text)
		}
		return v.view.redactor.Head(text, n) + "…"
	}, nil
}
