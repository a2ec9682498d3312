package gate

import (
	"context"
	"errors"
	"fmt"

	"reeve"
	"reeve/internal/redact"
)

// previewStep computes what the call would change, where that is asked for or needed: for a person who decides on it,
// to refuse a stale base, and so that a verifiable tool can later tell before from after.
func (d *decider) previewStep(ctx context.Context) (string, error) {
	t := d.tool()
	if t.Preview == nil {
		if d.call.PreviewOnly || d.call.Base != "" {
			return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot say what it would change", t.ID)
		}
		return "the tool has no preview", nil
	}
	decided := d.waits != "" || d.proposes || (d.resumed != nil && d.resumed.Base != "")
	needed := d.call.PreviewOnly || d.call.Base != "" || decided || t.Effect == reeve.Keyed ||
		t.Effect == reeve.Verifiable
	if !needed || d.existing != nil {
		return "not needed", nil
	}
	shown := !d.call.PreviewOnly && (d.waits != "" || d.proposes) // to a person who decides
	v, err := ask(ctx, d, func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		if !d.call.PreviewOnly { // a person who decides must see what only looks like a secret
			inv.ForApprover, inv.Redactor = shown, inv.Redactor.StoredOnly()
		}
		return t.Preview(ctx, inv)
	})
	if err != nil {
		return "", err
	}
	want := d.call.Base
	if want == "" && d.resumed != nil {
		want = d.resumed.Base
	}
	if want != "" && want != v.Base {
		return "", reeve.Errorf(reeve.Stale, "what the change was based on has changed since").
			Hintf("preview it again and apply that")
	}
	d.preview, d.forPerson = &v, shown
	return "the change is known", nil
}

// previewForPerson makes the preview of a call that waits for a reason found out after the preview step.
func (d *decider) previewForPerson(ctx context.Context) error {
	if d.waits == "" && !d.proposes || d.call.PreviewOnly || d.forPerson || d.tool().Preview == nil {
		return nil
	}
	if _, err := d.previewStep(ctx); !errors.Is(err, errUnasked) {
		return err
	}
	return nil
}

// shownToPerson returns what a person is shown of a change on which they decide, without stored secrets. What only
// looks like a secret stays: otherwise a change could be written so that it is hidden from the person who lets it
// happen.
func (d *Decision) shownToPerson() output {
	if d.preview == nil {
		return output{}
	}
	out := cutAfter(d.view.workspace.stored(d.preview.Change), max(d.g.OutputCap, decidableCap))
	if out.truncated {
		out.content += fmt.Sprintf(
			"\n[the change is not shown whole; read the rest before you decide: reeve output %s]", reeve.Hash(out.full))
	}
	return out
}

// decidableCap is how many bytes of a change are shown to the person who decides on it.
const decidableCap = 256 << 10

// decidedArgs are the call's arguments for a person who decides on it: the exact ones. Those of an undo are what was
// there before, and may hold stored secrets that no argument ever had.
func (d *Decision) decidedArgs() string {
	if d.undoes == "" {
		return string(d.args)
	}
	return d.view.workspace.stored(string(d.args))
}

// stored is a text without the secrets that are stored.
func (w *workspaceView) stored(text string) string {
	return redact.Replace(text, w.redactor.StoredOnly().Find(text))
}
