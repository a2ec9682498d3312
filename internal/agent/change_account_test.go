package agent

import (
	"strings"
	"testing"

	"reeve"
)

// The account counts entities that the reader may not see once each, however often they change.
func TestL28_AccountCountsHiddenEntitiesOnce(t *testing.T) {
	t.Parallel()
	account := newChangeAccount(func(text string) string { return text })
	ann := reeve.ChangeViewer{User: "ann"}
	mine := reeve.EntityChange{Kind: "task", ID: "tsk_1", Action: "changed", Title: "Call"}
	hers := reeve.EntityChange{Kind: "time_entry", ID: "ten_1", Action: "changed", Owner: "ben"}
	for _, c := range []reeve.ChangeRecord{
		{ID: "chg_1", Entities: []reeve.EntityChange{mine, hers}},
		{ID: "chg_2", Entities: []reeve.EntityChange{hers}},
		{ID: "chg_3", Entities: []reeve.EntityChange{hers}},
		{ID: "chg_4", PrivateTo: "ben"},
	} {
		account.add(c, ann, "someone")
	}
	got := account.String()
	if !strings.Contains(got, "- and 2 that you may not read\n") || strings.Contains(got, "ten_1") {
		t.Errorf("got %s, want two hidden entities", got)
	}
}
