package files

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reeve"
)

// TestO01_FolderSwappedForLink swaps a folder for a link to the outside, back and forth, while every tool works below
// it. Whatever a call says, it must not have seen or touched the outside.
func TestO01_FolderSwappedForLink(t *testing.T) {
	w := newWorld(t)
	outside := filepath.Join(w.top, "outside")
	w.put(w.host("/shared/d/secret.txt"), "inside")
	w.link(outside, w.host("/shared/l"))
	var stop atomic.Bool
	var swaps atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			// d is the folder, then the link, then the folder.
			for _, step := range [][2]string{{"d", "f"}, {"l", "d"}, {"d", "l"}, {"f", "d"}} {
				from, to := w.host("/shared/"+step[0]), w.host("/shared/"+step[1])
				for err := os.Rename(from, to); err != nil; err = os.Rename(from, to) {
					if to != w.host("/shared/d") {
						t.Error(err)
						return
					}
					// a write made the folder anew; another may do so while it is removed, so try until it works
					os.RemoveAll(to)
				}
			}
			swaps.Add(1)
		}
	})
	var went, refused int
	begun := reeve.Monotonic()
	for i := 0; (i < 300 || went == 0 || refused == 0 || swaps.Load() < 100) &&
		reeve.Since(begun) < 20*time.Second; i++ {
		for tool, args := range everyTool("/shared/d/secret.txt") {
			out, err := w.run(tool, w.invocation(args))
			if err != nil {
				refused++
				continue
			}
			went++
			if strings.Contains(out, secret) {
				t.Fatalf("%s: %s", tool, out)
			}
		}
		for _, c := range []struct {
			tool string
			args m
		}{{"file_list", m{"path": "/shared/d"}}, {"file_search", m{"path": "/shared", "query": secret}},
			{"file_write", m{"path": "/shared/d/new.txt", "content": "n", "overwrite": true}}} {
			out, err := w.run(c.tool, w.invocation(c.args))
			if err == nil && strings.Contains(out, secret) {
				t.Fatalf("%s: %s", c.tool, out)
			}
		}
		runtime.Gosched()
	}
	stop.Store(true)
	group.Wait()
	if went == 0 || refused == 0 {
		t.Errorf("the race was not run: %d went, %d refused, %d swaps", went, refused, swaps.Load())
	}
	w.outsideIntact()
}

// TestO01_SwappedForLinkInside swaps a folder and a file for links to others in the same root, and a folder for a pipe:
// the calls follow neither and wait for nobody.
func TestO01_SwappedForLinkInside(t *testing.T) {
	for name, make := range map[string]func(w *world) (swapped, read string){
		"folder for a link": func(w *world) (string, string) {
			w.put(w.host("/shared/d/f.txt"), "inside")
			w.put(w.host("/shared/other/f.txt"), "elsewhere")
			w.link("other", w.host("/shared/l"))
			return "d", "/shared/d/f.txt"
		},
		"file for a link": func(w *world) (string, string) {
			w.put(w.host("/shared/f.txt"), "inside")
			w.put(w.host("/shared/other"), "elsewhere")
			w.link("other", w.host("/shared/l"))
			return "f.txt", "/shared/f.txt"
		},
		"file for a link outside": func(w *world) (string, string) {
			w.put(w.host("/shared/f.txt"), "inside")
			w.link(filepath.Join(w.top, "outside", "secret.txt"), w.host("/shared/l"))
			return "f.txt", "/shared/f.txt"
		},
		"folder for a pipe": func(w *world) (string, string) {
			w.put(w.host("/shared/d/f.txt"), "inside")
			if err := syscall.Mkfifo(w.host("/shared/l"), 0o600); err != nil {
				w.Fatal(err)
			}
			return "d", "/shared/d/f.txt"
		},
		"file for a pipe": func(w *world) (string, string) {
			w.put(w.host("/shared/f.txt"), "inside")
			if err := syscall.Mkfifo(w.host("/shared/l"), 0o600); err != nil {
				w.Fatal(err)
			}
			return "f.txt", "/shared/f.txt"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			swapped, read := make(w)
			var stop atomic.Bool
			var group sync.WaitGroup
			group.Go(func() {
				for !stop.Load() {
					for _, step := range [][2]string{{swapped, "x"}, {"l", swapped}, {swapped, "l"}, {"x", swapped}} {
						if err := os.Rename(w.host("/shared/"+step[0]), w.host("/shared/"+step[1])); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			for range 5000 {
				for tool, args := range map[string]m{"file_read": {"path": read},
					"file_search": {"path": read, "query": "e"}} {
					out, err := w.run(tool, w.invocation(args))
					if err == nil && (strings.Contains(out, "elsewhere") || strings.Contains(out, secret)) {
						t.Fatalf("%s: %s", tool, out)
					}
				}
			}
			stop.Store(true)
			group.Wait()
			w.outsideIntact()
		})
	}
}
