package guest

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// The open files of the interpreter. It cannot open others.
const (
	Host   = 0 // the interpreter reads its code from it and writes how the code ended
	Stdout = 1
	Stderr = 2
)

// Error numbers and other constants of WASI.
const (
	success         = 0
	badFile         = 8
	fault           = 21
	invalid         = 28
	noSeek          = 70
	notCapable      = 76
	characterDevice = 2         // file type of all open files
	allRights       = 1<<29 - 1 // all rights that a file can have
	fixedTime       = 1e18
	clockResolution = 1000
)

// System implements the host functions of one machine.
type System struct {
	Args  []string                 // the command line
	Input []byte                   // the rest of the input of Host
	Write func(fd int, p []byte)   // receives output; p is the machine's own memory
	Clock func(machine api.Module) // called when the machine reads the time; may be nil
}

type systemKey struct{}

// call is one call of a host function.
type call struct {
	system *System
	memory api.Memory
	module api.Module
	args   []uint64
}

func (c *call) arg(i int) uint32 { return api.DecodeU32(c.args[i]) }

// writeUint32 writes a number to the machine's memory. It returns false if the address is invalid.
func (c *call) writeUint32(at, v uint32) bool { return c.memory.WriteUint32Le(at, v) }

// resultOf returns success, or fault if an address was not in the machine's memory.
func resultOf(ok bool) uint32 {
	if ok {
		return success
	}
	return fault
}

// alwaysReturn returns a host function with a constant result.
func alwaysReturn(n uint32) func(*call) uint32 { return func(*call) uint32 { return n } }

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

type types = []api.ValueType

// functions are all host functions except proc_exit, by their names in WASI preview 1. A function that returns
// notCapable does so for all arguments.
var functions = map[string]struct {
	params types
	do     func(*call) uint32
}{
	"args_get":       {types{i32, i32}, (*call).argsGet},
	"args_sizes_get": {types{i32, i32}, (*call).argsSizesGet},
	"clock_res_get": {types{i32, i32},
		func(c *call) uint32 { return resultOf(c.memory.WriteUint64Le(c.arg(1), clockResolution)) }},
	"clock_time_get": {types{i32, i64, i32}, (*call).clockTimeGet},
	"environ_get":    {types{i32, i32}, alwaysReturn(success)},
	"environ_sizes_get": {types{i32, i32},
		func(c *call) uint32 { return resultOf(c.writeUint32(c.arg(0), 0) && c.writeUint32(c.arg(1), 0)) }},
	"fd_close":        {types{i32}, alwaysReturn(success)},
	"fd_fdstat_get":   {types{i32, i32}, (*call).fdstatGet},
	"fd_filestat_get": {types{i32, i32}, (*call).filestatGet},
	"fd_read":         {types{i32, i32, i32, i32}, (*call).fdRead},
	"fd_write":        {types{i32, i32, i32, i32}, (*call).fdWrite},
	"random_get":      {types{i32, i32}, (*call).randomGet},
	"sched_yield":     {nil, alwaysReturn(success)},

	"fd_advise":               {types{i32, i64, i64, i32}, alwaysReturn(notCapable)},
	"fd_allocate":             {types{i32, i64, i64}, alwaysReturn(notCapable)},
	"fd_datasync":             {types{i32}, alwaysReturn(notCapable)},
	"fd_fdstat_set_flags":     {types{i32, i32}, alwaysReturn(notCapable)},
	"fd_filestat_set_size":    {types{i32, i64}, alwaysReturn(notCapable)},
	"fd_filestat_set_times":   {types{i32, i64, i64, i32}, alwaysReturn(notCapable)},
	"fd_pread":                {types{i32, i32, i32, i64, i32}, alwaysReturn(notCapable)},
	"fd_prestat_dir_name":     {types{i32, i32, i32}, alwaysReturn(badFile)},
	"fd_prestat_get":          {types{i32, i32}, alwaysReturn(badFile)},
	"fd_pwrite":               {types{i32, i32, i32, i64, i32}, alwaysReturn(notCapable)},
	"fd_readdir":              {types{i32, i32, i32, i64, i32}, alwaysReturn(notCapable)},
	"fd_seek":                 {types{i32, i64, i32, i32}, alwaysReturn(noSeek)},
	"fd_sync":                 {types{i32}, alwaysReturn(notCapable)},
	"fd_tell":                 {types{i32, i32}, alwaysReturn(noSeek)},
	"path_create_directory":   {types{i32, i32, i32}, alwaysReturn(notCapable)},
	"path_filestat_get":       {types{i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"path_filestat_set_times": {types{i32, i32, i32, i32, i64, i64, i32}, alwaysReturn(notCapable)},
	"path_link":               {types{i32, i32, i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"path_open":               {types{i32, i32, i32, i32, i32, i64, i64, i32, i32}, alwaysReturn(notCapable)},
	"path_readlink":           {types{i32, i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"path_remove_directory":   {types{i32, i32, i32}, alwaysReturn(notCapable)},
	"path_rename":             {types{i32, i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"path_symlink":            {types{i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"path_unlink_file":        {types{i32, i32, i32}, alwaysReturn(notCapable)},
	"poll_oneoff":             {types{i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"sock_accept":             {types{i32, i32, i32}, alwaysReturn(notCapable)},
	"sock_recv":               {types{i32, i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"sock_send":               {types{i32, i32, i32, i32, i32}, alwaysReturn(notCapable)},
	"sock_shutdown":           {types{i32, i32}, alwaysReturn(notCapable)},
}

// provideSystem defines the host functions for the machines of a runtime.
func provideSystem(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder("wasi_snapshot_preview1")
	for name, f := range functions {
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module,
			stack []uint64) {
			s, ok := ctx.Value(systemKey{}).(*System)
			if !ok {
				s = &System{Write: func(int, []byte) {}}
			}
			stack[0] = uint64(f.do(&call{system: s, memory: m.Memory(), module: m, args: stack}))
		}), f.params, types{i32}).Export(name)
	}
	exit := func(_ context.Context, _ api.Module, stack []uint64) {
		panic(sys.NewExitError(api.DecodeU32(stack[0])))
	}
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(exit), types{i32}, nil).Export("proc_exit")
	_, err := b.Instantiate(ctx)
	return err
}

func (c *call) argsSizesGet() uint32 {
	n := 0
	for _, a := range c.system.Args {
		n += len(a) + 1
	}
	return resultOf(c.writeUint32(c.arg(0), uint32(len(c.system.Args))) && c.writeUint32(c.arg(1), uint32(n)))
}

func (c *call) argsGet() uint32 {
	list, text := c.arg(0), c.arg(1)
	for _, a := range c.system.Args {
		if !c.writeUint32(list, text) || !c.memory.WriteString(text, a+"\x00") {
			return fault
		}
		list, text = list+4, text+uint32(len(a))+1
	}
	return success
}

// clockTimeGet returns a constant time, so that runs are deterministic.
func (c *call) clockTimeGet() uint32 {
	if c.system.Clock != nil {
		c.system.Clock(c.module)
	}
	return resultOf(c.memory.WriteUint64Le(c.arg(2), fixedTime))
}

// randomGet returns constant bytes, so that runs are deterministic. Only the start of the interpreter calls it, for the
// seed of its hashes.
func (c *call) randomGet() uint32 {
	p, ok := c.memory.Read(c.arg(0), c.arg(1))
	for i := range p {
		p[i] = byte(i)
	}
	return resultOf(ok)
}

func (c *call) fdstatGet() uint32 {
	if c.arg(0) > Stderr {
		return badFile
	}
	var stat [24]byte
	stat[0] = characterDevice
	at := c.arg(1)
	return resultOf(c.memory.Write(at, stat[:]) && c.memory.WriteUint64Le(at+8, allRights))
}

func (c *call) filestatGet() uint32 {
	if c.arg(0) > Stderr {
		return badFile
	}
	var stat [64]byte
	stat[16] = characterDevice
	return resultOf(c.memory.Write(c.arg(1), stat[:]))
}

// eachVector calls do with each buffer of a read or write. It stops when do uses less than the whole buffer.
func (c *call) eachVector(do func(p []byte) int) uint32 {
	at, total := c.arg(1), uint32(0)
	for range c.arg(2) {
		base, ok1 := c.memory.ReadUint32Le(at)
		size, ok2 := c.memory.ReadUint32Le(at + 4)
		if !ok1 || !ok2 {
			return fault
		}
		p, ok := c.memory.Read(base, size)
		if !ok {
			return fault
		}
		n := do(p)
		total += uint32(n)
		if n < len(p) {
			break
		}
		at += 8
	}
	return resultOf(c.writeUint32(c.arg(3), total))
}

func (c *call) fdRead() uint32 {
	if c.arg(0) != Host {
		return badFile
	}
	return c.eachVector(func(p []byte) int {
		n := copy(p, c.system.Input)
		c.system.Input = c.system.Input[n:]
		return n
	})
}

func (c *call) fdWrite() uint32 {
	fd := c.arg(0)
	if fd > Stderr {
		return badFile
	}
	return c.eachVector(func(p []byte) int {
		c.system.Write(int(fd), p)
		return len(p)
	})
}
