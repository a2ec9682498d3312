package store

import "context"

// Gauges is how much waits or is under way, over all workspaces.
type Gauges struct {
	Wakes    int64 // queued
	Runs     int64 // running
	Parked   int64 // runs that wait
	Waiting  int64 // operations that wait for a person
	Open     int64 // operations whose outcome is to come
	Approval int64 // approvals that nobody has answered
}

// Gauges counts what waits. Each count reads an index of its own that holds nothing else.
func (s System) Gauges(ctx context.Context) (Gauges, error) {
	g, _, err := one(ctx, s.Snap, func(r scanner) (g Gauges, err error) {
		return g, r.Scan(&g.Wakes, &g.Runs, &g.Parked, &g.Waiting, &g.Open, &g.Approval)
	}, `SELECT (SELECT count(*) FROM wakes WHERE state = 'queued'),
		(SELECT count(*) FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND state = 'running'),
		(SELECT count(*) FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND state = 'parked'),
		(SELECT count(*) FROM calls WHERE state IN ('parked', 'unknown') AND (state = 'parked' OR resolution = '')),
		(SELECT count(*) FROM calls WHERE state IN ('prepared', 'dispatched')),
		(SELECT count(*) FROM approvals WHERE state = 'pending')`)
	return g, err
}
