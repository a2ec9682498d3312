package web

import (
	"context"
	"slices"

	"reeve"
)

// lookup is a [Lookup] after all checks. It is ready to send.
type lookup struct {
	request
	applied    []int
	notApplied []int
}

// verify asks the endpoint whether an earlier attempt had its effect. A status in neither list, or no response, is
// CannotTell; the error says why there was no response.
func (l *lookup) verify(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	a, err := l.send(ctx, inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	switch {
	case slices.Contains(l.applied, a.status):
		return reeve.Applied, l.appliedResult(a), nil
	case slices.Contains(l.notApplied, a.status):
		return reeve.NotApplied, nil, nil
	}
	return reeve.CannotTell, nil, nil
}

// appliedResult returns the result to record. The status alone is the proof, so if the result pointer leads nowhere,
// the whole response is the result.
func (l *lookup) appliedResult(a *response) any {
	if len(l.result) > 0 && l.method == "GET" {
		if v, why := l.pickResult(a); why == "" {
			return v
		}
	}
	return a.wholeResult()
}
