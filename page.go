package reeve

// Page gives the longest page of at most n things that callers are shown all of. One thing is always given: how to go
// on from it stands before it then, as what is too long is cut at its end. A tool that gives a list or a text in pages
// makes them with it: whoever goes on from a page that was cut has never seen what was cut off. page makes one of a
// number of things.
func Page[T any](inv *Invocation, n int, page func(n int) (T, error)) (T, error) {
	best, err := page(n)
	if err != nil || n < 2 || inv.Fits == nil || inv.Fits(best) {
		return best, err
	}
	if best, err = page(1); err != nil {
		return best, err
	}
	for few, many := 1, n; few+1 < many; { // few is what there is at least, many is too long
		half := few + (many-few)/2
		if p, err := page(half); err == nil && inv.Fits(p) { // there may be no place to cut at
			best, few = p, half
		} else {
			many = half
		}
	}
	return best, nil
}
