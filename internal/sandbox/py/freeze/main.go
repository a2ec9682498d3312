// Command freeze turns CPython for WASI into the interpreter that Reeve carries along:
//
//	freeze python.wasm python.gz
//
// It writes python.sha256 too, the checksum of what is packed.
//
// CPython takes a sixth of a second to start and to import what code may import, and it can import much more. So it is
// started here, once: prepare.py readies it, and then the machine is stopped in the middle of a call and its memory is
// written into a new module. That one begins ready, and is entered by the function run. The same input gives the same
// output, bit by bit.
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
	return os.Rename(to+".part", to) // last: that it is there means that all is
}

// snapshot is the state of a stopped machine.
type snapshot struct {
	memory  []byte
	stack   int32  // where the stack of the interpreter's C code ends
	entry   uint32 // the Python function to enter by
	process uint32 // the function that calls Python functions, by its place in the table
}

// Where CPython 3.12 keeps, in a function object on a 32 bit machine, the place of the function that calls it: behind
// the object's head and fourteen pointers.
const vectorcall = 8 + 14*4

// memoryLimit is for the interpreter while it is readied.
const memoryLimit = 48 << 20

// freeze starts an interpreter, readies it, and gives it as the memory that it then had and a module that goes on from
// there.
func freeze(program []byte) (memory, frozen []byte, err error) {
	m, err := parse(program)
	if err != nil {
		return nil, nil, err
	}
	if err := m.export(stackName, kindGlobal, 0); err != nil {
		return nil, nil, err
	}
	at, err := start(m.bytes())
	if err != nil {
		return nil, nil, err
	}
	target, err := m.element(uint64(at.process))
	if err != nil {
		return nil, nil, err
	}
	if m, err = m.restart(len(at.memory), at.stack); err != nil {
		return nil, nil, err
	}
	entry, err := m.caller(target, int32(at.entry), 0, 0, 0) // of no positional arguments and no others
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(m.set(sectionExport, []byte{0}), m.export(guest.Entry, kindFunction, entry),
		m.export("memory", kindMemory, 0))
	return at.memory, m.bytes(), err
}

const stackName = "stack"

// errTaken stops the machine when its snapshot has been taken.
var errTaken = errors.New("the snapshot has been taken")

// launch gives the code of prepare.py a name, by which prepare.py leaves itself out of tracebacks, and built-in
// functions of its own, so that it goes on working when code changes those that all others share.
const launch = "import builtins, sys; exec(compile(sys.stdin.read(), '<host>', 'exec'), {'__builtins__': " +
	"dict(vars(builtins))})"

// start runs an interpreter until it is ready.
func start(program []byte) (at snapshot, err error) {
	ctx := context.Background()
	engine, err := guest.NewEngine(ctx, program, nil, "")
	if err != nil {
		return at, err
	}
	var said [3]bytes.Buffer
	s := &guest.System{Args: []string{"python", "-I", "-S", "-B", "-X", "utf8", "-c", launch}, Input: []byte(prepare),
		Write: func(fd int, p []byte) { said[fd].Write(p) }}
	s.Clock = func(m api.Module) {
		if said[guest.Host].Len() == 0 {
			return // the interpreter's own start
		}
		id, e := strconv.ParseUint(said[guest.Host].String(), 10, 32)
		if err = e; err == nil {
			all, _ := m.Memory().Read(0, m.Memory().Size())
			process, ok := m.Memory().ReadUint32Le(uint32(id) + vectorcall)
			if !ok {
				err = errModule
			}
			at = snapshot{memory: bytes.Clone(all), stack: int32(m.ExportedGlobal(stackName).Get()), entry: uint32(id),
				process: process}
		}
		panic(errTaken)
	}
	ended := engine.Call(ctx, s, memoryLimit, "_start")
	if at.memory == nil && err == nil {
		err = fmt.Errorf("the interpreter ended before it was ready: %w\n%s", ended, said[guest.Stderr].String())
	}
	return at, err
}
