import { expect, it } from 'vitest';
import { KeyMatcher, TypingGuard, TYPING_PAUSE, type Binding } from './keys';

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

it('takes letters after typed text for text until the person pauses', () => {
  const guard = new TypingGuard();
  expect(guard.swallows('a', 0)).toBe(false);
  guard.typed('x', 100);
  expect([guard.swallows('a', 200), guard.swallows('d', 200 + TYPING_PAUSE)]).toEqual([true, true]);
  expect(guard.swallows('a', 300 + 2 * TYPING_PAUSE)).toBe(false);
});

it('takes a key for a shortcut after Escape, Enter, Tab or a click', () => {
  const guard = new TypingGuard();
  for (const key of ['Escape', 'Enter', 'Tab']) {
    guard.typed('x', 0);
    guard.typed(key, 10);
    expect(guard.swallows('a', 20)).toBe(false);
  }
  guard.typed('x', 0);
  guard.ended();
  expect(guard.swallows('a', 20)).toBe(false);
  guard.typed('x', 0);
  expect([guard.swallows('Enter', 10), guard.swallows('a', 20)]).toEqual([true, false]);
});
