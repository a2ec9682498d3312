package gate

import (
	"context"
	"errors"
	"fmt"

	"reeve"
	"reeve/internal/redact"
)

// computePreview computes what the call would change, if that is requested or needed. It is needed for a person who
// decides on the call, to refuse a stale base, and to record the base of keyed and verifiable tools.
func (d *decider) computePreview(ctx context.Context) (string, error) {
	t := d.tool()
	if t.Preview == nil {
		if d.call.PreviewOnly || d.call.Base != "" {
			return "", reeve.Errorf(reeve.Unsupported, "the tool %q has no preview", t.ID).
				Hintf("make the call without preview and without a base")
		}
		return "the tool has no preview", nil
	}
	isForDecision := d.waitReason != "" || d.isProposal || (d.resumed != nil && d.resumed.Base != "")
	isNeeded := d.call.PreviewOnly || d.call.Base != "" || isForDecision || t.Effect == reeve.Keyed ||
		t.Effect == reeve.Verifiable
	if !isNeeded || d.existing != nil {
		return "not needed", nil
	}
	isForPerson := !d.call.PreviewOnly && (d.waitReason != "" || d.isProposal)
	v, err := runToolCheck(ctx, d, func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		if !d.call.PreviewOnly { // a person who decides must see text that only looks like a secret
			inv.ForApprover, inv.Redactor = isForPerson, inv.Redactor.StoredOnly()
		}
		if d.showsSecrets {
			inv.ForApprover, inv.Redactor = true, redact.New(nil).StoredOnly()
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
		return "", reeve.Errorf(reeve.Stale, "the target has changed since the preview").
			Hintf("preview the change again and apply the new preview")
	}
	d.preview, d.previewIsForPerson = &v, isForPerson
	return "computed what the call would change", nil
}

// computePreviewForPerson computes the preview of a call that waits for a person because of a step after the preview
// step.
func (d *decider) computePreviewForPerson(ctx context.Context) error {
	if d.waitReason == "" && !d.isProposal || d.call.PreviewOnly || d.previewIsForPerson || d.tool().Preview == nil {
		return nil
	}
	if _, err := d.computePreview(ctx); !errors.Is(err, errToolNotAsked) {
		return err
	}
	return nil
}

// previewOutput returns the preview for the person who decides on the call, without stored secrets. Text that only
// looks like a secret stays, because otherwise an agent could hide a part of the change from the person.
func (d *Decision) previewOutput() output {
	if d.preview == nil {
		return output{}
	}
	out := truncateOutputTo(d.view.workspace.redactStoredSecrets(d.preview.Change), max(d.g.OutputCap, decidableCap))
	if out.truncated {
		out.content += fmt.Sprintf(
			"\n[the change is truncated; read the rest before you decide: reeve output %s]", reeve.Hash(out.full))
	}
	return out
}

// decidableCap is how many bytes of a change are shown to the person who decides on it.
const decidableCap = 256 << 10

// argsForPerson returns the call's arguments for the person who decides on it. They are exact, except that stored
// secrets are removed from the arguments of an undo, which hold earlier data.
func (d *Decision) argsForPerson() string {
	if d.undoes == "" {
		return string(d.args)
	}
	return d.view.workspace.redactStoredSecrets(string(d.args))
}

// redactStoredSecrets returns a text without the stored secrets.
func (w *workspaceView) redactStoredSecrets(text string) string {
	return redact.Replace(text, w.redactor.StoredOnly().Find(text))
}
