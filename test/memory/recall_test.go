package memory_test

import (
	"slices"
	"testing"

	"reeve/reevetest"
	"reeve/test/kit"
)

// A note is found by its meaning without a shared word, and by words that are not adjacent. The result says which of
// the two matched.
func TestN03_O10_RecallByWordsAndMeaning(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		peanuts := write(h, "memory_save", kit.Object{"content": "My sister is allergic to peanuts"}).NoteID
		for _, text := range []string{"The printer in the office needs toner", "Deploys happen on Thursday mornings",
			"My favourite football club is Liepāja", "The landlord's name is Karlis"} {
			write(h, "memory_save", kit.Object{"content": text})
		}
		const question = "which food could make my sibling ill?"
		waitForVectors(h, question, peanuts)
		got := search(h, kit.Object{"query": question}).Results
		if len(got) == 0 || got[0].NoteID != peanuts || !slices.Contains(got[0].Matched, "meaning") {
			t.Errorf("got %+v", got)
		}
		got = search(h, kit.Object{"query": "toner printer"}).Results
		if len(got) == 0 || got[0].Text != "The printer in the office needs toner" ||
			!slices.Contains(got[0].Matched, "words") {
			t.Errorf("got %+v", got)
		}
		// an update changes what is found
		write(h, "memory_update", kit.Object{"note_id": peanuts, "content": "Invoices are paid within thirty days"})
		waitForVectors(h, "how long do customers have to pay a bill?", peanuts)
		for _, r := range search(h, kit.Object{"query": question}).Results {
			if r.NoteID == peanuts && r.Score > 0.5 {
				t.Errorf("the old meaning is still found: %+v", r)
			}
		}
	})
}
