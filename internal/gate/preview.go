package gate

import (
	"context"

	"reeve"
)

// previewed computes what the call would change, where that is asked for or needed: for a person who decides on it, to refuse a
// stale base, and so that a verifiable tool can later tell before from after.
func (p *pass) previewed(ctx context.Context) (string, error) {
	t := p.tool()
	if t.Preview == nil {
		if p.call.PreviewOnly || p.call.Base != "" {
			return "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot say what it would change", t.ID)
		}
		return "the tool has no preview", nil
	}
	needed := p.call.PreviewOnly || p.call.Base != "" || p.waits != "" || p.proposes || t.Effect.Leaves() || (p.resumed != nil && p.resumed.Base != "")
	if !needed || p.existing != nil {
		return "not needed", nil
	}
	v, err := ask(ctx, p, func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) { return t.Preview(ctx, inv) })
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
	p.preview = &v
	return "the change is known", nil
}
