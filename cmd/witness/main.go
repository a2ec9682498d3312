// Witness is the far side in crash tests: a process of its own that counts the effects asked of it, by Idempotency-Key,
// and keeps the count on disk before it answers. It also does the killing, since nobody else knows when a request has
// arrived.
//
//	POST /effects/{class}/{lane}  one effect; class keyed honours the key, every other class counts each arrival
//	GET  /effects/{key}           what was counted for a key: 200, or 404 when there was no effect
//	GET  /effects                 everything
//	PUT  /plans/{lane}            what to do at the next arrivals in a lane
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	file := flag.String("log", "witness.log", "file that keeps the count")
	settle := flag.Duration("settle", 20*time.Millisecond,
		"how long a look-up waits for requests that arrived before it")
	flag.Parse()
	if err := run(*listen, *file, *settle); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1)
	}
}

func run(listen, file string, settle time.Duration) error {
	w, err := open(file)
	if err != nil {
		return err
	}
	w.settle = settle
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("the witness is ready at http://%s\n", l.Addr())
	srv := &http.Server{Handler: w.routes(), ReadHeaderTimeout: 10 * time.Second}
	return srv.Serve(l)
}

// entry is one line of the log.
type entry struct {
	Key    string `json:"key"`
	Class  string `json:"class"`
	Lane   string `json:"lane"`
	Repeat bool   `json:"repeat,omitempty"` // the key was known and honoured: no effect
}

// count is what happened for one key.
type count struct {
	Key     string `json:"key"`
	Class   string `json:"class"`
	Lane    string `json:"lane"`
	Effects int    `json:"effects"`
	Repeats int    `json:"repeats"`
}

// plan is what to do when a request arrives. The zero value lets it be.
type plan struct {
	Do   string `json:"do"`            // kill, drop, hang or fail; empty for nothing
	When string `json:"when"`          // before the effect is counted, when it is counted, or when it is answered
	PID  int    `json:"pid,omitempty"` // of the process to kill
	// SlowMS has the effect counted so much later, though nobody waits for it any more. It goes with kill, drop and
	// nothing, before.
	SlowMS int `json:"slow_ms,omitempty"`
}

func (p plan) valid() error {
	if p.SlowMS != 0 && (p.SlowMS < 0 || p.Do == "hang" || p.Do == "fail" || p.Do != "" && p.When != "before") {
		return fmt.Errorf("%s when %q cannot be slow", p.Do, p.When)
	}
	switch p.Do {
	case "":
		return nil
	case "kill":
		if p.PID <= 1 {
			return fmt.Errorf("%d is not a process to kill", p.PID)
		}
	case "drop", "hang", "fail":
	default:
		return fmt.Errorf("do is %q; it must be kill, drop, hang or fail", p.Do)
	}
	if p.When != "before" && p.When != "counted" && (p.When != "answered" || p.Do != "kill") {
		return fmt.Errorf("%s when %q is not known", p.Do, p.When)
	}
	return nil
}

type witness struct {
	settle time.Duration

	mu     sync.Mutex
	log    *os.File
	counts map[string]*count
	order  []*count
	plans  map[string][]plan
}

// open reads what was counted before. A line that is not whole was never answered for, and goes.
func open(file string) (*witness, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	w := &witness{log: f, counts: map[string]*count{}, plans: map[string][]plan{}}
	whole := int64(0)
	for dec := json.NewDecoder(f); ; whole = dec.InputOffset() {
		var e entry
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a witness's log: %w", file, err)
		}
		w.note(e)
	}
	if err := f.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = f.Seek(whole, io.SeekStart)
	return w, err
}

// note adds an entry to the counts.
func (w *witness) note(e entry) *count {
	c, ok := w.counts[e.Key]
	if !ok {
		c = &count{Key: e.Key, Class: e.Class, Lane: e.Lane}
		w.counts[e.Key] = c
		w.order = append(w.order, c)
	}
	if e.Repeat {
		c.Repeats++
	} else {
		c.Effects++
	}
	return c
}

func (w *witness) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /effects/{class}/{lane}", w.effect)
	mux.HandleFunc("GET /effects/{key}", w.look)
	mux.HandleFunc("GET /effects", w.list)
	mux.HandleFunc("PUT /plans/{lane}", w.intend)
	return mux
}

// effect counts one, on disk, and then answers; unless a plan says otherwise. A client that has gone away changes
// nothing: the request has arrived.
func (w *witness) effect(rw http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)); err != nil {
		return // half a request is none
	}
	e := entry{Key: r.Header.Get("Idempotency-Key"), Class: r.PathValue("class"), Lane: r.PathValue("lane")}
	if e.Key == "" {
		http.Error(rw, "no Idempotency-Key", http.StatusBadRequest)
		return
	}
	p := w.next(e.Lane)
	if p.SlowMS > 0 {
		p.leave(rw)
		time.Sleep(time.Duration(p.SlowMS) * time.Millisecond)
	} else if p.act("before", rw, r) {
		return
	}
	if err := w.count(e); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1) // a witness that cannot count must not testify
	}
	if p.SlowMS > 0 && p.Do != "" || p.act("counted", rw, r) {
		return
	}
	// A repeat gets the answer that the first one got: it says nothing of the count.
	answer(rw, http.StatusOK, map[string]string{"done": e.Key})
	if p.When == "answered" {
		_ = http.NewResponseController(rw).Flush() // the client may have died of something else
		p.act("answered", rw, r)
	}
}

// leave has the client of a slow effect die or lose its connection, as the plan says.
func (p plan) leave(rw http.ResponseWriter) {
	switch p.Do {
	case "kill":
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			fmt.Fprintf(os.Stderr, "witness: cannot kill %d: %v\n", p.PID, err)
		}
	case "drop":
		if c, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			_ = c.Close()
		}
	}
}

// next takes the lane's next plan.
func (w *witness) next(lane string) (p plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.plans[lane]; len(list) > 0 {
		p, w.plans[lane] = list[0], list[1:]
	}
	return p
}

// count makes an entry durable.
func (w *witness) count(e entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, known := w.counts[e.Key]
	e.Repeat = e.Class == "keyed" && known && c.Effects > 0
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := w.log.Write(append(b, '\n')); err != nil {
		return err
	}
	if err := w.log.Sync(); err != nil {
		return err
	}
	w.note(e)
	return nil
}

// act does what the plan says, if its moment has come. True means that the request is over.
func (p plan) act(when string, rw http.ResponseWriter, r *http.Request) bool {
	if p.Do == "" || p.When != when {
		return false
	}
	switch p.Do {
	case "kill":
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			fmt.Fprintf(os.Stderr, "witness: cannot kill %d: %v\n", p.PID, err)
		}
		if when == "answered" {
			return true
		}
		<-r.Context().Done() // it gets no answer while it dies
	case "hang":
		<-r.Context().Done()
	case "fail":
		answer(rw, http.StatusInternalServerError, map[string]string{"error": "it may or may not have happened"})
		return true
	case "drop":
	}
	panic(http.ErrAbortHandler)
}

// look says what was counted for a key. A request that arrived earlier may still be on its way to the count; the wait
// lets it get there, as the far side's own order of things would.
func (w *witness) look(rw http.ResponseWriter, r *http.Request) {
	time.Sleep(w.settle)
	w.mu.Lock()
	c, ok := w.counts[r.PathValue("key")]
	var shown count
	if ok {
		shown = *c
	}
	w.mu.Unlock()
	if shown.Effects == 0 {
		answer(rw, http.StatusNotFound, map[string]string{"error": "nothing happened under this key"})
		return
	}
	answer(rw, http.StatusOK, shown)
}

func (w *witness) list(rw http.ResponseWriter, _ *http.Request) {
	time.Sleep(w.settle)
	w.mu.Lock()
	all := make([]count, len(w.order))
	for i, c := range w.order {
		all[i] = *c
	}
	w.mu.Unlock()
	answer(rw, http.StatusOK, all)
}

// intend sets a lane's plans, one for each arrival to come.
func (w *witness) intend(rw http.ResponseWriter, r *http.Request) {
	var list []plan
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&list)
	for _, p := range list {
		err = errors.Join(err, p.valid())
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	w.plans[r.PathValue("lane")] = list
	w.mu.Unlock()
	rw.WriteHeader(http.StatusNoContent)
}

func answer(rw http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("witness: " + err.Error()) // our own types marshal
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Content-Length", fmt.Sprint(len(b)))
	rw.WriteHeader(status)
	_, _ = rw.Write(b) // the client may have gone
}
