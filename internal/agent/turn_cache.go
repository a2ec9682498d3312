package agent

import (
	"container/list"
	"sync"
)

// pastTurn is a turn that is over, as the model may be shown it.
type pastTurn struct {
	TurnSnapshot
	firstMessage   string // its first message
	tokens  int
	isSettled bool // nothing can come to it any more
	isUnread  bool // it is still to be read
	wordsOnly   bool // it is shown by its words only
}

// maxCacheBytes bounds how many bytes of past turns are kept ready, about.
const maxCacheBytes = 8 << 20

// turnCache keeps turns that are over, and to which nothing can come any more, so that a conversation's last ones need not
// be read and taken apart for each turn that follows. The least recently used go first.
type turnCache struct {
	mu    sync.Mutex
	order list.List // of past
	byRun map[string]*list.Element
	bytes int
}

func (p *turnCache) get(run string) (pastTurn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byRun[run]
	if !ok {
		return pastTurn{}, false
	}
	p.order.MoveToFront(e)
	return e.Value.(pastTurn), true
}

// put keeps a turn that is settled, unless it is large: what people attach is read when it is needed.
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
		last := p.order.Back()
		old := p.order.Remove(last).(pastTurn)
		delete(p.byRun, old.ID)
		p.bytes -= sizeOf(old)
	}
}

// sizeOf is about how many bytes a turn takes.
func sizeOf(t pastTurn) int {
	n := 512 + len(t.Input) + len(t.Output)
	for _, m := range t.Messages {
		for _, part := range m.Parts {
			n += 256 + len(part.Text) + len(part.Args) + len(part.Data) + len(part.URL) + len(part.Raw)
		}
	}
	return n
}
