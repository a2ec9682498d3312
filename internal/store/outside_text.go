package store

import (
	"context"
	"maps"
	"slices"

	"reeve"
)

// HasOutsideText reports whether one of the runs, or a run on whose behalf it works, has a result with text from
// outside, or was shown such text in a request to the model. What these runs write may repeat the text.
func (s Ledger) HasOutsideText(ctx context.Context, workspace string, runs ...string) (bool, error) {
	callers, err := queryIn(ctx, s.Snap, scanAncestors,
		`SELECT id, ancestors FROM runs WHERE id IN (?) AND workspace_id = $1 AND ancestors <> ''`, runs, workspace)
	if err != nil {
		return false, err
	}
	all := map[string]bool{}
	for _, id := range runs {
		all[id] = true
	}
	for _, list := range callers {
		for _, a := range list {
			all[a.RunID] = true
		}
	}
	delete(all, "")
	ids := slices.Sorted(maps.Keys(all))
	for _, query := range []string{
		`SELECT run_id FROM calls WHERE run_id IN (?) AND workspace_id = $1
			AND result_info LIKE '%"untrusted":true%' LIMIT 1`,
		`SELECT run_id FROM model_requests WHERE run_id IN (?) AND workspace_id = $1 AND untrusted = 1 LIMIT 1`,
	} {
		found, err := queryIn(ctx, s.Snap, scanValue[string], query, ids, workspace)
		if err != nil || len(found) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func scanAncestors(r scanner) (list []reeve.Ancestor, err error) {
	var run, ancestors string
	defer wrapCorrupt("runs", &run, &err)
	if err = r.Scan(&run, &ancestors); err != nil {
		return nil, err
	}
	return list, decodeJSON("ancestors", ancestors, &list)
}
