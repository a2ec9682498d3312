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

// Init prepares a data directory as the first Run would, and leaves a config file to edit unless there is one. With
// sample it puts the sample there too, and tells whether it did; see [Host.Sample].
func Init(ctx context.Context, cfg Config, sample bool) (dir string, put bool, err error) {
	h, err := New(ctx, cfg)
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := h.open(ctx); err != nil {
		return "", false, err
	}
	if sample {
		if put, err = h.InstallSample(ctx); err != nil {
			return "", false, err
		}
	}
	file := filepath.Join(h.cfg.Dir, configFile)
	if _, err := os.Stat(file); err == nil {
		return h.cfg.Dir, put, nil
	}
	return h.cfg.Dir, put, writePrivateFile(file, sampleConfig())
}

// sampleConfig is a config with every setting in it, commented out, made from the settings' own words.
func sampleConfig() string {
	var b strings.Builder
	b.WriteString("# Settings of Reeve. REEVE_* variables and flags override them; docs/configuration.md says more.\n")
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		// a directory cannot say where it is
		if name := f.Tag.Get("yaml"); name != "-" && name != "dir" && f.IsExported() {
			fmt.Fprintf(&b, "\n# %s\n#%s:\n", f.Tag.Get("doc"), name)
		}
	}
	return b.String()
}
