import { expect, test } from 'vitest';
import { parsePreview } from './diff';
import { splitLines } from './split';

test('removed and added lines stand side by side', () => {
  const patch = '--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@\n one\n-two\n-three\n+2\n four\n';
  const rows = splitLines(parsePreview(patch).files[0]?.lines ?? []);
  expect(rows.map((r) => r.note ?? `${r.left?.text ?? ''}|${r.right?.text ?? ''}`))
    .toEqual(['@@ -1,4 +1,3 @@', 'one|one', 'two|2', 'three|', 'four|four']);
});
