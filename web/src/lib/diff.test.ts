import { describe, expect, it } from 'vitest';
import { compareArgs, diffLines, parsePreview } from './diff';

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

describe('compareArgs', () => {
  const compare = (before: unknown, after: unknown) =>
    compareArgs(JSON.stringify(before), JSON.stringify(after)).map((l) => `${l.kind} ${l.text}`);
  it('compares texts line by line, and other arguments as values', () => {
    expect(compare({ path: '/a', n: 1, content: 'one\ntwo\n' }, { path: '/a', n: 2, content: 'one\n2\n' })).toEqual([
      'same path: /a', 'del n: 1', 'add n: 2', 'hunk content', 'same one', 'del two', 'add 2', 'same ',
    ]);
  });
  it('shows arguments that only one call has', () => {
    expect(compare({ a: 'x' }, { b: 'y\nz' })).toEqual(['del a: x', 'hunk b', 'add y', 'add z']);
  });
  it('counts the lines far from a change', () => {
    const text = Array.from({ length: 20 }, (_, i) => `line ${i}`);
    expect(compare({ t: text.join('\n') }, { t: text.with(10, 'new').join('\n') })).toEqual([
      'hunk t', 'note 7 lines are the same', 'same line 7', 'same line 8', 'same line 9', 'del line 10', 'add new',
      'same line 11', 'same line 12', 'same line 13', 'note 6 lines are the same',
    ]);
  });
  it('compares anything else as JSON', () => {
    expect(compare([1], [2])).toEqual(['same [', 'del   1', 'add   2', 'same ]']);
  });
});
