package agent

import (
	"container/list"
	"sync"
)

// pastTurn is an earlier turn in the form in which the model receives it.
type pastTurn struct {
	TurnSnapshot
	firstMessage string // id of its first message
	tokens       int
	isSettled    bool  // the turn cannot change any more
	isUnread     bool  // its messages are not read yet
	wordsOnly    bool  // only its text is shown
	erasures     int64 // number of notes that the workspace had forgotten when it was read
}

// maxCacheBytes is the approximate size limit of the turn cache.
const maxCacheBytes = 8 << 20

// turnCache is an LRU cache of turns that cannot change any more, so that recent turns are not read and decoded again
// for each new turn.
type turnCache struct {
	mu    sync.Mutex
	order list.List // of pastTurn
	byRun map[string]*list.Element
	bytes int
}

// get returns a turn that was read after the workspace forgot a note for the last time. erasures is the number of notes
// that it has forgotten.
func (p *turnCache) get(run string, erasures int64) (pastTurn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byRun[run]
	if !ok {
		return pastTurn{}, false
	}
	t := e.Value.(pastTurn)
	if t.erasures != erasures { // it may quote a forgotten note
		p.remove(e)
		return pastTurn{}, false
	}
	p.order.MoveToFront(e)
	return t, true
}

func (p *turnCache) remove(e *list.Element) {
	old := p.order.Remove(e).(pastTurn)
	delete(p.byRun, old.ID)
	p.bytes -= sizeOf(old)
}

// put adds a turn, unless it can still change or is large. Turns with attachments are usually large and are read again.
func (p *turnCache) put(t pastTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.byRun[t.ID]; ok || !t.isSettled || sizeOf(t) > maxCacheBytes/64 {
		return
	}
	if p.byRun == nil {
		p.byRun = map[string]*list.Element{}
	}
	p.byRun[t.ID] = p.order.PushFront(t)
	for p.bytes += sizeOf(t); p.bytes > maxCacheBytes; {
		p.remove(p.order.Back())
	}
}

// sizeOf returns the approximate size of a turn in bytes.
func sizeOf(t pastTurn) int {
	n := 512 + len(t.Input) + len(t.Output)
	for _, m := range t.Messages {
		for _, part := range m.Parts {
			n += 256 + len(part.Text) + len(part.Args) + len(part.Data) + len(part.URL) + len(part.Raw)
		}
	}
	return n
}
