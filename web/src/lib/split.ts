import type { DiffLine } from './diff';

/** SplitRow is a row of a side-by-side diff. A side without a line is empty. A note spans both sides. */
export interface SplitRow {
  note?: string;
  left?: DiffLine;
  right?: DiffLine;
}

/** splitLines puts the lines of a diff side by side. Removed and added lines of one place share rows. */
export function splitLines(lines: DiffLine[]): SplitRow[] {
  const out: SplitRow[] = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] as DiffLine;
    if (line.kind === 'hunk' || line.kind === 'note') {
      out.push({ note: line.text });
      i++;
    } else if (line.kind === 'same') {
      out.push({ left: line, right: line });
      i++;
    } else {
      const removed: DiffLine[] = [];
      const added: DiffLine[] = [];
      for (; i < lines.length; i++) {
        const next = lines[i] as DiffLine;
        if (next.kind === 'del') removed.push(next);
        else if (next.kind === 'add') added.push(next);
        else break;
      }
      for (let j = 0; j < Math.max(removed.length, added.length); j++) out.push({ left: removed[j], right: added[j] });
    }
  }
  return out;
}

/** plainPatch drops what only git reads from a patch: the lines before each file, and the a/ and b/ of paths. */
export function plainPatch(patch: string): string {
  let isHead = false;
  const out: string[] = [];
  for (const line of patch.split('\n')) {
    if (line.startsWith('diff --git ')) isHead = true;
    else if (line.startsWith('@@')) isHead = false;
    if (!isHead) out.push(line);
    else if (/^(---|\+\+\+) /.test(line)) out.push(line.replace(/^(---|\+\+\+) [ab]\//, '$1 '));
    else if (/^Binary /.test(line)) out.push(line);
  }
  return out.join('\n');
}
