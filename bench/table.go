package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// row is one comparison. Ours and Peer are the best of all turns, with the medians beside them; Ratio is the median of the
// ratios of turns that were taken together, which is what the target is held against.
type row struct {
	Section    string  `json:"section"`
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Ours       float64 `json:"ours"`
	OursMedian float64 `json:"ours_median,omitempty"`
	OursCPU    float64 `json:"ours_cpu_us,omitempty"` // processor time for one, database server included
	Against    string  `json:"against"`
	Peer       float64 `json:"peer"`
	PeerMedian float64 `json:"peer_median,omitempty"`
	PeerCPU    float64 `json:"peer_cpu_us,omitempty"`
	Ratio      float64 `json:"ratio"`
	BestRatio  float64 `json:"best_ratio,omitempty"` // best turn against best turn
	Target     float64 `json:"target,omitempty"`     // 0 means the row only informs
	AtMost     bool    `json:"at_most,omitempty"`    // the target is a ceiling
	OK         bool    `json:"ok"`
}

type table struct {
	Started    string   `json:"started"`
	Processors int      `json:"processors"`
	Load       []string `json:"load"` // of the last minute, before the first section and after each
	Rows       []row    `json:"rows"`
}

func (t *table) add(r row) {
	r.OK = r.Target == 0 || (r.AtMost && r.Ratio <= r.Target) || (!r.AtMost && r.Ratio >= r.Target)
	t.Rows = append(t.Rows, r)
}

func (t *table) print(w io.Writer, section string) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(tw, "%s\tours (median)\tagainst\t(median)\tunit\tratio\tbest/best\ttarget\tok\tCPU µs, ours/theirs\n", section)
	for _, r := range t.Rows {
		if r.Section != section {
			continue
		}
		target, ok := "", ""
		if r.Target != 0 {
			target, ok = ">= "+number(r.Target), "yes"
			if r.AtMost {
				target = "<= " + number(r.Target)
			}
			if !r.OK {
				ok = "NO"
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%s\n", r.Name, pair(r.Ours, r.OursMedian), r.Against, pair(r.Peer, r.PeerMedian), r.Unit,
			r.Ratio, orBlank(r.BestRatio), target, ok, cpus(r))
	}
	tw.Flush()
	fmt.Fprintln(w)
}

func (t *table) verdict() string {
	met, all := 0, 0
	for _, r := range t.Rows {
		if r.Target == 0 {
			continue
		}
		all++
		if r.OK {
			met++
		}
	}
	return fmt.Sprintf("%d of %d targets met. Started %s on %d processors; load of the last minute, section by section: %s.",
		met, all, t.Started, t.Processors, strings.Join(t.Load, ", "))
}

func (t *table) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

func pair(best, median float64) string {
	if median == 0 {
		return number(best)
	}
	return number(best) + " (" + number(median) + ")"
}

func cpus(r row) string {
	if r.OursCPU == 0 {
		return ""
	}
	return number(r.OursCPU) + " / " + number(r.PeerCPU)
}

func orBlank(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}

func number(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
