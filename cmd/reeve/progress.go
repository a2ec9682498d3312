package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"reeve"
)

// progress shows how far an import has come: a bar on a terminal, a line now and then elsewhere.
type progress struct {
	app    *app
	total  int64 // bytes
	first  int64 // bytes that were read before this process began; -1 until known
	before int64 // mails that were
	began  time.Time
	last   time.Time
	live   bool
}

func newProgress(a *app, total, before int64) *progress {
	now := reeve.Monotonic()
	return &progress{app: a, total: total, first: -1, before: before, began: now, last: now, live: !a.json &&
		isTerminal(a.err)}
}

// isTerminal tells whether a person watches.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show tells how far it is, not too often.
func (p *progress) show(v reeve.MailImport, bytes int64) {
	pause := 5 * time.Second
	if p.live {
		pause = 200 * time.Millisecond
	}
	if p.first < 0 && p.before == 0 {
		p.first = 0
	} else if p.first < 0 {
		p.first = bytes
	}
	if reeve.Since(p.last) < pause {
		return
	}
	p.last = reeve.Monotonic()
	line := p.line(v, bytes, reeve.Since(p.began))
	if p.live {
		fmt.Fprintf(p.app.err, "\r%s\x1b[K", line)
	} else {
		p.app.note("%s", line)
	}
}

// line is the bar, the rate and the time that is left.
func (p *progress) line(v reeve.MailImport, bytes int64, took time.Duration) string {
	share := 1.0
	if p.total > 0 {
		share = min(1, float64(bytes)/float64(p.total))
	}
	const width = 30
	full := int(share * width)
	rate := float64(v.Seen-p.before) / took.Seconds()
	s := fmt.Sprintf("[%s%s] %3.0f%%  %d mails  %.0f/s", strings.Repeat("#", full), strings.Repeat("-", width-full),
		share*100, v.Seen, rate)
	if read := bytes - p.first; read > 0 && share < 1 {
		left := time.Duration(float64(took) * float64(p.total-bytes) / float64(read))
		s += "  " + left.Round(time.Second).String() + " left"
	}
	if v.Bad > 0 {
		s += fmt.Sprintf("  %d bad", v.Bad)
	}
	return s
}

// end leaves the terminal as it was.
func (p *progress) end() {
	if p.live {
		fmt.Fprint(p.app.err, "\r\x1b[K")
	}
}
