// Command freeze turns CPython for WASI into the interpreter that is embedded in Reeve:
//
//	freeze python.wasm python.gz
//
// It also writes python.sha256, the checksum of the uncompressed content.
//
// CPython needs a sixth of a second to start and import the modules that code may use, and it could import many more.
// So freeze starts it once. It runs prepare.py, stops the machine in the middle of a call, and stores its memory with a
// modified module. A machine of that module is ready at once, and its function run executes code. The same input gives
// the same output, bit for bit.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"reeve/internal/sandbox/py/guest"
)

//go:embed prepare.py
var prepare string

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: freeze python.wasm python.gz")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "freeze:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	memory, module, err := freeze(program)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	sum := sha256.New()
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := errors.Join(guest.WriteFile(io.MultiWriter(z, sum), memory, module), z.Close()); err != nil {
		return err
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	fmt.Printf("%s: %.1f MB, sha256 of its content %s\n", to, float64(packed.Len())/1e6, hash)
	if err := os.WriteFile(strings.TrimSuffix(to, ".gz")+".sha256", []byte(hash+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(to+".part", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(to+".part", to) // last, so that make sees the file only if everything is written
}

// snapshot is the state of a stopped machine.
type snapshot struct {
	memory  []byte
	stack   int32  // stack pointer of the interpreter's C code
	entry   uint32 // address of the Python function run
	process uint32 // table index of the C function that calls Python functions
}

// vectorcall is the offset, in a function object of CPython 3.12 on a 32-bit machine, of the pointer to the C function
// that calls it. It follows the object's header and fourteen pointers.
const vectorcall = 8 + 14*4

// memoryLimit is the memory limit of the interpreter while prepare.py runs.
const memoryLimit = 48 << 20

// freeze starts an interpreter and runs prepare.py in it. It returns the memory after that, and a module that continues
// from there.
func freeze(program []byte) (memory, frozen []byte, err error) {
	m, err := parseModule(program)
	if err != nil {
		return nil, nil, err
	}
	if err := m.addExport(stackName, kindGlobal, 0); err != nil {
		return nil, nil, err
	}
	at, err := captureImage(m.encode())
	if err != nil {
		return nil, nil, err
	}
	target, err := m.findElement(uint64(at.process))
	if err != nil {
		return nil, nil, err
	}
	if m, err = m.setInitialState(len(at.memory), at.stack); err != nil {
		return nil, nil, err
	}
	entry, err := m.addCaller(target, int32(at.entry), 0, 0, 0) // the function has no arguments
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(m.set(sectionExport, []byte{0}), m.addExport(guest.Entry, kindFunction, entry),
		m.addExport("memory", kindMemory, 0))
	return at.memory, m.encode(), err
}

const stackName = "stack"

// errCaptured stops the machine once its image has been captured.
var errCaptured = errors.New("the image has been captured")

// bootstrap is the Python code that executes prepare.py. It names the file <host>, by which prepare.py removes its own
// frames from tracebacks. It gives prepare.py a copy of the built-in functions, so that code that changes the shared
// ones cannot affect it.
const bootstrap = "import builtins, sys; exec(compile(sys.stdin.read(), '<host>', 'exec'), {'__builtins__': " +
	"dict(vars(builtins))})"

// captureImage runs an interpreter until prepare.py reads the clock at its end, and returns the state of the machine.
func captureImage(program []byte) (at snapshot, err error) {
	ctx := context.Background()
	engine, err := guest.NewEngine(ctx, program, nil, "")
	if err != nil {
		return at, err
	}
	var written [3]bytes.Buffer // by descriptor
	s := &guest.System{Args: []string{"python", "-I", "-S", "-B", "-X", "utf8", "-c", bootstrap},
		Input: []byte(prepare),
		Write: func(fd int, p []byte) { written[fd].Write(p) }}
	s.Clock = func(m api.Module) {
		if written[guest.Host].Len() == 0 {
			return // called during the interpreter's own start
		}
		id, e := strconv.ParseUint(written[guest.Host].String(), 10, 32)
		if err = e; err == nil {
			all, _ := m.Memory().Read(0, m.Memory().Size())
			process, ok := m.Memory().ReadUint32Le(uint32(id) + vectorcall)
			if !ok {
				err = errModule
			}
			at = snapshot{memory: bytes.Clone(all), stack: int32(m.ExportedGlobal(stackName).Get()), entry: uint32(id),
				process: process}
		}
		panic(errCaptured)
	}
	callErr := engine.Call(ctx, s, memoryLimit, "_start")
	if at.memory == nil && err == nil {
		err = fmt.Errorf("the interpreter ended before it was ready: %w\n%s", callErr, written[guest.Stderr].String())
	}
	return at, err
}
