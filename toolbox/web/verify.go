package web

import (
	"context"
	"slices"

	"reeve"
)

// lookup is a [Lookup] made ready.
type lookup struct {
	request
	applied    []int
	notApplied []int
}

// verify asks the far side what became of an earlier attempt. An answer in neither list, or none at all, cannot tell;
// an error says why.
func (l *lookup) verify(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	a, err := l.send(ctx, inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	switch {
	case slices.Contains(l.applied, a.status):
		return reeve.Applied, l.found(a), nil
	case slices.Contains(l.notApplied, a.status):
		return reeve.NotApplied, nil, nil
	}
	return reeve.CannotTell, nil, nil
}

// found makes the result to record. The status alone is the proof, so a result that is not where it should be only
// leaves the answer as it came.
func (l *lookup) found(a *answer) any {
	if len(l.result) > 0 && l.method == "GET" {
		if v, why := l.picked(a); why == "" {
			return v
		}
	}
	return a.value()
}
