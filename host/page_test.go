package host_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The output of a run comes in pages that join to it, whatever the characters and however long a page is asked for:
// none is cut in its turn.
func TestO13_PagesOfOutputJoinWhateverTheCharacters(t *testing.T) {
	for _, most := range kit.OutputCaps {
		synctest.Test(t, func(t *testing.T) {
			b := kit.NewBubbleHost(t, host.Config{OutputCap: most})
			texts := []string{strings.Repeat("日", 12_000), strings.Repeat("\x01\x02", 5000),
				strings.Repeat("\u2028", 9000), strings.Repeat("a", 20_000), kit.RandomText(9000)}
			for i, whole := range texts {
				a := b.NewAgent(fmt.Sprint("aide", i), kit.Object{"config": kit.RehearsalConfig(whole)})
				b.AttachTools(a.Name, scheduleTools...)
				b.CallAs("ann", a.ID, "schedule_create", kit.Object{"goal": "g", "cadence_type": "interval",
					"cadence_value": "1h"})
				b.AdvanceBy(61*time.Minute, 61*time.Minute)
				run := b.ListRuns("agent=" + a.ID)[0].ID
				for _, size := range []int{200, 4000, 8000} {
					joined := ""
					for offset, left := 0, 1; left > 0; {
						page := kit.DecodeResult[struct {
							Output     string
							NextOffset int `json:"next_offset"`
							Remaining  int
						}](t, kit.MustBeWhole(t, b.CallAs("ann", a.ID, "schedule_run_output",
							kit.Object{"run_id": run, "offset": offset, "max_chars": size})))
						if page.Output == "" {
							t.Fatalf("text %d by %d: nothing at %d", i, size, offset)
						}
						joined, offset, left = joined+page.Output, page.NextOffset, page.Remaining
					}
					if joined != whole {
						t.Errorf("text %d by %d: %d bytes of %d", i, size, len(joined), len(whole))
					}
				}
			}
		})
	}
}

// A list of schedules is not cut before it says how to go on.
func TestO13_SchedulesInPages(t *testing.T) {
	for _, most := range kit.OutputCaps {
		synctest.Test(t, func(t *testing.T) {
			b := kit.NewBubbleHost(t, host.Config{OutputCap: most, SchedulesPerUser: 100})
			a := b.NewAgent("aide", nil)
			b.AttachTools("aide", scheduleTools...)
			want := map[string]bool{}
			for i := range 40 {
				size := 800
				if most > 0 {
					size = 20
				}
				if i == 7 {
					size = 8000 // alone it is too long
				}
				if res := b.CallAs("ann", a.ID, "schedule_create", kit.Object{"goal": strings.Repeat("語", size),
					"name": fmt.Sprint("n", i), "cadence_type": "interval", "cadence_value": "100h"}); res.IsError {
					t.Fatalf("%+v", res)
				}
			}
			var list api.ScheduleList
			b.Want(200, &list, "GET", "/api/schedules?limit=200", nil)
			for _, s := range list.Schedules {
				want[s.ID] = true
			}
			pages, cut := 0, 0
			for offset := 0; len(want) > 0; pages++ {
				res := b.CallAs("ann", a.ID, "schedule_search", kit.Object{"limit": 50, "offset": offset})
				var next int
				if res.Truncated { // one alone, and how to go on comes first
					if n, err := fmt.Sscanf(res.Content, `{"hint":"to read on, use offset %d"`, &next); n != 1 ||
						next != offset+1 {
						t.Fatalf("after %d: %v, %.200s", offset, err, res.Content)
					}
					if _, rest, ok := strings.Cut(res.Content, `"id":"`); ok {
						id, _, _ := strings.Cut(rest, `"`)
						delete(want, id)
					}
					offset, cut = next, cut+1
					continue
				}
				got := kit.DecodeResult[struct {
					Schedules        []reeve.Timer
					Remaining, Total int
				}](t, kit.MustBeWhole(t, res))
				for _, s := range got.Schedules {
					if !want[s.ID] {
						t.Errorf("%s is given twice", s.Name)
					}
					delete(want, s.ID)
				}
				if offset += len(got.Schedules); len(got.Schedules) == 0 || got.Total != 40 ||
					got.Remaining != 40-offset {
					t.Fatalf("after %d: %d given, %d of %d left", offset, len(got.Schedules), got.Remaining, got.Total)
				}
			}
			if cut != 1 || most == 0 && pages > 12 {
				t.Errorf("%d pages, %d cut", pages, cut)
			}
		})
	}
}

// Slices of a file join to it, however much of it is asked for at once.
func TestO01_SlicesOfAFileJoinWhateverTheCharacters(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		dir := t.TempDir()
		h := reevetest.StartWith(t, host.Config{Dir: dir, OutputCap: most})
		a := h.Agent("clerk", "file_write", "file_read", "file_list")
		for i, whole := range []string{strings.Repeat("日", 6000), strings.Repeat("\x01\x02", 2000),
			strings.Repeat("a", 20_000), kit.RandomText(5000)} {
			path := fmt.Sprintf("/shared/%d.txt", i)
			kit.MustBeWhole(t, h.Call(a.ID, "file_write", kit.Object{"path": path, "content": whole}))
			args, joined := kit.Object{"path": path}, ""
			for next := int64(1); next > 0; {
				page := kit.DecodeResult[struct {
					Text   string
					Offset int64
					Next   int64 `json:"next_offset"`
				}](t, kit.MustBeWhole(t, h.Call(a.ID, "file_read", args)))
				if page.Offset != int64(len(joined)) || page.Text == "" {
					t.Fatalf("%s: %d bytes at %d, after %d", path, len(page.Text), page.Offset, len(joined))
				}
				joined, next = joined+page.Text, page.Next
				args["offset"] = next
			}
			if joined != whole {
				t.Errorf("%s: %d bytes of %d", path, len(joined), len(whole))
			}
		}
	}
}

// A folder's entries are all listed, page by page, however little callers are shown.
func TestO01_AFolderInPages(t *testing.T) {
	t.Parallel()
	for _, most := range kit.OutputCaps {
		dir := t.TempDir()
		h := reevetest.StartWith(t, host.Config{Dir: dir, OutputCap: most})
		a := h.Agent("clerk", "file_list", "file_write")
		kit.MustBeWhole(t, h.Call(a.ID, "file_write", kit.Object{"path": "/shared/many/first", "content": "x"}))
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "many"))
		if err != nil || len(found) != 1 {
			t.Fatalf("where it is: %v %v", found, err)
		}
		want := map[string]bool{"first": true}
		for i := range 150 {
			name := fmt.Sprint(i, strings.Repeat("日", 1+rand.IntN(70)))
			want[name] = true
			if err := os.WriteFile(filepath.Join(found[0], name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for after, more := "", true; more; {
			page := kit.DecodeResult[struct {
				Entries []struct{ Name string }
				Total   int
				More    bool
			}](t, kit.MustBeWhole(t, h.Call(a.ID, "file_list", kit.Object{"path": "/shared/many", "after": after})))
			if page.Total != 151 || len(page.Entries) == 0 {
				t.Fatalf("after %q: %+v", after, page)
			}
			for _, e := range page.Entries {
				if !want[e.Name] {
					t.Errorf("%s is given twice", e.Name)
				}
				delete(want, e.Name)
				after = e.Name
			}
			more = page.More
		}
		if len(want) > 0 {
			t.Errorf("%d are not listed", len(want))
		}
	}
}
