package memory

import (
	"context"
	"slices"
	"sync"

	"reeve/internal/store"
)

const (
	maxKeptCodes = 32 << 20 // bytes of sign bits that are kept in memory: those of 500,000 notes
	maxKeptUsers = 200
)

// codeCache keeps the sign bits of the users who searched last, because to read those of 100,000 notes takes longer
// than to compare them.
type codeCache struct {
	mu   sync.Mutex
	kept []keptCodes // the user who searched last is at the end
}

// keptCodes are the sign bits of a user at one revision.
type keptCodes struct {
	workspace, user, revision string
	blocks                    [][]byte // not to be changed
	size                      int
}

// read returns the sign bits of a user's vectors of the model, from memory if they have not changed. A cache is for one
// model.
func (c *codeCache) read(ctx context.Context, s *store.Snap, workspace, user, model string) ([][]byte, error) {
	// The revision is read first: if the vectors change meanwhile, what is kept has an old revision and is not used.
	revision, err := s.Notes().VectorRevision(ctx, workspace, user, model)
	if err != nil {
		return nil, err
	}
	if blocks, ok := c.find(workspace, user, revision); ok {
		return blocks, nil
	}
	blocks, err := s.Notes().VectorCodes(ctx, workspace, user, model)
	if err == nil {
		c.keep(keptCodes{workspace: workspace, user: user, revision: revision, blocks: blocks})
	}
	return blocks, err
}

// find returns what is kept of a user at a revision.
func (c *codeCache) find(workspace, user, revision string) ([][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.kept {
		if k.workspace == workspace && k.user == user && k.revision == revision {
			c.kept = append(slices.Delete(c.kept, i, i+1), k)
			return k.blocks, true
		}
	}
	return nil, false
}

// keep replaces what is kept of a user, and drops what was not used for the longest time. It does not keep more than
// maxKeptCodes of one user.
func (c *codeCache) keep(k keptCodes) {
	for _, b := range k.blocks {
		k.size += len(b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(old keptCodes) bool {
		return old.workspace == k.workspace && old.user == k.user
	})
	if k.size > maxKeptCodes {
		return
	}
	c.kept = append(c.kept, k)
	total, first := 0, len(c.kept)
	for first > 0 && len(c.kept)-first < maxKeptUsers && total+c.kept[first-1].size <= maxKeptCodes {
		first--
		total += c.kept[first].size
	}
	c.kept = slices.Delete(c.kept, 0, first)
}
