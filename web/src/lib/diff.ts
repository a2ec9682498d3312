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

/** CONTEXT is how many unchanged lines are shown around a change. */
const CONTEXT = 3;

/**
 * compareArgs compares the arguments of two calls one by one. Texts are compared line by line. Lines far from a change
 * are counted, not shown.
 */
export function compareArgs(before: string, after: string): DiffLine[] {
  const [a, b] = [readObject(before), readObject(after)];
  if (!a || !b) return diffLines(prettyJSON(before), prettyJSON(after));
  const out: DiffLine[] = [];
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [old, now] = [showValue(a[name]), showValue(b[name])];
    const isLong = [old, now].some((text) => text !== undefined && (text.length > 120 || text.includes('\n')));
    if (isLong) {
      out.push({ kind: 'hunk', text: name });
      if (old === undefined) out.push(...linesOf('add', now));
      else if (now === undefined) out.push(...linesOf('del', old));
      else out.push(...foldSame(diffLines(old, now)));
    } else if (old === now) {
      out.push({ kind: 'same', text: `${name}: ${now}` });
    } else {
      if (old !== undefined) out.push({ kind: 'del', text: `${name}: ${old}` });
      if (now !== undefined) out.push({ kind: 'add', text: `${name}: ${now}` });
    }
  }
  return out;
}

function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

function showValue(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

function linesOf(kind: 'add' | 'del', text = ''): DiffLine[] {
  return text.split('\n').map((line, i) => ({ kind, text: line, [kind === 'add' ? 'new' : 'old']: i + 1 }));
}

// foldSame replaces long runs of unchanged lines by their number.
function foldSame(lines: DiffLine[]): DiffLine[] {
  const isNear = lines.map((_, i) => lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((l) => l.kind !== 'same'));
  const out: DiffLine[] = [];
  for (let i = 0; i < lines.length; ) {
    let end = i;
    while (end < lines.length && !isNear[end]) end++;
    if (end - i > 1) {
      out.push({ kind: 'note', text: `${end - i} lines are the same` });
      i = end;
    } else {
      const line = lines[i++];
      if (line) out.push(line);
    }
  }
  return out;
}
