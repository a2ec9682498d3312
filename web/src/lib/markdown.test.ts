import { expect, it } from 'vitest';
import { parseInline, parseMarkdown } from './markdown';

it('reads blocks', () => {
  const kinds = parseMarkdown(
    '# A\n\ntext\n\n- one\n- two\n  - deep\n\n1. x\n\n> q\n\n```js\n<b>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
  ).map((b) => b.kind);
  expect(kinds).toEqual(['h', 'p', 'list', 'list', 'quote', 'code', 'table']);
});

it('keeps HTML and images as text and refuses script links', () => {
  expect(parseInline('<img src=x onerror=alert(1)>')).toEqual([{ kind: 'text', text: '<img src=x onerror=alert(1)>' }]);
  expect(parseInline('[x](javascript:alert)').every((p) => p.kind === 'text')).toBe(true);
  expect(parseInline('![x](https://evil/x.png)').every((p) => p.kind === 'text')).toBe(true);
  expect(parseInline('[x](https://a.b)')[0]).toMatchObject({ kind: 'link', href: 'https://a.b' });
});

it('ends on any input', () => {
  for (const text of [
    '**'.repeat(5000),
    '`'.repeat(5000),
    '> '.repeat(500),
    '- '.repeat(500),
    '[['.repeat(3000),
    '*_'.repeat(3000),
  ]) {
    expect(parseMarkdown(text).length).toBeGreaterThan(0);
  }
});
