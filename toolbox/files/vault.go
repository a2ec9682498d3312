package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"reeve"
)

type vaultArgs struct {
	From string `json:"from" minLength:"1" maxLength:"4096" doc:"A file under /vault"`
	To   string `json:"to" minLength:"1" maxLength:"4096" doc:"File under /shared or /tmp. Creates missing folders"`

	Overwrite bool `json:"overwrite,omitempty" doc:"True to replace an existing file"`
}

// vaultStep describes one step of a copy, for audits. Both steps have the id of the operation.
type vaultStep struct {
	Step      string `json:"step" doc:"read or write"`
	Path      string `json:"path"`
	Size      int    `json:"size"`
	Hash      string `json:"sha256"`
	Operation string `json:"operation_id"`
}

type vaultResult struct {
	From    string      `json:"from"`
	To      string      `json:"to"`
	Created bool        `json:"created" doc:"True if the copy is a new file"`
	Steps   []vaultStep `json:"steps"`
}

// vaultCopier is the tool that copies files out of the vault.
type vaultCopier struct {
	*fileWriter
	maxFile int64
}

func (p *vaultCopier) vaultTool() reeve.Tool {
	t := newTool("vault_copyto", "Copy from vault",
		"Copy one file from /vault to /shared or /tmp, where the other file tools can read it. The vault "+
			"itself never changes.", capVault, reeve.Verifiable, vaultTimeout)
	// Everyone in the workspace can read the copy.
	t.Risk = reeve.HighRisk
	t.Identity = []string{"from", "to"}
	t.ConfigSchema = nil // no setting project, because the tool cannot write to /project
	t.Check = func(_ context.Context, inv *reeve.Invocation) error {
		in, err := reeve.Args[vaultArgs](inv)
		if err == nil {
			_, _, err = parseVaultPaths(in)
		}
		return err
	}
	t.Preview = p.previewVault
	t.Verify = p.verifyVault
	return reeve.MustTool(t, p.copyFromVault)
}

func parseVaultPaths(in vaultArgs) (from, to vpath, err error) {
	if from, err = parseVaultPath("from", in.From); err == nil {
		to, err = parseWritePath("to", in.To)
	}
	if err == nil && to.root == projectRoot {
		err = reeve.Errorf(reeve.Denied, "files from the vault cannot be copied into a project").Hintf(rootsHint)
	}
	return from, to, err
}

// copyFromVault runs the two steps and passes the bytes from one to the other. It opens no file itself.
func (p *vaultCopier) copyFromVault(ctx context.Context, in vaultArgs) (vaultResult, error) {
	from, to, err := parseVaultPaths(in)
	if err != nil {
		return vaultResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	base, version := splitVaultBase(inv.Base)
	data, seen, err := p.readVault(ctx, inv.Workspace, from)
	if err != nil {
		return vaultResult{}, addStep(err, "read", "nothing was copied")
	}
	if version != "" && version != seen {
		return vaultResult{}, staleError(from)
	}
	d, err := p.writeCopy(ctx, inv, to, base, data, in.Overwrite)
	if err != nil {
		return vaultResult{}, addStep(err, "write", fmt.Sprintf("step read succeeded: %s, %d bytes", from, len(data)))
	}
	reportChange(inv, to, d)
	return newVaultResult(inv, from, to, d, data), nil
}

// readVault reads the file from the vault. It is the first step of a copy and has access to nothing but the vault.
func (p *vaultCopier) readVault(ctx context.Context, workspace string, from vpath) (data []byte,
	version string, err error) {
	loc, err := p.locate(rootSet{workspace: workspace}, from)
	if err != nil {
		return nil, "", err
	}
	defer loc.close()
	data, info, err := loc.readFile(ctx, p.maxFile)
	if err != nil {
		return nil, "", err
	}
	return data, vaultVersion(info), nil
}

// writeCopy is the second step. It has access to the destination and nothing else.
func (p *vaultCopier) writeCopy(ctx context.Context, inv *reeve.Invocation, to vpath, base string, data []byte,
	overwrite bool) (changeResult, error) {
	return p.replace(ctx, inv, rootSet{workspace: inv.Workspace},
		change{path: to, base: base, newContent: writeContent(to, data, overwrite)})
}

func newVaultResult(inv *reeve.Invocation, from, to vpath, d changeResult, data []byte) vaultResult {
	step := func(name string, v vpath) vaultStep {
		return vaultStep{Step: name, Path: v.String(), Size: len(data), Hash: reeve.Hash(data),
			Operation: inv.Operation}
	}
	return vaultResult{From: from.String(), To: to.String(), Created: d.before.kind == absent,
		Steps: []vaultStep{step("read", from), step("write", to)}}
}

// addStep adds the failed step to an error, and rest, which says how far the copy got.
func addStep(err error, step, rest string) error {
	e, ok := err.(*reeve.Error)
	if !ok {
		return err
	}
	c := *e
	c.Message = "step " + step + ": " + c.Message + "; " + rest
	return &c
}

// vaultVersion returns a version of a vault file that depends on its size and modification time only. A preview shows
// the version before the copy is approved, so the version must not reveal the content, as the hash of a short secret
// would.
func vaultVersion(info fs.FileInfo) string {
	return reeve.Hash(fmt.Appendf(nil, "%d %d", info.Size(), info.ModTime().UnixNano()))[:16]
}

// vaultBaseSeparator separates the state of the destination from the version of the vault file in a base.
const vaultBaseSeparator = " from vault:"

func splitVaultBase(base string) (dest, version string) {
	dest, version, _ = strings.Cut(base, vaultBaseSeparator)
	return dest, version
}

// previewVault describes the copy. It opens the vault file for its size but does not read it.
func (p *vaultCopier) previewVault(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[vaultArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	from, to, err := parseVaultPaths(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	size, version, err := p.statVault(inv.Workspace, from)
	if err != nil {
		return reeve.Preview{}, addStep(err, "read", "nothing was copied")
	}
	dest, err := p.readFileSnapshotAt(ctx, inv, to)
	if err == nil {
		_, _, err = writeContent(to, nil, in.Overwrite)(dest)
	}
	if err != nil {
		return reeve.Preview{}, addStep(err, "write", "nothing was copied")
	}
	what := "a new file"
	if dest.kind != absent {
		what = fmt.Sprintf("replaces %d bytes, %s", len(dest.data), dest)
	}
	return reeve.Preview{Change: fmt.Sprintf("copy %s (%d bytes)\n  to %s (%s)\n", from, size, to, what),
		Base: dest.String() + vaultBaseSeparator + version}, nil
}

func (p *vaultCopier) statVault(workspace string, from vpath) (size int64, version string, err error) {
	loc, err := p.locate(rootSet{workspace: workspace}, from)
	if err != nil {
		return 0, "", err
	}
	defer loc.close()
	f, info, err := loc.openFile()
	if err != nil {
		return 0, "", err
	}
	f.Close()
	if info.Size() > p.maxFile {
		return 0, "", tooLargeError(from, p.maxFile)
	}
	return info.Size(), vaultVersion(info), nil
}

func (p *vaultCopier) verifyVault(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[vaultArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	from, to, err := parseVaultPaths(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	base, version := splitVaultBase(inv.Base)
	data, seen, err := p.readVault(ctx, inv.Workspace, from)
	d := changeResult{before: parseBase(base)}
	// If the vault file has changed since the preview, the copied bytes are unknown.
	if err == nil && (version == "" || version == seen) {
		d.after, d.size = fileState(data, d.before.kind == program), len(data)
	}
	o, _, err := p.verifyChange(ctx, inv, to, d, base, "vault_copyto")
	return o, newVaultResult(inv, from, to, d, data), err
}
