package gate

import (
	"context"
	"slices"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// ancestryCache caches which agents led to which run. The ancestry of a run never changes, so entries are never stale.
type ancestryCache struct {
	mu    sync.RWMutex
	byRun map[string]ancestry // keyed by workspace and run id
}

// ancestry holds the fields of a run that the gate needs.
type ancestry struct {
	agent      string
	thread     string
	ancestors  []reeve.Ancestor
	delegators []reeve.Delegator
}

func ancestryOf(r reeve.Run) ancestry {
	return ancestry{r.AgentID, r.ThreadID, r.Ancestors, r.OnBehalfOf}
}

// principalRef names a principal whose view is not loaded yet.
type principalRef struct {
	reeve.Ancestor
	rights    *reeve.Rights // its rights when it delegated; nil if only its present rights count
	isCreator bool
}

// principalRefs lists the principals of a call in the run: first the ancestors, then the delegators of the run and the
// given ones.
func (a ancestry) principalRefs(more []reeve.Delegator) []principalRef {
	var list []principalRef
	for _, anc := range a.ancestors {
		list = append(list, principalRef{Ancestor: anc})
	}
	for _, d := range slices.Concat(a.delegators, more) {
		list = append(list, principalRef{reeve.Ancestor{AgentID: d.AgentID, Tools: d.Tools}, d.Rights, true})
	}
	return list
}

// get returns the ancestry of a run. It is empty if the run does not exist.
func (c *ancestryCache) get(ctx context.Context, db *store.DB, workspace, run string) (ancestry, error) {
	key := workspace + "\x00" + run
	c.mu.RLock()
	found, ok := c.byRun[key]
	c.mu.RUnlock()
	if ok {
		return found, nil
	}
	err := db.View(ctx, func(s *store.Snap) error {
		r, err := s.Runs().GetRun(ctx, workspace, run)
		found = ancestryOf(r)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		return ancestry{}, nil
	}
	if err != nil {
		return ancestry{}, err
	}
	c.put(key, found)
	return found, nil
}

func (c *ancestryCache) put(key string, found ancestry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byRun == nil || len(c.byRun) >= maxViews {
		c.byRun = map[string]ancestry{}
	}
	c.byRun[key] = found
}

// CacheAncestry adds the ancestry of a loaded run to the cache, so that the gate need not read the run again.
func (g *Gate) CacheAncestry(run reeve.Run) {
	g.ancestry.put(run.WorkspaceID+"\x00"+run.ID, ancestryOf(run))
}
