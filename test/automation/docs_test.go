package automation_test

import (
	"strings"
	"testing"
)

func TestK13_Docs(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `[typeof Items.withItem, typeof Items.list, typeof globalThis.Scripts, await getDocs('Items'), await getDocs('Mail.send'), await getDocs('Mail.list'), await getDocs()].join('\n')`)
	out := a.MustComplete().Run.Output
	for _, s := range []string{"function\nfunction\nundefined\n", "Items.withItem", "Items.list",
		"Not a mutation: call it anywhere.", "Mutation: call it inside Items.withItem", "Mail.any",
		"getDocs(name?)"} {
		if !strings.Contains(out, s) {
			t.Errorf("the docs do not say %q:\n%s", s, out)
		}
	}
}
