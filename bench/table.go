package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// target is the ratio that a line must reach.
type target struct {
	ratio float64
	most  bool // ratio is an upper bound; otherwise it is a lower bound
	none  bool // the line has no target
}

func atLeast(ratio float64) target { return target{ratio: ratio} }
func atMost(ratio float64) target  { return target{ratio: ratio, most: true} }

var informational = target{none: true}

func (t target) met(ratio float64) bool {
	return t.none || (t.most && ratio <= t.ratio) || (!t.most && ratio >= t.ratio)
}

func (t target) String() string {
	switch {
	case t.none:
		return ""
	case t.most:
		return "<= " + number(t.ratio)
	default:
		return ">= " + number(t.ratio)
	}
}

// row is one line of the table: a figure and that of a peer, or a limit.
type row struct {
	name, unit, against string
	ours, peer, ratio   float64
	target              target
}

// table has the lines of the current section, and counts the targets of all sections.
type table struct {
	section  string
	rows     []row
	met, all int
}

func (t *table) startSection(section string) { t.section, t.rows = section, nil }

func (t *table) add(r row) {
	t.rows = append(t.rows, r)
	if r.target.none {
		return
	}
	t.all++
	if r.target.met(r.ratio) {
		t.met++
	}
}

// compare adds a line for two sides measured by alternate. The ratio is the median of the ratios of neighbouring
// slices.
func (t *table) compare(name, unit string, ours []float64, against string, peer []float64, want target) {
	ratios := make([]float64, len(ours))
	for i := range ratios {
		ratios[i] = ours[i] / peer[i]
	}
	t.add(row{name: name, unit: unit, against: against, ours: median(ours), peer: median(peer), ratio: median(ratios),
		target: want})
}

// limit adds a line for a figure with an upper limit.
func (t *table) limit(name, unit string, figure, limit float64) {
	t.add(row{name: name, unit: unit, against: "limit", ours: figure, peer: limit, ratio: figure / limit,
		target: atMost(1)})
}

// floor adds a line for a figure with a lower limit.
func (t *table) floor(name, unit string, figure, least float64) {
	t.add(row{name: name, unit: unit, against: "at least", ours: figure, peer: least, ratio: figure / least,
		target: atLeast(1)})
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(tw, "\n%s\tReeve\tunit\tbeside\tfigure\tratio\ttarget\t\n", t.section)
	for _, r := range t.rows {
		verdict := ""
		switch {
		case r.target.none:
		case r.target.met(r.ratio):
			verdict = "met"
		default:
			verdict = "MISSED"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", r.name, number(r.ours), r.unit, r.against, number(r.peer),
			r.ratio,
			r.target, verdict)
	}
	_ = tw.Flush()
}

func (t *table) verdict() string {
	return fmt.Sprintf("\n%d of %d targets met. Load of the last minute: %s.", t.met, t.all, load())
}

// machine describes the machine and the time of a run, because the figures are valid only for these.
func machine() string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(b), "model name"); ok {
			line, _, _ := strings.Cut(after, "\n")
			model = strings.Trim(line, "\t :")
		}
	}
	return fmt.Sprintf("%s, %d cores (%s), load of the last minute: %s",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), runtime.NumCPU(), model, load())
}

// load returns the load average of the last minute. If it exceeds the number of cores, the figures mean little.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(b))[0]
}

func number(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
