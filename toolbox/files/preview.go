package files

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"reeve"
)

const (
	maxDiffBytes      = 64 << 10 // bytes of a diff in a preview for the caller
	maxPreviewEntries = 200      // entries of a folder in a preview for the caller
)

// readFileSnapshotAt is like readFileSnapshot but takes a path.
func (p *fileWriter) readFileSnapshotAt(ctx context.Context, inv *reeve.Invocation, v vpath) (snapshot, error) {
	roots, err := p.resolveRoots(ctx, inv, v)
	if err != nil {
		return snapshot{}, err
	}
	loc, err := p.locate(roots, v)
	if err != nil {
		return snapshot{}, err
	}
	defer loc.close()
	return p.readFileSnapshot(ctx, loc)
}

// preview describes a change without making it.
func (p *fileWriter) preview(ctx context.Context, inv *reeve.Invocation, c change) (reeve.Preview, error) {
	old, err := p.readFileSnapshotAt(ctx, inv, c.path)
	if err != nil {
		return reeve.Preview{}, err
	}
	data, executable, err := c.newContent(old)
	if err != nil {
		return reeve.Preview{}, err
	}
	return reeve.Preview{Change: renderChange(inv, c.path, old, fileState(data, executable), data),
		Base: old.String()}, nil
}

// renderChange returns the diff of a change with secrets removed. If the diff is long or the file is not text, the
// caller gets a summary that names both states instead. An approver always gets the diff.
func renderChange(inv *reeve.Invocation, v vpath, old snapshot, after state, data []byte) string {
	if old.state == after {
		return "no change: " + v.String() + " already has this content\n"
	}
	from, to := v.String(), v.String()
	if old.kind == absent {
		from = "/dev/null"
	}
	mode := ""
	if old.kind != absent && old.kind != after.kind {
		mode = fmt.Sprintf("mode of %s: %s becomes %s\n", v, old.kind, after.kind)
	}
	if isText(old.data) && isText(data) {
		if diff, ok := unifiedDiff(inv, from, to, string(old.data), string(data)); ok {
			return mode + diff
		}
	} else if inv.ForApprover {
		diff, _ := unifiedDiff(inv, from, to, escapeBytes(old.data), escapeBytes(data))
		return mode + "the file is not text; bytes that are not characters are shown as \\x and two digits\n" + diff
	}
	return fmt.Sprintf("%s%s\n  before: %s, %d bytes\n  after:  %s, %d bytes\n", mode, v, old, len(old.data), after,
		len(data))
}

// escapeBytes returns data as text with the same line breaks. It escapes unprintable characters and backslashes as in
// Go.
func escapeBytes(data []byte) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		text, ended := strings.CutSuffix(line, "\n")
		quoted := strconv.Quote(text)
		b.WriteString(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// renderDelete returns the diff that empties a file, or the list of a folder's entries.
func renderDelete(inv *reeve.Invocation, v vpath, was snapshot) string {
	switch was.kind {
	case folder:
		return "delete the folder " + v.String() + "\n" + renderInventory(inv, was.data)
	case link:
		return fmt.Sprintf("delete the link %s\n", v)
	case absent, file, program:
	}
	head := fmt.Sprintf("delete %s (%d bytes, %s)\n", v, len(was.data), was)
	if isText(was.data) {
		if diff, ok := unifiedDiff(inv, v.String(), "/dev/null", string(was.data), ""); ok {
			return head + diff
		}
	}
	return head
}

// renderInventory lists the entries of an inventory and their totals. Of a long inventory a caller gets only the first
// entries, an approver all of them.
func renderInventory(inv *reeve.Invocation, inventory []byte) string {
	var records []inventoryRecord
	if err := json.Unmarshal(inventory, &records); err != nil {
		return ""
	}
	var b strings.Builder
	var size int64
	files := 0
	for i, r := range records {
		if r.Kind == file || r.Kind == program {
			files++
			size += r.Size
		}
		if i < maxPreviewEntries || inv.ForApprover {
			fmt.Fprintf(&b, "  %s %s (%d bytes)\n", r.Kind, r.Path, r.Size)
		}
	}
	if len(records) > maxPreviewEntries && !inv.ForApprover {
		fmt.Fprintf(&b, "  and %d more entries\n", len(records)-maxPreviewEntries)
	}
	fmt.Fprintf(&b, "total: %d entries, %d files, %d bytes\n", len(records), files, size)
	return b.String()
}

func (p *restorer) previewRestore(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[restoreArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	v, want, err := parseRestoreArgs(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	src, err := p.getRestoreData(ctx, inv.Workspace, v, want)
	if err != nil {
		return reeve.Preview{}, err
	}
	if src.kind == file || src.kind == program {
		return p.preview(ctx, inv, change{path: v, newContent: restoreContent(v, in, src)})
	}
	roots, err := p.resolveRoots(ctx, inv, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	loc, err := p.locate(roots, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	defer loc.close()
	now, err := p.readSnapshot(ctx, loc, nil)
	if err == nil {
		err = checkRestoreTarget(v, in, "", now.state, src.state)
	}
	if err != nil {
		return reeve.Preview{}, err
	}
	text := fmt.Sprintf("create the link %s to %q\n", v, src.data)
	if src.kind == folder {
		text = "create the folder " + v.String() + "\n" + renderInventory(inv, src.data)
	}
	for _, s := range src.skipped {
		text += "not restored: " + s + "\n"
	}
	if src.kind == folder && inv.ForApprover {
		contents, err := p.renderFolderContents(ctx, inv, v, src.records)
		if err != nil {
			return reeve.Preview{}, err
		}
		text += contents
	}
	return reeve.Preview{Change: text, Base: now.String()}, nil
}

// renderFolderContents returns the diffs that create the files of a folder.
func (p *restorer) renderFolderContents(ctx context.Context, inv *reeve.Invocation, v vpath,
	records []inventoryRecord) (string, error) {
	var b strings.Builder
	remaining := p.maxUndo
	for _, r := range records {
		if r.Kind != file && r.Kind != program {
			continue
		}
		data, err := p.getBlob(ctx, inv.Workspace, r.Hash)
		if err != nil {
			return "", err
		}
		if remaining -= int64(len(data)); remaining < 0 {
			return "", tooLargeError(v, p.maxUndo)
		}
		name, _ := r.unquoteNames()
		if r.Path != `"`+name+`"` { // keep it quoted: a line break in a name could look like a line of the diff
			name = r.Path
		}
		b.WriteString(renderChange(inv, v.child(name), snapshot{state: state{kind: absent}}, state{r.Kind, r.Hash},
			data))
	}
	return b.String(), nil
}
