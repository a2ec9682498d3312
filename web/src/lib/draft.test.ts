import { expect, test } from 'vitest';
import { keepDraft, ownDrafts, readDraft } from './draft';

function newStore(): Storage {
  const values = new Map<string, string>();
  return {
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => {
      if (value.length > 20) throw new Error('full');
      values.set(key, value);
    },
    removeItem: (key: string) => void values.delete(key),
    clear: () => values.clear(),
    get length() {
      return values.size;
    },
  } as Storage;
}

test('a draft belongs to its key, and is gone once it is empty', () => {
  const store = newStore();
  keepDraft(store, 'one', 'hello');
  expect(readDraft(store, 'one')).toBe('hello');
  expect(readDraft(store, 'two')).toBe('');
  keepDraft(store, 'one', '');
  expect(readDraft(store, 'one')).toBe('');
  expect(store.length).toBe(0);
});

test('a full storage does not break the field', () => {
  const store = newStore();
  expect(() => keepDraft(store, 'one', 'x'.repeat(21))).not.toThrow();
});

test('another person does not see the drafts of the one before', () => {
  const store = newStore();
  ownDrafts(store, 'ann');
  keepDraft(store, 'one', 'hello');
  ownDrafts(store, 'ann');
  expect(readDraft(store, 'one')).toBe('hello');
  ownDrafts(store, 'ben');
  expect(readDraft(store, 'one')).toBe('');
});
