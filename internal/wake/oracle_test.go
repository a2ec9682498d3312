//go:build oracles

package wake

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOracleCron runs the cases on which at least three independent libraries agree.
func TestOracleCron(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("REEVE_ORACLES")
	if dir == "" {
		t.Fatal("REEVE_ORACLES is not set; set it to the directory of the test suites")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cron", "consensus.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Expr, TZ string
		From     int64
		DST      bool
		Next     []int64
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	var zones Zones
	passed, dst := 0, 0
	for _, k := range cases {
		c, err := zones.ParseCadence(KindCron, k.Expr, k.TZ)
		if err != nil {
			t.Errorf("%q %s: %v", k.Expr, k.TZ, err)
			continue
		}
		got := c.Upcoming(time.Unix(k.From, 0), len(k.Next))
		same := len(got) == len(k.Next)
		for i := 0; same && i < len(got); i++ {
			same = got[i].Unix() == k.Next[i]
		}
		if !same {
			var want []time.Time
			for _, n := range k.Next {
				want = append(want, time.Unix(n, 0).In(c.Location()))
			}
			for i := range got {
				got[i] = got[i].In(c.Location())
			}
			t.Errorf("%q %s from %v:\n got %v\nwant %v", k.Expr, k.TZ, time.Unix(k.From, 0).In(c.Location()), got, want)
			continue
		}
		passed++
		if k.DST {
			dst++
		}
	}
	t.Logf("cron: %d of %d cases agree, %d of them near a DST change", passed, len(cases), dst)
}
