package guest

import (
	"context"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Entry is the name of the function by which a frozen interpreter is entered.
const Entry = "run"

// Engine holds an interpreter in machine code, ready to be run any number of times.
type Engine struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	image    *Image
}

// NewEngine translates an interpreter to machine code, which takes seconds, or takes what an earlier call left in the
// cache directory. Its machines begin with the image, if there is one.
func NewEngine(ctx context.Context, module []byte, image *Image, cache string) (*Engine, error) {
	config := wazero.NewRuntimeConfig()
	if cache != "" {
		c, err := wazero.NewCompilationCacheWithDir(cache)
		if err != nil {
			return nil, err
		}
		config = config.WithCompilationCache(c)
	}
	e := &Engine{runtime: wazero.NewRuntimeWithConfig(ctx, config), image: image}
	if err := provide(ctx, e.runtime); err != nil {
		return nil, err
	}
	var err error
	e.compiled, err = e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module)
	return e, err
}

// Call makes a fresh machine with so much memory at the most, and calls one of its functions. Nothing of the machine is
// left afterwards.
func (e *Engine) Call(ctx context.Context, s *System, memory uint64, function string) error {
	ctx = context.WithValue(ctx, systemKey{}, s)
	room := experimental.WithMemoryAllocator(ctx,
		experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
			return e.image.memory(min(memory, most))
		}))
	m, err := e.runtime.InstantiateModule(room, e.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(ctx) }() // it holds nothing that could fail to be let go
	f := m.ExportedFunction(function)
	if f == nil {
		return ErrFile
	}
	_, err = f.Call(ctx)
	return err
}

// Close lets go of the machine code.
func (e *Engine) Close(ctx context.Context) error { return e.runtime.Close(ctx) }
