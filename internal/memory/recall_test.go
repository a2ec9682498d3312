package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/store"
)

// nearest returns the slots with the smallest distances, whatever the number of blocks.
func TestNearestSlots(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	const size, slots = 8, 3*store.SlotsPerBlock + 17
	var blocks [][]byte
	var codes [][]byte
	for i := range slots {
		if i%store.SlotsPerBlock == 0 {
			blocks = append(blocks, nil)
		}
		code := make([]byte, size)
		for j := range code {
			code[j] = byte(r.Uint32())
		}
		codes = append(codes, code)
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], code...)
	}
	query := codes[300]
	for _, allowed := range []map[int64]bool{nil, {1: true, 300: true, 700: true}} {
		var want []int
		for slot := range codes {
			if allowed == nil || allowed[int64(slot)] {
				want = append(want, slot)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int {
			return embed.Hamming(query, codes[a]) - embed.Hamming(query, codes[b])
		})
		want = want[:min(len(want), meaningCandidates)]
		farthest := embed.Hamming(query, codes[want[len(want)-1]])
		got := nearest(blocks, query, allowed)
		if len(got) != len(want) || !slices.Contains(got, 300) {
			t.Fatalf("got %d slots, want %d", len(got), len(want))
		}
		for _, slot := range got {
			if embed.Hamming(query, codes[slot]) > farthest {
				t.Errorf("slot %d is farther than the last one wanted", slot)
			}
		}
	}
	if got := nearest(nil, query, nil); len(got) != 0 {
		t.Errorf("no blocks: got %v", got)
	}
}

// Age lowers the rank of a note that is not pinned, and removes nothing (N08).
func TestN08_AgeChangesRankOnly(t *testing.T) {
	t.Parallel()
	r := NewNotes(NotesConfig{})
	now := time.Now()
	score := func(age time.Duration, pinned bool) float64 {
		n := reeve.Note{UpdatedAt: now.Add(-age), Pinned: pinned}
		return r.score(n, candidate{words: 1, meaning: 0.8}, now).Score
	}
	const year = 365 * 24 * time.Hour
	fresh, old, ancient := score(0, false), score(year, false), score(100*year, false)
	if !(fresh > old && old > ancient && ancient > 0.79*fresh) {
		t.Errorf("scores by age: %v, %v, %v", fresh, old, ancient)
	}
	if score(100*year, true) != fresh {
		t.Error("a pinned note loses rank with age")
	}
}
