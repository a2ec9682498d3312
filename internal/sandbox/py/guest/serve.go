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

// Exit codes of a worker that cannot report an error to its host.
const (
	exitUsage = 80 + iota // the arguments are invalid
	exitStart             // the interpreter did not start; standard error has the reason
	exitHost              // the host is gone or violated the protocol
	exitLock              // lock.Restrict failed
	exitLate              // the host did not end this process in time
)

// killGrace is how long after the time limit of a run a worker waits for its host to kill it, before it exits.
const killGrace = 5 * time.Second

// Serve is the main function of a worker process. It loads the interpreter, restricts the process, and runs code until
// the host ends. Its arguments are the folder of the frozen interpreter, its checksum, and the maximum memory of a run.
// It does not write to the folder. With the first argument report.Translate, it only compiles the interpreter. Serve
// does not return.
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
	closeFolder(args[0])
	if err := w.warmUp(most); err != nil {
		fail(err)
	}
	// The Go runtime cannot preempt the machine. A garbage collection during a run would block all other goroutines,
	// including the one that watches the host. So collections happen only between runs.
	debug.SetGCPercent(-1)
	debug.FreeOSMemory()
	// The machine's memory, the deepest stack while it is copied, and overhead of the Go runtime.
	if err := lock.Restrict(most + 256<<20); err != nil {
		os.Exit(exitLock)
	}
	w.send(wire.Ready(wire.Version("py", files, ".")))
	w.flush()
	for most := allocated() + maxGarbage; ; {
		w.serveRun()
		if allocated() > most {
			debug.FreeOSMemory()
		}
	}
}

// translate compiles an interpreter to machine code in dir, reports that it is ready, and exits.
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

// closeFolder closes the interpreter's folder if the process inherited it as an open file.
func closeFolder(folder string) {
	if fd, err := strconv.Atoi(strings.TrimPrefix(folder, "/proc/self/fd/")); err == nil {
		_ = os.NewFile(uintptr(fd), folder).Close() // an error does not matter, because nothing was written
	}
}

// maxGarbage is the garbage that runs may leave before it is collected. A collection takes longer than most runs.
const maxGarbage = 24 << 20

// allocated returns the bytes on the Go heap, including garbage.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fail(err error) {
	_, _ = os.Stderr.WriteString(err.Error() + "\n") // an error of this write cannot be reported anywhere
	os.Exit(exitStart)
}

// worker is the state of a worker process.
type worker struct {
	engine *Engine
	in     *bufio.Reader
	out    *bufio.Writer
}

// warmUp runs empty code once, so that the first run is as fast as later ones.
func (w *worker) warmUp(memory uint64) error {
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

// serveRun receives code from the host, runs it, and sends its output and how it ended.
func (w *worker) serveRun() {
	f, err := wire.ReadFrame(w.in)
	if err != nil || f.Kind != wire.KindStart {
		os.Exit(exitHost)
	}
	start, err := wire.DecodeStart(f)
	if err != nil {
		os.Exit(exitHost)
	}
	w.send(wire.Ready("")) // reports that the worker has received the code
	w.flush()
	late := time.AfterFunc(start.Time+killGrace, func() { os.Exit(exitLate) })
	defer late.Stop()
	var written [3]int64 // by descriptor
	var ending bytes.Buffer
	s := &System{Input: []byte(start.Source), Write: func(fd int, p []byte) {
		left := start.Output - written[fd]
		written[fd] += int64(len(p))
		if fd == Host {
			ending.Write(p[:min(int64(len(p)), max(left, 0))])
			return
		}
		for p = p[:min(int64(len(p)), max(left, 0))]; len(p) > 0; {
			n := min(len(p), 256<<10)
			w.send(wire.Log(uint32(fd), p[:n]))
			p = p[n:]
		}
		w.flush() // the host must have the output even if it kills the run later
	}}
	end := newEnding(w.engine.Call(context.Background(), s, uint64(start.Memory), Entry), ending.Bytes())
	end.Stdout, end.Stderr = written[Stdout], written[Stderr]
	body, err := json.Marshal(end)
	if err != nil {
		os.Exit(exitHost)
	}
	w.send(wire.JSON(wire.KindDone, 0, body))
	w.flush()
	if end.Broken {
		os.Exit(0) // a machine that broke down may have left the process in a bad state
	}
}

// newEnding returns the Ending of a run, given the error of its machine and the JSON that the interpreter reported.
func newEnding(err error, reported []byte) (end report.Ending) {
	var exit *sys.ExitError
	switch {
	case errors.As(err, &exit):
		return report.Ending{Exit: int(exit.ExitCode() & 0xff), Broken: true}
	case err != nil:
		line, _, _ := strings.Cut(err.Error(), "\n")
		return report.Ending{Exit: 134, Error: &report.Exception{Type: "SystemError",
			Message: "the interpreter crashed: " + line}, Broken: true}
	case json.Unmarshal(reported, &end) != nil: // there was no memory left to report the error
		return report.Ending{Exit: 1, Error: &report.Exception{Type: "MemoryError", Message: "out of memory"},
			Broken: true}
	}
	end.Broken = false
	return end
}
