package files

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"reeve"
)

// Config configures a [Pack].
type Config struct {
	// Dir contains one folder per workspace: <Dir>/<workspace>/{shared,tmp,vault}. Missing folders are created with
	// mode 0700. Required.
	Dir   string
	Blobs BlobStore // stores old bytes before they are overwritten or deleted. Required.

	Projects Projects // opens the folder behind /project. Default: no /project

	// OnCreate is called for each new file before the file has its final name. Default: none
	OnCreate func(fs.FileInfo)

	MaxFile    int64 // maximum bytes of a file that a call writes, edits, searches or copies. Default 10 MiB
	MaxUndo    int64 // maximum old bytes that one call replaces or deletes, all of which are stored. Default 64 MiB
	MaxEntries int   // maximum files and folders that one delete or search visits. Default 20000
	MaxList    int   // maximum entries of one listing. Default 1000
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
	*reader
	writer  *fileWriter
	maxFile int64
}

// New returns a pack and creates cfg.Dir if it is missing.
func New(cfg Config) (*Pack, error) {
	if cfg.Dir == "" {
		return nil, reeve.Errorf(reeve.Validation, "the file tools need a folder for workspaces").
			Hintf("set files.Config.Dir")
	}
	if cfg.Blobs == nil {
		return nil, reeve.Errorf(reeve.Validation, "the file tools need a store for old file contents").
			Hintf("set files.Config.Blobs")
	}
	if cfg.MaxFile < 0 || cfg.MaxUndo < 0 || cfg.MaxEntries < 0 || cfg.MaxList < 0 {
		return nil, reeve.Errorf(reeve.Validation, "a limit of the file tools is negative").
			Hintf("set MaxFile, MaxUndo, MaxEntries and MaxList to 0 or more in files.Config")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, reeve.Errorf(reeve.Validation, "cannot resolve the folder for workspaces: %w", err)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot create the folder for workspaces: %w", err)
	}
	cfg.Dir = dir
	setDefault(&cfg.MaxFile, 10<<20)
	setDefault(&cfg.MaxUndo, 64<<20)
	setDefault(&cfg.MaxEntries, 20_000)
	setDefault(&cfg.MaxList, 1000)
	folders := &workspaceDir{path: cfg.Dir}
	projects := &projectAccess{projects: cfg.Projects}
	contents := &contentStore{blobs: cfg.Blobs, maxUndo: cfg.MaxUndo, maxEntries: cfg.MaxEntries}
	return &Pack{
		reader: &reader{workspaceDir: folders, projectAccess: projects, contentStore: contents,
			maxFile: cfg.MaxFile, maxList: cfg.MaxList},
		writer: &fileWriter{workspaceDir: folders, projectAccess: projects, contentStore: contents,
			onCreate: cfg.OnCreate},
		maxFile: cfg.MaxFile,
	}, nil
}

// setDefault sets *p to v if *p is zero.
func setDefault[T int | int64](p *T, v T) {
	if *p == 0 {
		*p = v
	}
}

// Tools returns the file tools.
func (p *Pack) Tools() []reeve.Tool {
	edit := &editor{fileWriter: p.writer, maxFile: p.maxFile}
	remove, restore := &deleter{p.writer}, &restorer{p.writer}
	vault := &vaultCopier{fileWriter: p.writer, maxFile: p.maxFile}
	tools := []reeve.Tool{
		p.readTool(), p.listTool(), p.searchTool(),
		edit.writeTool(), edit.editTool(), remove.deleteTool(), restore.restoreTool(),
		vault.vaultTool(),
	}
	for i := range tools {
		tools[i].CheckSettings = p.checkSettings
	}
	return tools
}

// Streams returns the writer of large files, which other packs use.
func (p *Pack) Streams() *Streams { return &Streams{p.writer} }

// Shared returns the folder behind a workspace's /shared and creates it if it is missing. Other packs use it to work in
// that folder directly.
func (p *Pack) Shared(workspace string) (string, error) {
	root, err := p.openRoot(rootSet{workspace: workspace}, "shared")
	if err != nil {
		return "", err
	}
	return filepath.Join(p.path, workspace, "shared"), root.Close()
}

// The capabilities that the tools require.
const (
	capRead  = "files.read"
	capWrite = "files.write"
	capVault = "vault.read"
)

const (
	readTimeout   = 10 * time.Second
	searchTimeout = 20 * time.Second
	writeTimeout  = 15 * time.Second
	vaultTimeout  = 30 * time.Second
)

// newTool returns a tool with the fields that all tools of the pack share.
func newTool(id, name, description, capability string, effect reeve.Effect, limit time.Duration) reeve.Tool {
	settings, _ := reeve.SchemaFor[projectConfig]() // cannot fail for a plain struct; a test covers it
	return reeve.Tool{ID: id, Name: name, Description: description, Capability: capability, Effect: effect,
		TimeoutMS: limit.Milliseconds(), Category: "filesystem", Pack: "files", ConfigSchema: settings,
		FileNameFields: []string{"path", "name", "next", "from", "to"}, Undoable: effect != reeve.Read}
}
