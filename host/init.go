package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Init prepares a data directory as the first Run does, and writes a config file to edit unless there is one. If sample
// is set, it also installs the sample (see [Host.InstallSample]) and reports whether it did.
func Init(ctx context.Context, cfg Config, sample bool) (dir string, hasSample bool, err error) {
	h, err := New(ctx, cfg)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := h.open(ctx); err != nil {
		return "", false, err
	}
	if sample {
		if hasSample, err = h.InstallSample(ctx); err != nil {
			return "", false, err
		}
	}
	file := filepath.Join(h.cfg.Dir, configFile)
	if _, err := os.Stat(file); err == nil {
		return h.cfg.Dir, hasSample, nil
	}
	return h.cfg.Dir, hasSample, writePrivateFile(file, sampleConfig())
}

// sampleConfig returns a config file with all settings commented out. The comments come from the doc tags of Config.
func sampleConfig() string {
	var b strings.Builder
	b.WriteString("# Settings of Reeve. REEVE_* variables and flags override them. See docs/configuration.md.\n")
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		// The data directory contains this file, so the file cannot set it.
		if name := f.Tag.Get("yaml"); name != "-" && name != "dir" && f.IsExported() {
			fmt.Fprintf(&b, "\n# %s\n#%s:\n", f.Tag.Get("doc"), name)
		}
	}
	return b.String()
}
