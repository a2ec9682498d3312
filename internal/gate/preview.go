package gate

import (
	"context"
	"fmt"

	"reeve"
	"reeve/internal/redact"
)

// previewed computes what the call would change, where that is asked for or needed: for a person who decides on it,
// to refuse a stale base, and so that a verifiable tool can later tell before from after.
func (p *pass) previewed(ctx context.Context) (string, error) {
	t := p.tool()
	if t.Preview == nil {
		if p.call.PreviewOnly || p.call.Base != "" {
			return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot say what it would change", t.ID)
		}
		return "the tool has no preview", nil
	}
	decided := p.waits != "" || p.proposes || (p.resumed != nil && p.resumed.Base != "")
	needed := p.call.PreviewOnly || p.call.Base != "" || decided || t.Effect == reeve.Keyed || t.Effect == reeve.Verifiable
	if !needed || p.existing != nil {
		return "not needed", nil
	}
	shown := !p.call.PreviewOnly && (p.waits != "" || p.proposes) // to a person who decides
	v, err := ask(ctx, p, func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		if !p.call.PreviewOnly { // a person who decides must see what only looks like a secret
			inv.Decides, inv.Redactor = shown, inv.Redactor.StoredOnly()
		}
		return t.Preview(ctx, inv)
	})
	if err != nil {
		return "", err
	}
	want := p.call.Base
	if want == "" && p.resumed != nil {
		want = p.resumed.Base
	}
	if want != "" && want != v.Base {
		return "", reeve.Errorf(reeve.Stale, "what the change was based on has changed since").Hintf("preview it again and apply that")
	}
	p.preview, p.decides = &v, shown
	return "the change is known", nil
}

// decidable is what a person is shown of a change on which they decide. Stored secrets are taken out of it. What only
// looks like a secret stays: otherwise a change could be written so that it is hidden from the person who lets it
// happen.
func (p *pass) decidable(ctx context.Context) (output, error) {
	if !p.decides && p.tool().Preview != nil { // it waits for something that was found out after the preview
		if _, err := p.previewed(ctx); err != nil {
			return output{}, err
		}
	}
	if p.preview == nil {
		return output{}, nil
	}
	out := cutAfter(p.view.workspace.stored(p.preview.Change), max(p.g.OutputCap, decidableCap))
	if out.truncated {
		out.content += fmt.Sprintf("\n[the change is not shown whole; read the rest before you decide: reeve output %s]", reeve.Hash(out.full))
	}
	return out, nil
}

// decidableCap is how many bytes of a change are shown to the person who decides on it.
const decidableCap = 256 << 10

// decidedArgs are the call's arguments for a person who decides on it: the exact ones. Those of an undo are what was
// there before, and may hold stored secrets that no argument ever had.
func (p *pass) decidedArgs() string {
	if p.undoes == "" {
		return string(p.args)
	}
	return p.view.workspace.stored(string(p.args))
}

// stored is a text without the secrets that are stored.
func (w *workspaceView) stored(text string) string {
	return redact.Replace(text, w.redactor.StoredOnly().Find(text))
}
