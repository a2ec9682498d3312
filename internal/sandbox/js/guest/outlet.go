//go:build ((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x))

package guest

import (
	"bufio"
	"io"
	"os"
	"sync"
	"time"
)

// unheard is how long a script may run on before the host hears what was said before.
const unheard = 5 * time.Millisecond

// outlet is what a worker says to its host. Frames are kept until the script waits, so that what belongs together arrives together: waking the host for each
// would cost as much as a short call. A script that runs on for long, or for ever, is overtaken by a timer: whatever becomes of it, the host knows where it is.
type outlet struct {
	mu     sync.Mutex
	buffer *bufio.Writer
	writes int // how often everything was written

	timer *time.Timer
	armed bool
	seen  int // writes when it was
}

func newOutlet(w io.Writer) *outlet {
	o := &outlet{buffer: bufio.NewWriter(w)}
	o.timer = time.AfterFunc(time.Hour, o.overtake)
	o.timer.Stop()
	return o
}

// send keeps a frame. A host that is gone is found when it is written.
func (o *outlet) send(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.buffer.Write(frame); err != nil {
		os.Exit(exitHost)
	}
}

// flush writes what is kept.
func (o *outlet) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write()
}

// write writes what is kept. The caller holds o.mu.
func (o *outlet) write() {
	o.writes++
	if err := o.buffer.Flush(); err != nil {
		os.Exit(exitHost)
	}
}

// soon sees to it that what is kept is written, whatever the script does from now on. The timer is left alone once it runs: to stop it and start it for each item
// would cost more than an item.
func (o *outlet) soon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.armed {
		o.arm()
	}
}

// arm starts the timer. The caller holds o.mu.
func (o *outlet) arm() {
	o.armed, o.seen = true, o.writes
	o.timer.Reset(unheard)
}

// overtake writes what has been kept for the timer's whole time.
func (o *outlet) overtake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.armed = false; {
	case o.buffer.Buffered() == 0:
	case o.seen == o.writes:
		o.write()
	default: // it came later
		o.arm()
	}
}
