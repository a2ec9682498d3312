//go:build amd64 || arm64

package confine

import (
	"context"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"reeve"
)

// How often the disk is looked at.
const (
	longestLook  = 50 * time.Millisecond
	shortestLook = time.Millisecond
	bytesPace    = 4 << 30 // bytes that one processor can write in a second, at the most
	filesPace    = 500_000 // files that one processor can make in a second, at the most
)

// nextLook is when to look at the disk again: before half of what is left could be taken.
func nextLook(bytes, files int64) time.Duration {
	seconds := min(float64(bytes)/bytesPace, float64(files)/filesPace) / float64(2*runtime.NumCPU())
	return min(max(time.Duration(seconds*float64(time.Second)), shortestLook), longestLook)
}

// identity tells files apart.
type identity struct {
	major, minor uint32
	ino          uint64
}

// activity is one run of a command, for as long as it lasts.
type activity struct {
	root   string
	shared bool              // another command ran in the same folder meanwhile
	spared map[identity]bool // files that others than commands made meanwhile
}

// activities are the commands that run now. What one of them leaves is told from what others do at the same time.
var activities struct {
	mu   sync.Mutex
	list []*activity
}

// begin notes that a command runs in a folder. End it.
func begin(root string) *activity {
	a := &activity{root: root, spared: map[identity]bool{}}
	activities.mu.Lock()
	defer activities.mu.Unlock()
	for _, other := range activities.list {
		if other.root == root {
			other.shared, a.shared = true, true
		}
	}
	activities.list = append(activities.list, a)
	return a
}

func (a *activity) end() {
	activities.mu.Lock()
	defer activities.mu.Unlock()
	for i, other := range activities.list {
		if other == a {
			activities.list = append(activities.list[:i], activities.list[i+1:]...)
			return
		}
	}
}

// KeepServerFile notes that the server itself made a file: it is not removed with what a command leaves that is killed.
func KeepServerFile(info fs.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	id := identity{unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino}
	activities.mu.Lock()
	defer activities.mu.Unlock()
	for _, a := range activities.list {
		a.spared[id] = true
	}
}

// spares tells whether a file is not the command's.
func (a *activity) spares(s *unix.Statx_t) bool {
	activities.mu.Lock()
	defer activities.mu.Unlock()
	return a.spared[identity{s.Dev_major, s.Dev_minor, s.Ino}]
}

// ownPrefix begins the names of files that the server is about to put in place.
const ownPrefix = ".reeve-"

// remove takes away the files and folders that a command made which was killed because it took too much: those that
// did not exist when it began. What it changed stays. Nothing is removed if another command worked in the same
// folder, since nobody can tell whose is whose. It gives the number of files, and their bytes.
func (a *activity) remove(since time.Time) (files, bytes int64) {
	activities.mu.Lock()
	shared := a.shared
	activities.mu.Unlock()
	if shared {
		return 0, 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	_ = walk(ctx, a.root, func(dir int, name string, s *unix.Statx_t) { // what it does not come to counts in the total
		born := time.Unix(s.Btime.Sec, int64(s.Btime.Nsec))
		if s.Mask&unix.STATX_BTIME == 0 || born.Before(since) || strings.HasPrefix(name, ownPrefix) || a.spares(s) {
			return
		}
		flags := 0
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR // which fails if something in it stayed
		}
		if unix.Unlinkat(dir, name, flags) == nil && flags == 0 {
			files, bytes = files+1, bytes+int64(s.Blocks)*512
		}
	})
	return files, bytes
}

// removeTime is how long removing may take.
const removeTime = time.Minute

// Usage is how many bytes of its disk a folder holds, with all that is in it.
func Usage(ctx context.Context, root string) (bytes int64, err error) {
	linked := map[identity]bool{} // files with more than one name are counted once
	err = walk(ctx, root, func(_ int, _ string, s *unix.Statx_t) {
		if s.Nlink > 1 && s.Mode&unix.S_IFMT != unix.S_IFDIR {
			id := identity{s.Dev_major, s.Dev_minor, s.Ino}
			if linked[id] {
				return
			}
			linked[id] = true
		}
		bytes += int64(s.Blocks) * 512
	})
	if err != nil {
		return 0, reeve.Errorf(reeve.Unavailable, "how much the folder holds cannot be found out: %w", err)
	}
	return bytes, nil
}
