package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"reeve"
)

type vaultArgs struct {
	From      string `json:"from" minLength:"1" maxLength:"4096" doc:"A file under /vault"`
	To        string `json:"to" minLength:"1" maxLength:"4096" doc:"File under /shared or /tmp. Missing folders are created"`
	Overwrite bool   `json:"overwrite,omitempty" doc:"True to replace an existing file"`
}

// vaultStep is the account of one half of a copy. Both halves carry the operation they belong to.
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

func (p *Pack) vaultTool() reeve.Tool {
	t := declare("vault_copyto", "Copy from vault",
		"Copy one file from /vault to /shared or /tmp, where the other file tools can read it. The vault "+
			"itself never changes.", capVault, reeve.Verifiable, vaultTime)
	// what leaves the vault can be read by everyone in the workspace
	t.Risk = reeve.HighRisk
	t.Identity, t.ConfigSchema = []string{"from", "to"}, nil // it has no /project
	t.Check = func(_ context.Context, inv *reeve.Invocation) error {
		in, err := reeve.Args[vaultArgs](inv)
		if err == nil {
			_, _, err = vaultPaths(in)
		}
		return err
	}
	t.Preview = p.previewVault
	t.Verify = p.verifyVault
	return reeve.MustTool(t, p.copyOut)
}

func vaultPaths(in vaultArgs) (from, to vpath, err error) {
	if from, err = vaultPath("from", in.From); err == nil {
		to, err = targetPath("to", in.To)
	}
	if err == nil && to.root == projectRoot {
		err = reeve.Errorf(reeve.Denied, "what is in the vault is not copied into a project").Hintf(rootsHint)
	}
	return from, to, err
}

// copyOut makes the two steps. It moves bytes between them and opens nothing itself.
func (p *Pack) copyOut(ctx context.Context, in vaultArgs) (vaultResult, error) {
	from, to, err := vaultPaths(in)
	if err != nil {
		return vaultResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	base, version := splitVaultBase(inv.Base)
	data, seen, err := p.readVault(ctx, inv.Workspace, from)
	if err != nil {
		return vaultResult{}, failedStep(err, "read", "nothing was copied")
	}
	if version != "" && version != seen {
		return vaultResult{}, movedOn(from)
	}
	d, err := p.writeCopy(ctx, inv, to, base, data, in.Overwrite)
	if err != nil {
		return vaultResult{}, failedStep(err, "write", fmt.Sprintf("step read was made: %s, %d bytes", from, len(data)))
	}
	report(inv, to, d)
	return vaultDone(inv, from, to, d, data), nil
}

// readVault is the first step: it sees the vault and nothing else.
func (p *Pack) readVault(ctx context.Context, workspace string, from vpath) (data []byte, version string, err error) {
	pl, err := p.at(ground{workspace: workspace}, from)
	if err != nil {
		return nil, "", err
	}
	defer pl.close()
	data, info, err := pl.bytes(ctx, p.cfg.MaxFile)
	if err != nil {
		return nil, "", err
	}
	return data, vaultVersion(info), nil
}

// writeCopy is the second step: it sees the destination and bytes of which it does not know the origin.
func (p *Pack) writeCopy(ctx context.Context, inv *reeve.Invocation, to vpath, base string, data []byte,
	overwrite bool) (done, error) {
	return p.replace(ctx, inv, ground{workspace: inv.Workspace},
		change{path: to, base: base, next: putting(to, data, overwrite)})
}

func vaultDone(inv *reeve.Invocation, from, to vpath, d done, data []byte) vaultResult {
	step := func(name string, v vpath) vaultStep {
		return vaultStep{Step: name, Path: v.String(), Size: len(data), Hash: reeve.Hash(data),
			Operation: inv.Operation}
	}
	return vaultResult{From: from.String(), To: to.String(), Created: d.before.kind == absent,
		Steps: []vaultStep{step("read", from), step("write", to)}}
}

// failedStep says which step an error is of, so that the account shows how far a copy got.
func failedStep(err error, step, rest string) error {
	e, ok := err.(*reeve.Error)
	if !ok {
		return err
	}
	c := *e
	c.Message = "step " + step + ": " + c.Message + "; " + rest
	return &c
}

// vaultVersion tells two contents of a vault file apart without saying anything of the content: a preview is not yet a
// permission to know it, and the hash of a short secret gives it away.
func vaultVersion(info fs.FileInfo) string {
	return reeve.Hash(fmt.Appendf(nil, "%d %d", info.Size(), info.ModTime().UnixNano()))[:16]
}

const vaultMark = " from vault:"

func splitVaultBase(base string) (dest, version string) {
	dest, version, _ = strings.Cut(base, vaultMark)
	return dest, version
}

// previewVault says what would be copied where. It looks at the vault file from outside and does not read it.
func (p *Pack) previewVault(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[vaultArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	from, to, err := vaultPaths(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	size, version, err := p.statVault(inv.Workspace, from)
	if err != nil {
		return reeve.Preview{}, failedStep(err, "read", "nothing was copied")
	}
	dest, err := p.lookAt(ctx, inv, to)
	if err == nil {
		_, _, err = putting(to, nil, in.Overwrite)(dest)
	}
	if err != nil {
		return reeve.Preview{}, failedStep(err, "write", "nothing was copied")
	}
	what := "a new file"
	if dest.kind != absent {
		what = fmt.Sprintf("replaces %d bytes, %s", len(dest.data), dest)
	}
	return reeve.Preview{Change: fmt.Sprintf("copy %s (%d bytes)\n  to %s (%s)\n", from, size, to, what),
		Base: dest.String() + vaultMark + version}, nil
}

func (p *Pack) statVault(workspace string, from vpath) (size int64, version string, err error) {
	pl, err := p.at(ground{workspace: workspace}, from)
	if err != nil {
		return 0, "", err
	}
	defer pl.close()
	f, info, err := pl.open()
	if err != nil {
		return 0, "", err
	}
	f.Close()
	if info.Size() > p.cfg.MaxFile {
		return 0, "", tooLarge(from, p.cfg.MaxFile)
	}
	return info.Size(), vaultVersion(info), nil
}

func (p *Pack) verifyVault(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[vaultArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	from, to, err := vaultPaths(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	base, version := splitVaultBase(inv.Base)
	data, seen, err := p.readVault(ctx, inv.Workspace, from)
	d := done{before: baseState(base)}
	if err == nil && (version == "" || version == seen) { // otherwise nobody knows any more what should have arrived
		d.after, d.size = fileState(data, d.before.kind == program), len(data)
	}
	o, _, err := p.settle(ctx, inv, to, d, base, "vault_copyto")
	return o, vaultDone(inv, from, to, d, data), err
}
