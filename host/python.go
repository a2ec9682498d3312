package host

import (
	"path/filepath"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/lock"
	"reeve/internal/sandbox/py"
)

// PythonConfig is what an operator can set about execute_python.
type PythonConfig struct {
	Disabled bool     `yaml:"disabled" json:"disabled,omitempty" doc:"True switches execute_python off. Default: false"`
	Time     Duration `yaml:"time" json:"time,omitempty" doc:"When to end a run. Default: 5s"`
	MemoryMB int      `yaml:"memory_mb" json:"memory_mb,omitempty" minimum:"16" maximum:"1024" doc:"Memory of a run, the interpreter's own 11 MiB included, in MiB. Default: 50"`
	OutputKB int      `yaml:"output_kb" json:"output_kb,omitempty" minimum:"1" maximum:"4096" doc:"How much is kept of each of stdout and stderr, in KiB. Default: 256"`
	Runs     int      `yaml:"runs" json:"runs,omitempty" minimum:"1" maximum:"64" doc:"Runs at once; others wait. Default: 4"`
	Cache    string   `yaml:"cache" json:"cache,omitempty" doc:"Directory for the unpacked interpreter and its machine code, private to the server. Default: python in the data directory"`
}

// explainInvalidTime says why the time cannot be; the other limits are numbers in a range.
func (c PythonConfig) explainInvalidTime() string {
	if time.Duration(c.Time) > py.MaxTime {
		return "it is more than " + py.MaxTime.String()
	}
	return ""
}

func (c PythonConfig) limits() py.Limits {
	return py.Limits{Time: time.Duration(c.Time), Memory: int64(c.MemoryMB) << 20, Output: int64(c.OutputKB) << 10}
}

// newPython makes the pool that runs Python. It starts nothing before there is something to run.
func newPython(cfg Config) *py.Pool {
	c := cfg.Python
	if c.Cache == "" {
		c.Cache = filepath.Join(cfg.Dir, pythonFolder)
	}
	return py.New(py.Config{Dir: c.Cache, Memory: int64(c.MemoryMB) << 20, Max: c.Runs, Confine: confine.ConfineWorker})
}

// explainPythonOff returns why there is no Python, and what to do. An empty reason means that there is Python.
func explainPythonOff(cfg Config) (reason, hint string) {
	if cfg.Python.Disabled {
		return "the server's configuration switches it off", "set python.disabled to false in it"
	}
	if err := lock.Available(); err != nil {
		return "this kernel takes no filter for system calls, without which the interpreter would not be confined (" +
			err.Error() + ")", "use a kernel with seccomp filters, or a container that permits them"
	}
	return py.Available()
}

// checkPython says whether this server can run Python.
func (h *Host) checkPython() reeve.PartHealth {
	reason, hint := explainPythonOff(h.cfg)
	if h.cfg.Python.Disabled {
		return reeve.PartHealth{Name: "python", OK: true, Detail: "execute_python is off: " + reason}
	}
	if reason != "" {
		return reeve.PartHealth{Name: "python", Detail: "execute_python is off: " + reason,
			Hint: hint + "; or set python.disabled to true if it is meant to be off"}
	}
	return reeve.PartHealth{Name: "python", OK: true, Detail: "the interpreter is part of this program"}
}
