package host

import (
	"path/filepath"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/lock"
	"reeve/internal/sandbox/py"
)

// PythonConfig contains the settings of execute_python.
type PythonConfig struct {
	Disabled bool     `yaml:"disabled" json:"disabled,omitempty" doc:"Disables execute_python. Default: false"`
	Timeout  Duration `yaml:"timeout" json:"timeout,omitempty" doc:"Time limit of a run. Default: 5s"`
	MemoryMB int      `yaml:"memory_mb" json:"memory_mb,omitempty" minimum:"16" maximum:"1024" doc:"Memory limit of a run in MiB, including 11 MiB for the interpreter. Default: 50"`
	OutputKB int      `yaml:"output_kb" json:"output_kb,omitempty" minimum:"1" maximum:"4096" doc:"Maximum number of KiB kept of stdout, and of stderr. Default: 256"`
	MaxRuns  int      `yaml:"max_runs" json:"max_runs,omitempty" minimum:"1" maximum:"64" doc:"Maximum number of concurrent runs; others wait. Default: 4"`
	Cache    string   `yaml:"cache" json:"cache,omitempty" doc:"Private directory for the unpacked interpreter and its machine code. Default: python in the data directory"`
}

// explainInvalidTime returns why the time limit is not valid, or an empty string. The ranges of the other settings are
// in their tags.
func (c PythonConfig) explainInvalidTime() string {
	if time.Duration(c.Timeout) > py.MaxTime {
		return "it is more than " + py.MaxTime.String()
	}
	return ""
}

func (c PythonConfig) limits() py.Limits {
	return py.Limits{Time: time.Duration(c.Timeout), Memory: int64(c.MemoryMB) << 20, Output: int64(c.OutputKB) << 10}
}

// newPython returns the pool that runs Python. It starts no process until there is code to run.
func newPython(cfg Config) *py.Pool {
	c := cfg.Python
	if c.Cache == "" {
		c.Cache = filepath.Join(cfg.Dir, pythonFolder)
	}
	return py.New(py.Config{Dir: c.Cache, Memory: int64(c.MemoryMB) << 20, Max: c.MaxRuns,
		Confine: confine.ConfineWorker})
}

// explainPythonOff returns why Python is not available, and what to do. The reason is empty if Python is available.
func explainPythonOff(cfg Config) (reason, hint string) {
	if cfg.Python.Disabled {
		return "it is disabled in the server's configuration", "set python.disabled to false"
	}
	if err := lock.Available(); err != nil {
		return "the kernel does not support the system call filters that confine the interpreter (" +
			err.Error() + ")", "use a kernel with seccomp filters, or a container that allows them"
	}
	return py.Available()
}

// checkPython reports whether this server can run Python.
func (h *Host) checkPython() reeve.PartHealth {
	reason, hint := explainPythonOff(h.cfg)
	if h.cfg.Python.Disabled {
		return reeve.PartHealth{Name: "python", OK: true, Detail: "execute_python is off: " + reason}
	}
	if reason != "" {
		return reeve.PartHealth{Name: "python", Detail: "execute_python is off: " + reason,
			Hint: hint + "; or set python.disabled to true if you do not need it"}
	}
	return reeve.PartHealth{Name: "python", OK: true, Detail: "the interpreter is built in"}
}
