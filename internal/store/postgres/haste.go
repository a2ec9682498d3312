package postgres

import (
	"sync"
	"time"
)

// haste is how long the server may take to answer, and who waits for it.
type haste struct {
	mu    sync.Mutex
	most  time.Duration
	under map[*conn]bool
}

func (h *haste) patience() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

// enter notes that somebody waits, and says how long they may.
func (h *haste) enter(t *conn) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under[t] = true
	return h.most
}

func (h *haste) leave(t *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.under, t)
}

// Hasten has the server's answers waited for no longer than this, those that somebody waits for already too.
func (e *Engine) Hasten(most time.Duration) {
	h := &e.haste
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.most = min(h.most, most); h.most < most {
		return
	}
	for t := range h.under {
		_ = t.hurry(most) // of one that is closed, nobody minds
	}
}
