package files

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"reeve"
	"reeve/internal/keylock"
)

// Config says where workspaces live and how much one call may move.
type Config struct {
	// holds one folder per workspace: <Dir>/<workspace>/{shared,tmp,vault}. Made when missing, mode 0700. No default
	Dir  string
	Keep BlobStore // where old bytes go before they are overwritten or deleted. No default

	Projects Projects // what /project may be. Default: there is none

	Made func(fs.FileInfo) // is told of each file that is made, before it is in place. Default: nobody is

	MaxFile    int64 // the most bytes a call may write, edit, search or copy in one file. Default 10 MiB
	MaxKeep    int64 // the most old bytes one call may replace or delete, since all of them are kept. Default 64 MiB
	MaxEntries int   // the most files and folders one delete or search may visit. Default 20000
	MaxList    int   // the most entries one listing gives. Default 1000
}

// BlobStore stores old file contents by hash, so that a change can be undone.
type BlobStore interface {
	// Put stores b and returns its address, which must be reeve.Hash(b). It returns only when b would survive a crash.
	Put(ctx context.Context, workspace string, b []byte) (hash string, err error)
	// Get returns stored bytes, or an error of code NOT_FOUND.
	Get(ctx context.Context, workspace, hash string) ([]byte, error)
}

// Pack is the pack of file tools. It is safe for concurrent use.
type Pack struct {
	cfg   Config
	locks keylock.Map // by workspace: one call at a time changes files there
}

// New returns the pack and creates its folder.
func New(cfg Config) (*Pack, error) {
	if cfg.Dir == "" {
		return nil, reeve.Errorf(reeve.Validation, "the file tools need a folder for workspaces").
			Hintf("set files.Config.Dir")
	}
	if cfg.Keep == nil {
		return nil, reeve.Errorf(reeve.Validation, "the file tools need a place to keep old bytes").
			Hintf("set files.Config.Keep")
	}
	if cfg.MaxFile < 0 || cfg.MaxKeep < 0 || cfg.MaxEntries < 0 || cfg.MaxList < 0 {
		return nil, reeve.Errorf(reeve.Validation, "a limit of the file tools is negative")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the folder for workspaces has no absolute name: %w", err)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the folder for workspaces cannot be made: %w", err)
	}
	cfg.Dir = dir
	fill(&cfg.MaxFile, 10<<20)
	fill(&cfg.MaxKeep, 64<<20)
	fill(&cfg.MaxEntries, 20_000)
	fill(&cfg.MaxList, 1000)
	return &Pack{cfg: cfg}, nil
}

func fill[T int | int64](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// Tools returns the file tools.
func (p *Pack) Tools() []reeve.Tool {
	tools := []reeve.Tool{
		p.readTool(), p.listTool(), p.searchTool(),
		p.writeTool(), p.editTool(), p.deleteTool(), p.restoreTool(),
		p.vaultTool(),
	}
	for i := range tools {
		tools[i].CheckSettings = p.checkSettings
	}
	return tools
}

// Shared returns the folder behind a workspace's /shared and creates it if it is missing. Other packs use it to work in
// that folder directly.
func (p *Pack) Shared(workspace string) (string, error) {
	root, err := p.root(ground{workspace: workspace}, "shared")
	if err != nil {
		return "", err
	}
	return filepath.Join(p.cfg.Dir, workspace, "shared"), root.Close()
}

// What the tools ask of an agent's profile.
const (
	capRead  = "files.read"
	capWrite = "files.write"
	capVault = "vault.read"
)

const (
	readTime   = 10 * time.Second
	searchTime = 20 * time.Second
	writeTime  = 15 * time.Second
	vaultTime  = 30 * time.Second
)

// declare fills what all tools of the pack share.
func declare(id, name, description, capability string, effect reeve.Effect, limit time.Duration) reeve.Tool {
	settings, _ := reeve.SchemaFor[projectConfig]() // cannot fail for a plain struct; a test covers it
	return reeve.Tool{ID: id, Name: name, Description: description, Capability: capability, Effect: effect,
		TimeoutMS: limit.Milliseconds(), Category: "filesystem", Pack: "files", ConfigSchema: settings,
		FileNameFields: []string{"path", "name", "next", "from", "to"}}
}
