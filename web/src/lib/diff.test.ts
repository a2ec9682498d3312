import { describe, expect, it } from 'vitest';
import { diffLines, parsePreview } from './diff';

describe('parsePreview', () => {
  it('reads notes and the diff of each file with line numbers', () => {
    const p = parsePreview(
      'delete /a (3 bytes)\n--- /a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n' +
        '--- /b\n+++ /b\n@@ -2,2 +2,2 @@\n same\n-old\n+new\n',
    );
    expect(p.notes).toEqual(['delete /a (3 bytes)']);
    expect(p.files.map((f) => [f.from, f.to, f.added, f.removed])).toEqual([
      ['/a', '/dev/null', 0, 1],
      ['/b', '/b', 1, 1],
    ]);
    expect(p.files[1]?.lines.at(-1)).toEqual({ kind: 'add', text: 'new', new: 3 });
  });
  it('does not take changed lines for headers', () => {
    const p = parsePreview('--- a\n+++ b\n@@ -1,2 +1,2 @@\n--- minus\n-x\n+++ plus\n+y\n');
    expect(p.files).toHaveLength(1);
    expect(p.files[0]?.lines.map((l) => l.kind)).toEqual(['hunk', 'del', 'del', 'add', 'add']);
  });
  it('leaves nothing out', () => {
    const p = parsePreview('--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\nshell: rm -rf /\n');
    expect(p.files[0]?.lines.at(-1)).toEqual({ kind: 'note', text: 'shell: rm -rf /' });
  });
});

describe('diffLines', () => {
  it('keeps common lines and shows the rest', () => {
    expect(diffLines('a\nb\nc', 'a\nx\nc').map((l) => `${l.kind} ${l.text}`)).toEqual([
      'same a',
      'del b',
      'add x',
      'same c',
    ]);
  });
  it('rebuilds both texts', () => {
    for (let i = 0; i < 200; i++) {
      const make = () =>
        Array.from({ length: Math.floor(Math.random() * 12) }, () => 'abc'[Math.floor(Math.random() * 3)]).join('\n');
      const [a, b] = [make(), make()];
      const lines = diffLines(a, b);
      expect(lines.filter((l) => l.kind !== 'add').map((l) => l.text).join('\n')).toBe(a);
      expect(lines.filter((l) => l.kind !== 'del').map((l) => l.text).join('\n')).toBe(b);
    }
  });
});
