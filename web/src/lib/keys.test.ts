import { expect, it } from 'vitest';
import { KeyMatcher, type Binding } from './keys';

const bind = (keys: string): Binding => ({ keys, label: keys, run: () => {} });
const BINDINGS = ['j', 'r', 'g i', 'g r'].map(bind);
const type = (m: KeyMatcher, keys: [string, number][]) => keys.map(([k, t]) => m.press(k, BINDINGS, t)?.keys ?? '');

it('finds single keys and sequences', () => {
  expect(type(new KeyMatcher(), [['j', 0], ['g', 10], ['r', 20], ['r', 30]])).toEqual(['j', '', 'g r', 'r']);
});

it('forgets a sequence after a second', () => {
  expect(type(new KeyMatcher(), [['g', 0], ['r', 1500]])).toEqual(['', 'r']);
});

it('starts again after a key that does not fit', () => {
  expect(type(new KeyMatcher(), [['g', 0], ['x', 10], ['g', 20], ['i', 30]])).toEqual(['', '', '', 'g i']);
});
