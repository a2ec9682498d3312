import { expect, test } from 'vitest';
import { changedFields, mergeChanges } from './changes';

test('only fields that were changed are sent', () => {
  const first = { name: 'a', goal: 'b', tags: ['x'] };
  expect(changedFields(first, { ...first, tags: ['x'] })).toEqual({});
  expect(changedFields(first, { ...first, goal: 'c', tags: ['x', 'y'] })).toEqual({ goal: 'c', tags: ['x', 'y'] });
});

test('what somebody else changed meanwhile stays', () => {
  const first = { model: 'm', notes: true, variables: { a: 1 } };
  const mine = { model: 'm', max_tokens: 9, variables: { a: 1 } };
  const latest = { model: 'other', notes: true, variables: { a: 2 }, effort: 'low' };
  expect(mergeChanges(first, mine, latest)).toEqual({
    model: 'other', max_tokens: 9, variables: { a: 2 }, effort: 'low',
  });
});
