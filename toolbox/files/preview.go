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
	diffMost    = 64 << 10 // bytes of a diff that a caller is shown
	entriesMost = 200      // entries of a folder that are named to a caller
)

// lookAt looks at a target that must be a file or nothing.
func (p *Pack) lookAt(ctx context.Context, inv *reeve.Invocation, v vpath) (found, error) {
	g, err := p.ground(ctx, inv, v)
	if err != nil {
		return found{}, err
	}
	pl, err := p.at(g, v)
	if err != nil {
		return found{}, err
	}
	defer pl.close()
	return p.lookAtFile(ctx, pl)
}

// preview works a change out without making it.
func (p *Pack) preview(ctx context.Context, inv *reeve.Invocation, c change) (reeve.Preview, error) {
	old, err := p.lookAt(ctx, inv, c.path)
	if err != nil {
		return reeve.Preview{}, err
	}
	data, executable, err := c.next(old)
	if err != nil {
		return reeve.Preview{}, err
	}
	return reeve.Preview{Change: describeChange(inv, c.path, old, fileState(data, executable), data),
		Base: old.String()}, nil
}

// describeChange is the exact diff but for secrets. A caller is shown a summary that names both states instead when the
// diff is long or the file is not text; a person who decides is shown all of it.
func describeChange(inv *reeve.Invocation, v vpath, old found, after state, data []byte) string {
	if old.state == after {
		return "no change: " + v.String() + " holds exactly this\n"
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
		diff, _ := unifiedDiff(inv, from, to, escaped(old.data), escaped(data))
		return mode + "the file is not text: bytes that are no characters are written as \\x and two digits\n" + diff
	}
	return fmt.Sprintf("%s%s\n  before: %s, %d bytes\n  after:  %s, %d bytes\n", mode, v, old, len(old.data), after,
		len(data))
}

// escaped writes any bytes as text, in the same lines: what cannot be printed is escaped as in Go, and so is a
// backslash.
func escaped(data []byte) string {
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

// describeDelete is the diff that empties a file, or the list of what goes.
func describeDelete(inv *reeve.Invocation, v vpath, was found) string {
	switch was.kind {
	case folder:
		return "delete the folder " + v.String() + "\n" + describeFolder(inv, was.data)
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

// describeFolder lists an inventory, to a caller only the beginning of a long one, and the sum of all.
func describeFolder(inv *reeve.Invocation, inventory []byte) string {
	var records []record
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
		if i < entriesMost || inv.ForApprover {
			fmt.Fprintf(&b, "  %s %s (%d bytes)\n", r.Kind, r.Path, r.Size)
		}
	}
	if len(records) > entriesMost && !inv.ForApprover {
		fmt.Fprintf(&b, "  and %d more entries\n", len(records)-entriesMost)
	}
	fmt.Fprintf(&b, "in all %d entries, %d files, %d bytes\n", len(records), files, size)
	return b.String()
}

func (p *Pack) previewRestore(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[restoreArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	v, want, err := restorePath(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	g, err := p.fetch(ctx, inv.Workspace, v, want)
	if err != nil {
		return reeve.Preview{}, err
	}
	if g.kind == file || g.kind == program {
		return p.preview(ctx, inv, change{path: v, next: restoring(v, in, g)})
	}
	on, err := p.ground(ctx, inv, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	pl, err := p.at(on, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	defer pl.close()
	now, err := p.look(ctx, pl, nil)
	if err == nil {
		err = vacant(v, in, "", now.state, g.state)
	}
	if err != nil {
		return reeve.Preview{}, err
	}
	text := fmt.Sprintf("make the link %s to %q\n", v, g.data)
	if g.kind == folder {
		text = "make the folder " + v.String() + "\n" + describeFolder(inv, g.data)
	}
	for _, s := range g.skipped {
		text += "without the link " + s + ", which leads out of the root\n"
	}
	if g.kind == folder && inv.ForApprover {
		contents, err := p.describeContents(ctx, inv, v, g.records)
		if err != nil {
			return reeve.Preview{}, err
		}
		text += contents
	}
	return reeve.Preview{Change: text, Base: now.String()}, nil
}

// describeContents is the diff that makes the files of a folder.
func (p *Pack) describeContents(ctx context.Context, inv *reeve.Invocation, v vpath, records []record) (string, error) {
	var b strings.Builder
	left := p.cfg.MaxKeep
	for _, r := range records {
		if r.Kind != file && r.Kind != program {
			continue
		}
		data, err := p.kept(ctx, inv.Workspace, r.Hash)
		if err != nil {
			return "", err
		}
		if left -= int64(len(data)); left < 0 {
			return "", tooLarge(v, p.cfg.MaxKeep)
		}
		name, _ := r.names()
		if r.Path != `"`+name+`"` { // a line break in a name could be taken for a line of the diff
			name = r.Path
		}
		b.WriteString(describeChange(inv, v.child(name), found{state: state{kind: absent}}, state{r.Kind, r.Hash},
			data))
	}
	return b.String(), nil
}
