/** DiffLine is a line of a diff. old and new are line numbers, if the line exists on that side. */
export interface DiffLine {
  kind: 'same' | 'add' | 'del' | 'hunk' | 'note';
  text: string;
  old?: number;
  new?: number;
}

/** FileDiff is the change of one file. */
export interface FileDiff {
  from: string;
  to: string;
  lines: DiffLine[];
  added: number;
  removed: number;
}

/** Preview is what a call would change: notes in words, then a diff for each file. */
export interface Preview {
  notes: string[];
  files: FileDiff[];
}

/** parsePreview reads a preview. Text outside unified diffs becomes notes, so nothing is left out. */
export function parsePreview(text: string): Preview {
  const out: Preview = { notes: [], files: [] };
  const lines = text.replace(/\n$/, '').split('\n');
  let file: FileDiff | undefined;
  let oldLeft = 0;
  let newLeft = 0;
  let oldLine = 0;
  let newLine = 0;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    if (file && (oldLeft > 0 || newLeft > 0) && /^[ +\-\\]|^$/.test(line)) {
      const rest = line.slice(1);
      if (line.startsWith('+')) {
        file.lines.push({ kind: 'add', text: rest, new: newLine++ });
        file.added++;
        newLeft--;
      } else if (line.startsWith('-')) {
        file.lines.push({ kind: 'del', text: rest, old: oldLine++ });
        file.removed++;
        oldLeft--;
      } else if (line.startsWith('\\')) {
        file.lines.push({ kind: 'note', text: line.slice(2) });
      } else {
        file.lines.push({ kind: 'same', text: rest, old: oldLine++, new: newLine++ });
        oldLeft--;
        newLeft--;
      }
      continue;
    }
    const next = lines[i + 1] ?? '';
    if (line.startsWith('--- ') && next.startsWith('+++ ')) {
      file = { from: line.slice(4), to: next.slice(4), lines: [], added: 0, removed: 0 };
      out.files.push(file);
      i++;
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (file && hunk) {
      oldLine = Number(hunk[1]);
      newLine = Number(hunk[3]);
      oldLeft = hunk[2] === undefined ? 1 : Number(hunk[2]);
      newLeft = hunk[4] === undefined ? 1 : Number(hunk[4]);
      file.lines.push({ kind: 'hunk', text: line });
      continue;
    }
    if (file && line.startsWith('\\')) file.lines.push({ kind: 'note', text: line.slice(2) });
    else if (file) file.lines.push({ kind: 'note', text: line });
    else if (line !== '') out.notes.push(line);
  }
  return out;
}

/** diffLines compares two texts line by line and returns all lines. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const out: DiffLine[] = [];
  const same = (from: number, to: number, shift: number) => {
    for (let i = from; i < to; i++) out.push({ kind: 'same', text: a[i] ?? '', old: i + 1, new: i + 1 + shift });
  };
  same(0, start, 0);
  middle(a, b, start, a.length - end, b.length - end, out);
  same(a.length - end, a.length, b.length - a.length);
  return out;
}

// middle appends the part in which two texts differ. It finds the longest common subsequence, unless that would take too much memory.
function middle(a: string[], b: string[], start: number, aEnd: number, bEnd: number, out: DiffLine[]): void {
  const n = aEnd - start;
  const m = bEnd - start;
  const width = m + 1;
  const table = n * m <= 4_000_000 ? new Uint32Array((n + 1) * width) : null;
  if (table) {
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        table[i * width + j] =
          a[start + i] === b[start + j]
            ? (table[(i + 1) * width + j + 1] ?? 0) + 1
            : Math.max(table[(i + 1) * width + j] ?? 0, table[i * width + j + 1] ?? 0);
      }
    }
  }
  let i = 0;
  let j = 0;
  while (i < n || j < m) {
    if (table && i < n && j < m && a[start + i] === b[start + j]) {
      out.push({ kind: 'same', text: a[start + i] ?? '', old: start + i + 1, new: start + j + 1 });
      i++;
      j++;
    } else if (i < n && (j >= m || !table || (table[(i + 1) * width + j] ?? 0) >= (table[i * width + j + 1] ?? 0))) {
      out.push({ kind: 'del', text: a[start + i] ?? '', old: start + i + 1 });
      i++;
    } else {
      out.push({ kind: 'add', text: b[start + j] ?? '', new: start + j + 1 });
      j++;
    }
  }
}

/** prettyJSON formats JSON text with two spaces. Text that is not JSON is returned as it is. */
export function prettyJSON(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
