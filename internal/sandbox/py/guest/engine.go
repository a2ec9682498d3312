package guest

import (
	"context"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Entry is the name of the exported function that runs code in a frozen interpreter.
const Entry = "run"

// Engine holds an interpreter in machine code. It can run any number of machines.
type Engine struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	image    *Image
}

// NewEngine compiles an interpreter to machine code, which takes seconds, or loads the machine code that an earlier
// call stored in the cache directory. An empty cache means that nothing is stored. The engine's machines start with the
// memory of image, which may be nil.
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
	if err := provideSystem(ctx, e.runtime); err != nil {
		return nil, err
	}
	var err error
	e.compiled, err = e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module)
	return e, err
}

// Call creates a machine with at most memory bytes, calls one of its functions, and frees the machine.
func (e *Engine) Call(ctx context.Context, s *System, memory uint64, function string) error {
	ctx = context.WithValue(ctx, systemKey{}, s)
	withMemory := experimental.WithMemoryAllocator(ctx,
		experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
			return e.image.newMemory(min(memory, most))
		}))
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	m, err := e.runtime.InstantiateModule(withMemory, e.compiled, config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(ctx) }() // the machine holds nothing whose closing could fail
	f := m.ExportedFunction(function)
	if f == nil {
		return ErrFile
	}
	_, err = f.Call(ctx)
	return err
}

// Close frees the machine code.
func (e *Engine) Close(ctx context.Context) error { return e.runtime.Close(ctx) }
