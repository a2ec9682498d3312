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

// TestO01_FolderSwappedForLink swaps a folder and a link to the outside while every tool works below the folder. No
// call may read or change a file outside.
func TestO01_FolderSwappedForLink(t *testing.T) {
	fx := newFixture(t)
	outside := filepath.Join(fx.dir, "outside")
	fx.writeFile(fx.hostPath("/shared/d/secret.txt"), "inside")
	fx.symlink(outside, fx.hostPath("/shared/l"))
	var stop atomic.Bool
	var swaps atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			// d is the folder, then the link, then the folder.
			for _, step := range [][2]string{{"d", "f"}, {"l", "d"}, {"d", "l"}, {"f", "d"}} {
				from, to := fx.hostPath("/shared/"+step[0]), fx.hostPath("/shared/"+step[1])
				for err := os.Rename(from, to); err != nil; err = os.Rename(from, to) {
					if to != fx.hostPath("/shared/d") {
						t.Error(err)
						return
					}
					// A write has created the folder. Another write may create it again, so retry.
					os.RemoveAll(to)
				}
			}
			swaps.Add(1)
		}
	})
	var succeeded, refused int
	begun := reeve.Monotonic()
	for i := 0; (i < 300 || succeeded == 0 || refused == 0 || swaps.Load() < 100) &&
		reeve.Since(begun) < 20*time.Second; i++ {
		for tool, args := range everyTool("/shared/d/secret.txt") {
			out, err := fx.run(tool, fx.invocation(args))
			if err != nil {
				refused++
				continue
			}
			succeeded++
			if strings.Contains(out, secret) {
				t.Fatalf("%s: %s", tool, out)
			}
		}
		for _, c := range []struct {
			tool string
			args m
		}{{"file_list", m{"path": "/shared/d"}}, {"file_search", m{"path": "/shared", "query": secret}},
			{"file_write", m{"path": "/shared/d/new.txt", "content": "n", "overwrite": true}}} {
			out, err := fx.run(c.tool, fx.invocation(c.args))
			if err == nil && strings.Contains(out, secret) {
				t.Fatalf("%s: %s", c.tool, out)
			}
		}
		runtime.Gosched()
	}
	stop.Store(true)
	group.Wait()
	if succeeded == 0 || refused == 0 {
		t.Errorf("no race: %d calls succeeded, %d failed, %d swaps", succeeded, refused, swaps.Load())
	}
	fx.checkOutside()
}

// TestO01_SwappedForLinkInside swaps a folder and a file with links in the same root and with pipes. The calls do not
// follow the links and do not block on the pipes.
func TestO01_SwappedForLinkInside(t *testing.T) {
	for name, make := range map[string]func(fx *fixture) (swapped, read string){
		"folder for a link": func(fx *fixture) (string, string) {
			fx.writeFile(fx.hostPath("/shared/d/f.txt"), "inside")
			fx.writeFile(fx.hostPath("/shared/other/f.txt"), "elsewhere")
			fx.symlink("other", fx.hostPath("/shared/l"))
			return "d", "/shared/d/f.txt"
		},
		"file for a link": func(fx *fixture) (string, string) {
			fx.writeFile(fx.hostPath("/shared/f.txt"), "inside")
			fx.writeFile(fx.hostPath("/shared/other"), "elsewhere")
			fx.symlink("other", fx.hostPath("/shared/l"))
			return "f.txt", "/shared/f.txt"
		},
		"file for a link outside": func(fx *fixture) (string, string) {
			fx.writeFile(fx.hostPath("/shared/f.txt"), "inside")
			fx.symlink(filepath.Join(fx.dir, "outside", "secret.txt"), fx.hostPath("/shared/l"))
			return "f.txt", "/shared/f.txt"
		},
		"folder for a pipe": func(fx *fixture) (string, string) {
			fx.writeFile(fx.hostPath("/shared/d/f.txt"), "inside")
			if err := syscall.Mkfifo(fx.hostPath("/shared/l"), 0o600); err != nil {
				fx.Fatal(err)
			}
			return "d", "/shared/d/f.txt"
		},
		"file for a pipe": func(fx *fixture) (string, string) {
			fx.writeFile(fx.hostPath("/shared/f.txt"), "inside")
			if err := syscall.Mkfifo(fx.hostPath("/shared/l"), 0o600); err != nil {
				fx.Fatal(err)
			}
			return "f.txt", "/shared/f.txt"
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t)
			swapped, read := make(fx)
			var stop atomic.Bool
			var group sync.WaitGroup
			group.Go(func() {
				for !stop.Load() {
					for _, step := range [][2]string{{swapped, "x"}, {"l", swapped}, {swapped, "l"}, {"x", swapped}} {
						if err := os.Rename(fx.hostPath("/shared/"+step[0]), fx.hostPath("/shared/"+step[1])); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
			for range 5000 {
				for tool, args := range map[string]m{"file_read": {"path": read},
					"file_search": {"path": read, "query": "e"}} {
					out, err := fx.run(tool, fx.invocation(args))
					if err == nil && (strings.Contains(out, "elsewhere") || strings.Contains(out, secret)) {
						t.Fatalf("%s: %s", tool, out)
					}
				}
			}
			stop.Store(true)
			group.Wait()
			fx.checkOutside()
		})
	}
}
