package guest

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// The files that are open when the interpreter starts. There are no others, and none can be opened.
const (
	Host   = 0 // code is read from it, and how it ended is written to it
	Stdout = 1
	Stderr = 2
)

// Answers of the system, by their numbers in WASI.
const (
	success       = 0
	badFile       = 8
	fault         = 21
	invalid       = 28
	noSeek        = 70
	notCapable    = 76
	character     = 2       // the kind of file that all of them are
	everything    = 1 << 29 // one more than all rights that a file can have
	timeAtStart   = 1e18
	clockFineness = 1000
)

// System is what one machine sees of its surroundings.
type System struct {
	Args  []string                 // the command line
	Input []byte                   // what is left to read
	Write func(fd int, p []byte)   // takes output; p is the machine's own memory
	Clock func(machine api.Module) // is told when somebody asks for the time; may be nil
}

type systemKey struct{}

// call is one call of the system.
type call struct {
	system *System
	memory api.Memory
	module api.Module
	args   []uint64
}

func (c *call) arg(i int) uint32 { return api.DecodeU32(c.args[i]) }

// put writes a number into the machine's memory.
func (c *call) put(at, v uint32) bool { return c.memory.WriteUint32Le(at, v) }

// answer is success, or a fault if something did not fit into the machine's memory.
func answer(ok bool) uint32 {
	if ok {
		return success
	}
	return fault
}

// always gives one answer.
func always(n uint32) func(*call) uint32 { return func(*call) uint32 { return n } }

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

type types = []api.ValueType

// functions are all that the machine can call, by their names in WASI preview 1. What is not capable here cannot be
// reached by any argument.
var functions = map[string]struct {
	params types
	do     func(*call) uint32
}{
	"args_get":       {types{i32, i32}, (*call).argsGet},
	"args_sizes_get": {types{i32, i32}, (*call).argsSizesGet},
	"clock_res_get": {types{i32, i32},
		func(c *call) uint32 { return answer(c.memory.WriteUint64Le(c.arg(1), clockFineness)) }},
	"clock_time_get": {types{i32, i64, i32}, (*call).clockTimeGet},
	"environ_get":    {types{i32, i32}, always(success)},
	"environ_sizes_get": {types{i32, i32},
		func(c *call) uint32 { return answer(c.put(c.arg(0), 0) && c.put(c.arg(1), 0)) }},
	"fd_close":        {types{i32}, always(success)},
	"fd_fdstat_get":   {types{i32, i32}, (*call).fdstatGet},
	"fd_filestat_get": {types{i32, i32}, (*call).filestatGet},
	"fd_read":         {types{i32, i32, i32, i32}, (*call).fdRead},
	"fd_write":        {types{i32, i32, i32, i32}, (*call).fdWrite},
	"random_get":      {types{i32, i32}, (*call).randomGet},
	"sched_yield":     {nil, always(success)},

	"fd_advise":               {types{i32, i64, i64, i32}, always(notCapable)},
	"fd_allocate":             {types{i32, i64, i64}, always(notCapable)},
	"fd_datasync":             {types{i32}, always(notCapable)},
	"fd_fdstat_set_flags":     {types{i32, i32}, always(notCapable)},
	"fd_filestat_set_size":    {types{i32, i64}, always(notCapable)},
	"fd_filestat_set_times":   {types{i32, i64, i64, i32}, always(notCapable)},
	"fd_pread":                {types{i32, i32, i32, i64, i32}, always(notCapable)},
	"fd_prestat_dir_name":     {types{i32, i32, i32}, always(badFile)},
	"fd_prestat_get":          {types{i32, i32}, always(badFile)},
	"fd_pwrite":               {types{i32, i32, i32, i64, i32}, always(notCapable)},
	"fd_readdir":              {types{i32, i32, i32, i64, i32}, always(notCapable)},
	"fd_seek":                 {types{i32, i64, i32, i32}, always(noSeek)},
	"fd_sync":                 {types{i32}, always(notCapable)},
	"fd_tell":                 {types{i32, i32}, always(noSeek)},
	"path_create_directory":   {types{i32, i32, i32}, always(notCapable)},
	"path_filestat_get":       {types{i32, i32, i32, i32, i32}, always(notCapable)},
	"path_filestat_set_times": {types{i32, i32, i32, i32, i64, i64, i32}, always(notCapable)},
	"path_link":               {types{i32, i32, i32, i32, i32, i32, i32}, always(notCapable)},
	"path_open":               {types{i32, i32, i32, i32, i32, i64, i64, i32, i32}, always(notCapable)},
	"path_readlink":           {types{i32, i32, i32, i32, i32, i32}, always(notCapable)},
	"path_remove_directory":   {types{i32, i32, i32}, always(notCapable)},
	"path_rename":             {types{i32, i32, i32, i32, i32, i32}, always(notCapable)},
	"path_symlink":            {types{i32, i32, i32, i32, i32}, always(notCapable)},
	"path_unlink_file":        {types{i32, i32, i32}, always(notCapable)},
	"poll_oneoff":             {types{i32, i32, i32, i32}, always(notCapable)},
	"sock_accept":             {types{i32, i32, i32}, always(notCapable)},
	"sock_recv":               {types{i32, i32, i32, i32, i32, i32}, always(notCapable)},
	"sock_send":               {types{i32, i32, i32, i32, i32}, always(notCapable)},
	"sock_shutdown":           {types{i32, i32}, always(notCapable)},
}

// provide gives the machines of a runtime their system.
func provide(ctx context.Context, r wazero.Runtime) error {
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
	return answer(c.put(c.arg(0), uint32(len(c.system.Args))) && c.put(c.arg(1), uint32(n)))
}

func (c *call) argsGet() uint32 {
	list, text := c.arg(0), c.arg(1)
	for _, a := range c.system.Args {
		if !c.put(list, text) || !c.memory.WriteString(text, a+"\x00") {
			return fault
		}
		list, text = list+4, text+uint32(len(a))+1
	}
	return success
}

// clockTimeGet stands still: the same code does the same whenever it is run.
func (c *call) clockTimeGet() uint32 {
	if c.system.Clock != nil {
		c.system.Clock(c.module)
	}
	return answer(c.memory.WriteUint64Le(c.arg(2), timeAtStart))
}

// randomGet is no chance either. All that asks for it is the interpreter's start, for the seed of its hashes.
func (c *call) randomGet() uint32 {
	p, ok := c.memory.Read(c.arg(0), c.arg(1))
	for i := range p {
		p[i] = byte(i)
	}
	return answer(ok)
}

func (c *call) fdstatGet() uint32 {
	if c.arg(0) > Stderr {
		return badFile
	}
	var stat [24]byte
	stat[0] = character
	at := c.arg(1)
	return answer(c.memory.Write(at, stat[:]) && c.memory.WriteUint64Le(at+8, everything-1))
}

func (c *call) filestatGet() uint32 {
	if c.arg(0) > Stderr {
		return badFile
	}
	var stat [64]byte
	stat[16] = character
	return answer(c.memory.Write(c.arg(1), stat[:]))
}

// vectors calls do with each piece of memory that a read or write names, until one is not all used.
func (c *call) vectors(do func(p []byte) int) uint32 {
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
	return answer(c.put(c.arg(3), total))
}

func (c *call) fdRead() uint32 {
	if c.arg(0) != Host {
		return badFile
	}
	return c.vectors(func(p []byte) int {
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
	return c.vectors(func(p []byte) int {
		c.system.Write(int(fd), p)
		return len(p)
	})
}
