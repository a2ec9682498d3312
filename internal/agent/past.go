package agent

import (
	"container/list"
	"sync"
)

// past is a turn that is over, as the model may be shown it.
type past struct {
	TurnSnapshot
	first   string // its first message
	tokens  int
	settled bool // nothing can come to it any more
	unread  bool // it is still to be read
	words   bool // it is shown by its words only
}

// mostPast bounds how many bytes of past turns are kept ready, about.
const mostPast = 8 << 20

// pasts keeps turns that are over, and to which nothing can come any more, so that a conversation's last ones need not
// be read and taken apart for each turn that follows. The least recently used go first.
type pasts struct {
	mu    sync.Mutex
	order list.List // of past
	byRun map[string]*list.Element
	bytes int
}

func (p *pasts) get(run string) (past, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byRun[run]
	if !ok {
		return past{}, false
	}
	p.order.MoveToFront(e)
	return e.Value.(past), true
}

// put keeps a turn that is settled, unless it is large: what people attach is read when it is needed.
func (p *pasts) put(t past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.byRun[t.ID]; ok || !t.settled || size(t) > mostPast/64 {
		return
	}
	if p.byRun == nil {
		p.byRun = map[string]*list.Element{}
	}
	p.byRun[t.ID] = p.order.PushFront(t)
	for p.bytes += size(t); p.bytes > mostPast; {
		last := p.order.Back()
		old := p.order.Remove(last).(past)
		delete(p.byRun, old.ID)
		p.bytes -= size(old)
	}
}

// size is about how many bytes a turn takes.
func size(t past) int {
	n := 512 + len(t.Input) + len(t.Output)
	for _, m := range t.Messages {
		for _, part := range m.Parts {
			n += 256 + len(part.Text) + len(part.Args) + len(part.Data) + len(part.URL) + len(part.Raw)
		}
	}
	return n
}
