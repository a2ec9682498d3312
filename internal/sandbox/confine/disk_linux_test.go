package confine_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve/internal/sandbox/confine"
)

// held returns the bytes that a folder occupies on disk.
func held(t *testing.T, dir string) int64 {
	t.Helper()
	n, err := confine.Usage(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// takers are commands that use much more disk space than allowed, at once or quickly.
var takers = map[string]string{
	"reserve": `for i in $(seq 40); do fallocate -l 200M old$i || fallocate -x -l 200M old$i; done; sleep 60`,
	"reserve in python": `python3 -c 'import os
for i in range(1, 41):
  f = os.open("old%d" % i, os.O_RDWR)
  try: os.posix_fallocate(f, 0, 200 << 20)
  except OSError: pass'; sleep 60`,
	"old call": `python3 -c 'import fcntl, os, struct
for i in range(1, 41):
  f = os.open("old%d" % i, os.O_RDWR)
  for nr in (0x40305828, 0x4030582a, 0x40305839):
    try: fcntl.ioctl(f, nr, struct.pack("hhxxxxqqiI4i", 0, 0, 0, 200 << 20, 0, 0, 0, 0, 0, 0))
    except OSError: pass'; head -c 200M /dev/zero > old1; sleep 60`,
	"side by side": `for i in $(seq 40); do head -c 200M /dev/zero > old$i & done; wait; sleep 60`,
	"by memory": `python3 -c 'import mmap, os
for i in range(1, 41):
  f = os.open("old%d" % i, os.O_RDWR)
  os.ftruncate(f, 200 << 20)
  m = mmap.mmap(f, 200 << 20)
  for at in range(0, 200 << 20, 4096): m[at] = 1'; sleep 60`,
}

// TestO06_DiskLimit runs commands that write 8 GB with a limit of 64 MB. They are killed soon after they exceed the
// limit.
func TestO06_DiskLimit(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		for name, line := range takers {
			for i := range 40 { // what was there before is not removed, so that it can be measured
				b.fill("old"+itoa(i+1), "")
			}
			r := b.sh(line, confine.Limits{Disk: 64 << 20, Time: time.Minute})
			if got := held(t, b.root); !r.DiskFull || got > 512<<20 {
				t.Errorf("%s: disk full %v, and %d MB are taken; exit %d %s", name, r.DiskFull, got>>20, r.ExitCode,
					r.Stderr)
			}
			for i := range 40 {
				_ = os.Remove(filepath.Join(b.root, "old"+itoa(i+1)))
			}
		}
		b.works()
	})
}

// fill writes a file in the workspace that the command may change.
func (b *box) fill(name, text string) {
	b.t.Helper()
	p := filepath.Join(b.root, name)
	if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
		b.t.Fatal(err)
	}
}

// TestO06_NewFilesOfAKilledCommandAreRemoved runs a command that hides files in its workspace and exceeds the disk
// limit. Its files are removed. Files that existed before, and files that the server created at the same time, stay.
func TestO06_NewFilesOfAKilledCommandAreRemoved(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.fill("mine", "as before")
		b.fill("moved", "as before")
		var group sync.WaitGroup
		group.Go(func() { // as a file tool does while the command runs
			for t.Context().Err() == nil {
				if _, err := os.Stat(filepath.Join(b.root, "begun")); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			b.fill("served", "by a tool")
			info, err := os.Stat(filepath.Join(b.root, "served"))
			if err != nil {
				t.Error(err)
				return
			}
			confine.KeepServerFile(info)
			b.fill("go", "")
			if info, err = os.Stat(filepath.Join(b.root, "go")); err == nil {
				confine.KeepServerFile(info)
			}
		})
		r := b.sh(`echo more >> mine; mkdir -p a/b; mv moved a/b; touch begun; while ! test -e go; do sleep 0.01; done
			p=.; for i in $(seq 300); do p=$p/d; done; mkdir -p $p; head -c 9000000 /dev/zero > $p/deep
			echo x > a/new; ln -s mine link
			mkdir shut; head -c 9000000 /dev/zero > shut/f; chmod 0 shut || true
			i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done`,
			confine.Limits{Disk: 64 << 20, Time: time.Minute})
		group.Wait()
		if !r.DiskFull || r.Removed < 5 || r.RemovedBytes < 10_000_000 {
			t.Errorf("%+v", r)
		}
		var left []string
		if err := filepath.Walk(b.root, func(p string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				left = append(left, strings.TrimPrefix(p, b.root))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(left, " "); got != "/a/b/moved /go /mine /served" {
			t.Errorf("left is %.300s", got)
		}
		if text, err := os.ReadFile(filepath.Join(b.root, "mine")); err != nil || string(text) != "as before"+"more\n" {
			t.Errorf("%q %v", text, err)
		}
	})
}

// TestO06_UsageCountsAll measures files in deep folders, in a folder without permissions, and with two names.
func TestO06_UsageCountsAll(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		r := b.sh(`p=.; for i in $(seq 1500); do mkdir -p d; cd d; done; head -c 5000000 /dev/zero > deep; cd $HOME
			mkdir shut; head -c 5000000 /dev/zero > shut/f; head -c 5000000 /dev/zero > one; ln one two
			chmod 0 shut || true; truncate -s 200M sparse`, confine.Limits{})
		if got := held(t, b.root); got < 15_000_000 || got > 30_000_000 {
			t.Errorf("%d bytes: %+v", got, r)
		}
		if err := os.RemoveAll(filepath.Join(b.root, "shut")); err != nil {
			t.Error(err)
		}
	})
}
