import { expect, it } from 'vitest';
import { splitControls } from './inert';

const names = (text: string) => splitControls(text).flatMap((p) => ('name' in p ? [p.name] : []));

it('names hidden and direction-changing characters', () => {
  expect(names('a\u202Eb\u2066c\u200Bd\uFEFF')).toEqual(['RLO', 'LRI', 'ZWSP', 'BOM']);
  expect(names('red\u001b[31mtext')).toEqual(['ESC[31m']);
  expect(names('\u{e0041}')).toEqual(['U+E0041']);
});

it('keeps ordinary text, emoji, Arabic, tabs and line ends', () => {
  expect(splitControls('Grüße 👍 مرحبا\t\n')).toEqual([{ text: 'Grüße 👍 مرحبا\t\n' }]);
});

it('loses nothing', () => {
  const text = 'x\u202Ey\u001b[0mz';
  expect(splitControls(text).map((p) => ('text' in p ? p.text : p.control)).join('')).toBe(text);
});
