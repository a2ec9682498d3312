package guest

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/lock"
	"reeve/internal/sandbox/py/report"
)

//go:embed *.go
var files embed.FS

// How a worker ends that does not get as far as saying so.
const (
	exitUsage = 80 + iota // it was not started by a host
	exitStart             // the interpreter did not start; standard error says why
	exitHost              // the host is gone or does not keep to the protocol
	exitLock              // the process could not be locked down
	exitLate              // the host should have ended this process long ago
)

// lateness is how long after a run's last moment a worker still waits to be killed by its host.
const lateness = 5 * time.Second

// Serve is the whole life of a worker process: get ready, lock itself in, and run code until the host has no more. Its
// arguments are the folder of the frozen interpreter, its checksum, and the most memory that a run will ask for. It
// writes nothing there.
func Serve(in io.Reader, out io.Writer, args []string) {
	lock.WatchHost(func() { os.Exit(exitHost) })
	if len(args) == 4 && args[0] == report.Translate {
		translate(out, args[1], args[2], args[3])
	}
	if len(args) != 3 {
		os.Exit(exitUsage)
	}
	most, err := strconv.ParseUint(args[2], 10, 32)
	if err != nil {
		os.Exit(exitUsage)
	}
	image, module, err := Open(filepath.Join(args[0], report.FileName), args[1])
	if err != nil {
		fail(err)
	}
	w := &worker{in: bufio.NewReader(in), out: bufio.NewWriter(out)}
	if w.engine, err = NewEngine(context.Background(), module, image,
		filepath.Join(args[0], report.CodeName)); err != nil {
		fail(err)
	}
	letGo(args[0])
	if err := w.rehearse(most); err != nil {
		fail(err)
	}
	// Go cannot stop while the machine computes, so that a collection which began meanwhile would stop everything else,
	// the eye on the host too. Collections are between runs.
	debug.SetGCPercent(-1)
	debug.FreeOSMemory()
	// A machine's memory, and what it nests: the deepest stack while it is copied, and what Go wastes.
	if err := lock.Restrict(most + 256<<20); err != nil {
		os.Exit(exitLock)
	}
	w.send(wire.Ready(wire.Version("py", files, ".")))
	w.flush()
	for most := allocated() + garbage; ; {
		w.serve()
		if allocated() > most {
			debug.FreeOSMemory()
		}
	}
}

// translate makes the machine code of an interpreter, says so, and ends.
func translate(out io.Writer, file, sum, dir string) {
	_, module, err := Open(file, sum)
	if err != nil {
		fail(err)
	}
	if _, err := NewEngine(context.Background(), module, nil, dir); err != nil {
		fail(err)
	}
	w := &worker{out: bufio.NewWriter(out)}
	w.send(wire.Ready(wire.Version("py", files, ".")))
	w.flush()
	os.Exit(0)
}

// letGo closes a folder that has no path for this process, but was opened for it.
func letGo(folder string) {
	if fd, err := strconv.Atoi(strings.TrimPrefix(folder, "/proc/self/fd/")); err == nil {
		_ = os.NewFile(uintptr(fd), folder).Close() // nothing was written to it
	}
}

// garbage is how much runs may leave before it is collected: a collection takes longer than most runs.
const garbage = 24 << 20

// allocated is what Go's heap holds, garbage included.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fail(err error) {
	_, _ = os.Stderr.WriteString(err.Error() + "\n") // there is nowhere else to say it
	os.Exit(exitStart)
}

// worker is the process that runs code.
type worker struct {
	engine *Engine
	in     *bufio.Reader
	out    *bufio.Writer
}

// rehearse runs nothing once, so that the first run finds everything in its place.
func (w *worker) rehearse(memory uint64) error {
	return w.engine.Call(context.Background(), &System{Write: func(int, []byte) {}}, memory, Entry)
}

func (w *worker) send(frame []byte) {
	if _, err := w.out.Write(frame); err != nil {
		os.Exit(exitHost)
	}
}

func (w *worker) flush() {
	if w.out.Flush() != nil {
		os.Exit(exitHost)
	}
}

// serve runs one piece of code.
func (w *worker) serve() {
	f, err := wire.ReadFrame(w.in)
	if err != nil || f.Kind != wire.KindStart {
		os.Exit(exitHost)
	}
	start, err := wire.DecodeStart(f)
	if err != nil {
		os.Exit(exitHost)
	}
	w.send(wire.Ready("")) // that it has the code
	w.flush()
	late := time.AfterFunc(start.Time+lateness, func() { os.Exit(exitLate) })
	defer late.Stop()
	var said [3]int64
	var last bytes.Buffer
	s := &System{Input: []byte(start.Source), Write: func(fd int, p []byte) {
		left := start.Output - said[fd]
		said[fd] += int64(len(p))
		if fd == Host {
			last.Write(p[:min(int64(len(p)), max(left, 0))])
			return
		}
		for p = p[:min(int64(len(p)), max(left, 0))]; len(p) > 0; {
			n := min(len(p), 256<<10)
			w.send(wire.Log(uint32(fd), p[:n]))
			p = p[n:]
		}
		w.flush() // what a run that never ends has said so far is not lost
	}}
	end := ending(w.engine.Call(context.Background(), s, uint64(start.Memory), Entry), last.Bytes())
	end.Stdout, end.Stderr = said[Stdout], said[Stderr]
	body, err := json.Marshal(end)
	if err != nil {
		os.Exit(exitHost)
	}
	w.send(wire.JSON(wire.KindDone, 0, body))
	w.flush()
	if end.Broken {
		os.Exit(0) // the machine is gone; let the process go with it
	}
}

// ending puts together what the interpreter reported and what became of its machine.
func ending(err error, said []byte) (end report.Ending) {
	var exit *sys.ExitError
	switch {
	case errors.As(err, &exit):
		return report.Ending{Exit: int(exit.ExitCode() & 0xff), Broken: true}
	case err != nil:
		line, _, _ := strings.Cut(err.Error(), "\n")
		return report.Ending{Exit: 134, Error: &report.Exception{Type: "SystemError",
			Message: "the interpreter broke down: " + line}, Broken: true}
	case json.Unmarshal(said, &end) != nil: // there was not even enough memory to say so
		return report.Ending{Exit: 1, Error: &report.Exception{Type: "MemoryError", Message: "out of memory"},
			Broken: true}
	}
	end.Broken = false
	return end
}
