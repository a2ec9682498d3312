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

// These constants determine how often the disk is checked.
const (
	maxCheckInterval = 50 * time.Millisecond
	minCheckInterval = time.Millisecond
	maxByteRate      = 4 << 30 // bytes per second that one processor can write, at most
	maxFileRate      = 500_000 // files per second that one processor can create, at most
)

// nextCheck returns the time until the next check of the disk, given the bytes and files that are left. A command
// cannot use more than half of them in that time.
func nextCheck(bytes, files int64) time.Duration {
	seconds := min(float64(bytes)/maxByteRate, float64(files)/maxFileRate) / float64(2*runtime.NumCPU())
	return min(max(time.Duration(seconds*float64(time.Second)), minCheckInterval), maxCheckInterval)
}

// fileID identifies a file.
type fileID struct {
	major, minor uint32
	ino          uint64
}

// activity is one running command.
type activity struct {
	root        string
	shared      bool            // another command ran in the same folder at the same time
	serverFiles map[fileID]bool // files that the server created at the same time
}

// activities are the running commands. They are recorded so that the files of one command can be told from files that
// other commands or the server create at the same time.
var activities struct {
	mu   sync.Mutex
	list []*activity
}

// beginActivity records that a command runs in a folder. The caller must call end.
func beginActivity(root string) *activity {
	a := &activity{root: root, serverFiles: map[fileID]bool{}}
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

// KeepServerFile records that the server itself created a file while commands run. The file is then not removed with
// the files of a command that exceeds a disk limit.
func KeepServerFile(info fs.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	id := fileID{unix.Major(s.Dev), unix.Minor(s.Dev), s.Ino}
	activities.mu.Lock()
	defer activities.mu.Unlock()
	for _, a := range activities.list {
		a.serverFiles[id] = true
	}
}

// isServerFile reports whether the server created the file during the activity.
func (a *activity) isServerFile(s *unix.Statx_t) bool {
	activities.mu.Lock()
	defer activities.mu.Unlock()
	return a.serverFiles[fileID{s.Dev_major, s.Dev_minor, s.Ino}]
}

// serverPrefix is the prefix of temporary files that the server is about to rename.
const serverPrefix = ".reeve-"

// removeNewFiles removes the files and folders that were created in the folder since the command started. It is for a
// command that exceeded a disk limit. Files that the command only changed stay. Nothing is removed if another command
// ran in the same folder, because the files cannot be told apart. It returns the number of removed files and their
// bytes.
func (a *activity) removeNewFiles(since time.Time) (files, bytes int64) {
	activities.mu.Lock()
	shared := a.shared
	activities.mu.Unlock()
	if shared {
		return 0, 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRemoveTime)
	defer cancel()
	// An error leaves files in place, which then count as usage of the folder.
	_ = walk(ctx, a.root, func(dir int, name string, s *unix.Statx_t) {
		born := time.Unix(s.Btime.Sec, int64(s.Btime.Nsec))
		if s.Mask&unix.STATX_BTIME == 0 || born.Before(since) || strings.HasPrefix(name, serverPrefix) ||
			a.isServerFile(s) {
			return
		}
		flags := 0
		if s.Mode&unix.S_IFMT == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR // fails if the folder still contains files
		}
		if unix.Unlinkat(dir, name, flags) == nil && flags == 0 {
			files, bytes = files+1, bytes+int64(s.Blocks)*512
		}
	})
	return files, bytes
}

// maxRemoveTime is how long removeNewFiles may take.
const maxRemoveTime = time.Minute

// Usage returns the bytes that a folder and its contents occupy on disk.
func Usage(ctx context.Context, root string) (bytes int64, err error) {
	linked := map[fileID]bool{} // files with more than one name are counted once
	err = walk(ctx, root, func(_ int, _ string, s *unix.Statx_t) {
		if s.Nlink > 1 && s.Mode&unix.S_IFMT != unix.S_IFDIR {
			id := fileID{s.Dev_major, s.Dev_minor, s.Ino}
			if linked[id] {
				return
			}
			linked[id] = true
		}
		bytes += int64(s.Blocks) * 512
	})
	if err != nil {
		return 0, reeve.Errorf(reeve.Unavailable, "cannot measure the size of the folder: %w", err)
	}
	return bytes, nil
}
