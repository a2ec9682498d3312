package reeve

// LongestPage returns the longest page of at most n entries that the gate will not truncate. page builds a page of a
// given number of entries. A tool that returns a list or a text in pages must use it: a caller that continues after a
// truncated page would miss the entries that were cut off. A single entry may still be too long. Then it is truncated
// at its end, so the cursor must come before the entries.
func LongestPage[T any](inv *Invocation, n int, page func(n int) (T, error)) (T, error) {
	best, err := page(n)
	if err != nil || n < 2 || inv.FitsOutput == nil || inv.FitsOutput(best) {
		return best, err
	}
	if best, err = page(1); err != nil {
		return best, err
	}
	for fits, tooMany := 1, n; fits+1 < tooMany; {
		half := fits + (tooMany-fits)/2
		if p, err := page(half); err == nil && inv.FitsOutput(p) { // an error means that the text cannot be split there
			best, fits = p, half
		} else {
			tooMany = half
		}
	}
	return best, nil
}
