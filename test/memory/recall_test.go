package memory_test

import (
	"slices"
	"testing"

	"reeve/host"
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

// The weights of words and meaning decide what is found first. Notes with equal scores are all found, and a search
// without notes finds none.
func TestO10_WeightsAndEqualScores(t *testing.T) {
	t.Parallel()
	const question = "which food could make my sibling ill?"
	const byMeaning, byWords = "My sister is allergic to peanuts", "My boss could make a plan"
	for first, weights := range map[string][2]float64{byWords: {100, 0.01}, byMeaning: {0.01, 100}} {
		kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
			cfg.Memory.WordWeight, cfg.Memory.MeaningWeight = weights[0], weights[1]
			h := reevetest.Run(t, cfg)
			kit.NewPersona(h, "bot", nil, memoryTools...)
			if got := search(h, kit.Object{"query": question}).Results; len(got) != 0 {
				t.Errorf("without notes: %+v", got)
			}
			write(h, "memory_save", kit.Object{"content": byWords})
			waitForVectors(h, question, write(h, "memory_save", kit.Object{"content": byMeaning}).NoteID)
			if got := texts(h, question); len(got) != 2 || got[0] != first {
				t.Errorf("with the weights %v it finds %q", weights, got)
			}
			var same []string
			for _, tag := range []string{"a", "b", "c"} {
				same = append(same, write(h, "memory_save", kit.Object{"content": "The gate opens at seven",
					"tags": []string{tag}}).NoteID)
			}
			waitForVectors(h, "gate opens", same[2])
			var found []string
			for range 2 { // in the same order each time
				var ids []string
				for _, r := range search(h, kit.Object{"query": "gate opens seven"}).Results {
					if r.Text == "The gate opens at seven" {
						ids = append(ids, r.NoteID)
					}
				}
				if found != nil && !slices.Equal(ids, found) {
					t.Errorf("%v, then %v", found, ids)
				}
				found = ids
			}
			if len(found) != 3 {
				t.Errorf("it finds %v of %v", found, same)
			}
		})
	}
}
