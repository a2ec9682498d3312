package shell

import (
	"context"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// defaultTotal is how much the folder that commands work in may hold in all.
const defaultTotal = 10 << 30

// freshFor is how long a count of what a folder holds is relied on.
const freshFor = time.Minute

// rooms remembers how much the folders hold that commands work in, so that not each command has all files counted.
type rooms struct {
	mu   sync.Mutex
	held map[string]count
}

// count is how much a folder held, and what was taken of its disk since.
type count struct {
	bytes int64
	at    time.Time
}

// left is how much a folder may still grow. One that is full is refused.
func (r *rooms) left(ctx context.Context, root string, total int64) (int64, error) {
	r.mu.Lock()
	c, known := r.held[root]
	r.mu.Unlock()
	if !known || reeve.Since(c.at) > freshFor || c.bytes > total/2 {
		bytes, err := confine.Usage(ctx, root)
		if err != nil {
			return 0, err
		}
		c = count{bytes, reeve.Monotonic()}
		r.mu.Lock()
		if r.held == nil {
			r.held = map[string]count{}
		}
		r.held[root] = c
		r.mu.Unlock()
	}
	if c.bytes >= total {
		return 0, reeve.Errorf(reeve.TooLarge, "the folder that commands work in holds %d MiB, and may hold %d",
			c.bytes>>20, total>>20).Hintf(
			"delete what is not needed with file_delete; an operator may set shell_disk_mb higher")
	}
	return total - c.bytes, nil
}

// took notes that a command took some of a folder's disk.
func (r *rooms) took(root string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.held[root]
	c.bytes += bytes
	r.held[root] = c
}
