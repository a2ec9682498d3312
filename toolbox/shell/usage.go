package shell

import (
	"context"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// defaultMaxFolder is the default maximum size of a working folder.
const defaultMaxFolder = 10 << 30

// usageMaxAge is how long a measured folder size is used before the folder is measured again.
const usageMaxAge = time.Minute

// usageCache caches the sizes of working folders, so that not every command has to measure its folder.
type usageCache struct {
	mu      sync.Mutex
	folders map[string]folderUsage
}

// folderUsage is the measured size of a folder plus the disk space that commands took since.
type folderUsage struct {
	bytes int64
	at    time.Time
}

// remaining returns how many bytes a folder may still grow. It fails if the folder is full.
func (r *usageCache) remaining(ctx context.Context, root string, total int64) (int64, error) {
	r.mu.Lock()
	c, known := r.folders[root]
	r.mu.Unlock()
	if !known || reeve.Since(c.at) > usageMaxAge || c.bytes > total/2 {
		bytes, err := confine.Usage(ctx, root)
		if err != nil {
			return 0, err
		}
		c = folderUsage{bytes, reeve.Monotonic()}
		r.mu.Lock()
		if r.folders == nil {
			r.folders = map[string]folderUsage{}
		}
		r.folders[root] = c
		r.mu.Unlock()
	}
	if c.bytes >= total {
		return 0, reeve.Errorf(reeve.TooLarge, "the working folder has %d MiB; the limit is %d MiB",
			c.bytes>>20, total>>20).Hintf(
			"delete files with file_delete, or ask an operator to raise shell_disk_mb")
	}
	return total - c.bytes, nil
}

// add records that a command took disk space in a folder.
func (r *usageCache) add(root string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.folders[root]
	c.bytes += bytes
	r.folders[root] = c
}
