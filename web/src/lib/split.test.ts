import { expect, test } from 'vitest';
import { parsePreview } from './diff';
import { plainPatch, splitLines } from './split';

test('removed and added lines stand side by side', () => {
  const patch = '--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@\n one\n-two\n-three\n+2\n four\n';
  const rows = splitLines(parsePreview(patch).files[0]?.lines ?? []);
  expect(rows.map((r) => r.note ?? `${r.left?.text ?? ''}|${r.right?.text ?? ''}`))
    .toEqual(['@@ -1,4 +1,3 @@', 'one|one', 'two|2', 'three|', 'four|four']);
});

test('what only git reads is left out of a patch', () => {
  const patch = 'diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n one\n--- a/y\n';
  expect(plainPatch(patch)).toBe('--- x\n+++ x\n@@ -1,2 +1 @@\n one\n--- a/y\n');
});
