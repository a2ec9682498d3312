// Witness is the external service of the crash tests, in its own process. It counts the effects of requests by
// Idempotency-Key, and writes each count to disk before it responds. It also kills the server under test, because only
// the witness knows when a request has arrived.
//
//	POST /effects/{class}/{lane}  make one effect; class keyed ignores a repeated key, others count all
//	GET  /effects/{key}           get the count of a key: 200, or 404 if there was no effect
//	GET  /effects                 list all counts
//	PUT  /plans/{lane}            set the plans for the next requests in a lane
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
	file := flag.String("log", "witness.log", "file that stores the counts")
	settle := flag.Duration("settle", 20*time.Millisecond, "how long a GET waits for requests that arrived before it")
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
	w.settleTime = settle
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
	Repeat bool   `json:"repeat,omitempty"` // a repeated key of class keyed, without an effect
}

// count is the number of effects and repeats of one key.
type count struct {
	Key     string `json:"key"`
	Class   string `json:"class"`
	Lane    string `json:"lane"`
	Effects int    `json:"effects"`
	Repeats int    `json:"repeats"`
}

// plan says how to disturb a request. The zero value does not disturb it.
type plan struct {
	Do   string `json:"do"`            // kill, drop, hang or fail; empty for no disturbance
	When string `json:"when"`          // before, counted or answered
	PID  int    `json:"pid,omitempty"` // process to kill
	// SlowMS delays the effect, which happens even if the client is gone. It can be combined with kill and drop before,
	// or with an empty Do.
	SlowMS int `json:"slow_ms,omitempty"`
}

func (p plan) check() error {
	if p.SlowMS != 0 && (p.SlowMS < 0 || p.Do == "hang" || p.Do == "fail" || p.Do != "" && p.When != "before") {
		return fmt.Errorf("do %q with when %q cannot have slow_ms", p.Do, p.When)
	}
	switch p.Do {
	case "":
		return nil
	case "kill":
		if p.PID <= 1 {
			return fmt.Errorf("pid %d cannot be killed", p.PID)
		}
	case "drop", "hang", "fail":
	default:
		return fmt.Errorf("do is %q; it must be kill, drop, hang or fail", p.Do)
	}
	if p.When != "before" && p.When != "counted" && (p.When != "answered" || p.Do != "kill") {
		return fmt.Errorf("do %q cannot have when %q", p.Do, p.When)
	}
	return nil
}

type witness struct {
	settleTime time.Duration

	mu     sync.Mutex
	log    *os.File
	counts map[string]*count
	order  []*count
	plans  map[string][]plan
}

// open opens a log and reads its counts. It removes an incomplete last line, whose request got no response.
func open(file string) (*witness, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	w := &witness{log: f, counts: map[string]*count{}, plans: map[string][]plan{}}
	complete := int64(0)
	for dec := json.NewDecoder(f); ; complete = dec.InputOffset() {
		var e entry
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a log of the witness: %w", file, err)
		}
		w.addToCounts(e)
	}
	if err := f.Truncate(complete); err != nil {
		return nil, err
	}
	_, err = f.Seek(complete, io.SeekStart)
	return w, err
}

// addToCounts adds an entry to the counts in memory.
func (w *witness) addToCounts(e entry) *count {
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
	mux.HandleFunc("POST /effects/{class}/{lane}", w.postEffect)
	mux.HandleFunc("GET /effects/{key}", w.getEffect)
	mux.HandleFunc("GET /effects", w.listEffects)
	mux.HandleFunc("PUT /plans/{lane}", w.setPlans)
	return mux
}

// postEffect counts an effect on disk and then responds, unless the plan disturbs the request. It counts the effect
// even if the client has disconnected, because the request has arrived.
func (w *witness) postEffect(rw http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, io.LimitReader(r.Body, 1<<20)); err != nil {
		return // an incomplete request has no effect
	}
	e := entry{Key: r.Header.Get("Idempotency-Key"), Class: r.PathValue("class"), Lane: r.PathValue("lane")}
	if e.Key == "" {
		http.Error(rw, "Idempotency-Key is missing", http.StatusBadRequest)
		return
	}
	p := w.takePlan(e.Lane)
	if p.SlowMS > 0 {
		p.cutClient(rw)
		time.Sleep(time.Duration(p.SlowMS) * time.Millisecond)
	} else if p.act("before", rw, r) {
		return
	}
	if err := w.recordEffect(e); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(1) // the counts would be wrong from now on
	}
	if p.SlowMS > 0 && p.Do != "" || p.act("counted", rw, r) {
		return
	}
	// A repeat gets the same response as the first request.
	writeJSON(rw, http.StatusOK, map[string]string{"done": e.Key})
	if p.When == "answered" {
		_ = http.NewResponseController(rw).Flush() // the client may have disconnected
		p.act("answered", rw, r)
	}
}

// cutClient kills the client of a slow effect or closes its connection, as the plan says.
func (p plan) cutClient(rw http.ResponseWriter) {
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

// takePlan removes and returns the next plan of a lane.
func (w *witness) takePlan(lane string) (p plan) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.plans[lane]; len(list) > 0 {
		p, w.plans[lane] = list[0], list[1:]
	}
	return p
}

// recordEffect writes an entry to disk and adds it to the counts.
func (w *witness) recordEffect(e entry) error {
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
	w.addToCounts(e)
	return nil
}

// act executes the plan if it applies at the moment when. It returns true if the request is finished.
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
		<-r.Context().Done() // do not respond while the client dies
	case "hang":
		<-r.Context().Done()
	case "fail":
		writeJSON(rw, http.StatusInternalServerError, map[string]string{"error": "it may or may not have happened"})
		return true
	case "drop":
	}
	panic(http.ErrAbortHandler)
}

// getEffect returns the count of a key. It first waits, so that requests that arrived earlier are counted.
func (w *witness) getEffect(rw http.ResponseWriter, r *http.Request) {
	time.Sleep(w.settleTime)
	w.mu.Lock()
	c, ok := w.counts[r.PathValue("key")]
	var found count
	if ok {
		found = *c
	}
	w.mu.Unlock()
	if found.Effects == 0 {
		writeJSON(rw, http.StatusNotFound, map[string]string{"error": "no effect with this key"})
		return
	}
	writeJSON(rw, http.StatusOK, found)
}

func (w *witness) listEffects(rw http.ResponseWriter, _ *http.Request) {
	time.Sleep(w.settleTime)
	w.mu.Lock()
	all := make([]count, len(w.order))
	for i, c := range w.order {
		all[i] = *c
	}
	w.mu.Unlock()
	writeJSON(rw, http.StatusOK, all)
}

// setPlans sets the plans of a lane, one for each of its next requests.
func (w *witness) setPlans(rw http.ResponseWriter, r *http.Request) {
	var list []plan
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&list)
	for _, p := range list {
		err = errors.Join(err, p.check())
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

// writeJSON writes a JSON response.
func writeJSON(rw http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("witness: " + err.Error()) // v is one of the types above
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Content-Length", fmt.Sprint(len(b)))
	rw.WriteHeader(status)
	_, _ = rw.Write(b) // the client may have disconnected
}
