package store

import "context"

// Gauges are counts of waiting and running work in all workspaces.
type Gauges struct {
	Wakes             int64 // queued wakes
	Runs              int64 // running runs
	Parked            int64 // parked runs
	WaitingOperations int64 // operations that wait for a person
	OpenOperations    int64 // operations without an outcome
	PendingApprovals  int64 // pending approvals
}

// Gauges counts waiting and running work. Each count reads a small index of its own.
func (s System) Gauges(ctx context.Context) (Gauges, error) {
	g, _, err := queryOne(ctx, s.Snap, func(r scanner) (g Gauges, err error) {
		return g, r.Scan(&g.Wakes, &g.Runs, &g.Parked, &g.WaitingOperations, &g.OpenOperations, &g.PendingApprovals)
	}, `SELECT (SELECT count(*) FROM wakes WHERE state = 'queued'),
		(SELECT count(*) FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND state = 'running'),
		(SELECT count(*) FROM runs WHERE id IN (SELECT run_id FROM open_runs) AND state = 'parked'),
		(SELECT count(*) FROM calls WHERE state IN ('parked', 'unknown') AND (state = 'parked' OR resolution = '')),
		(SELECT count(*) FROM calls WHERE state IN ('prepared', 'dispatched')),
		(SELECT count(*) FROM approvals WHERE state = 'pending')`)
	return g, err
}
