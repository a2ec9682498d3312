package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"reeve"
)

// progress shows the progress of an import: a bar on a terminal, elsewhere a line every few seconds.
type progress struct {
	app        *app
	total      int64 // bytes
	startBytes int64 // bytes imported before this process started; -1 until known
	startMails int64 // mails imported before this process started
	began      time.Time
	last       time.Time
	live       bool
}

func newProgress(a *app, total, before int64) *progress {
	now := reeve.Monotonic()
	return &progress{app: a, total: total, startBytes: -1, startMails: before, began: now, last: now, live: !a.json &&
		isTerminal(a.err)}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// update shows the progress, unless it was shown a short time ago.
func (p *progress) update(v reeve.MailImport, bytes int64) {
	pause := 5 * time.Second
	if p.live {
		pause = 200 * time.Millisecond
	}
	if p.startBytes < 0 && p.startMails == 0 {
		p.startBytes = 0
	} else if p.startBytes < 0 {
		p.startBytes = bytes
	}
	if reeve.Since(p.last) < pause {
		return
	}
	p.last = reeve.Monotonic()
	line := p.format(v, bytes, reeve.Since(p.began))
	if p.live {
		fmt.Fprintf(p.app.err, "\r%s\x1b[K", line)
	} else {
		p.app.notef("%s", line)
	}
}

// format returns a line with the bar, the rate and the remaining time.
func (p *progress) format(v reeve.MailImport, bytes int64, took time.Duration) string {
	share := 1.0
	if p.total > 0 {
		share = min(1, float64(bytes)/float64(p.total))
	}
	const width = 30
	full := int(share * width)
	rate := float64(v.Seen-p.startMails) / took.Seconds()
	s := fmt.Sprintf("[%s%s] %3.0f%%  %d mails  %.0f/s", strings.Repeat("#", full), strings.Repeat("-", width-full),
		share*100, v.Seen, rate)
	if read := bytes - p.startBytes; read > 0 && share < 1 {
		left := time.Duration(float64(took) * float64(p.total-bytes) / float64(read))
		s += "  " + left.Round(time.Second).String() + " left"
	}
	if v.Unreadable > 0 {
		s += fmt.Sprintf("  %d bad", v.Unreadable)
	}
	return s
}

// clear removes the bar from the terminal.
func (p *progress) clear() {
	if p.live {
		fmt.Fprint(p.app.err, "\r\x1b[K")
	}
}
