package reeve_test

import (
	"math"
	"testing"

	"reeve"
)

// TestAmountsSaturate checks that sums saturate instead of overflowing.
func TestAmountsSaturate(t *testing.T) {
	for _, c := range [][3]int64{{1, 2, 3}, {math.MaxInt64, 1, math.MaxInt64}, {1, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64}, {math.MinInt64, -1, math.MinInt64},
		{-1, math.MinInt64, math.MinInt64}, {math.MaxInt64, math.MinInt64, -1}, {5, -7, -2}} {
		if got := reeve.SaturatingAdd(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
	var inv reeve.Invocation
	inv.Spend(math.MaxInt64, -50)
	inv.Spend(math.MaxInt64, 7)
	if _, _, spent := inv.Close(); spent != (reeve.Amount{Tokens: math.MaxInt64, Micros: 7}) {
		t.Errorf("spent %+v", spent)
	}
}
