import { expect, it } from 'vitest';
import { describeField, explainRefusal, isField } from './problem';

const refuse = (message: string, hint: string, fields: { path: string; message: string }[] = [], status = 422) =>
  explainRefusal({ status, message, hint, fields });

it('says what is wrong with a field in the words of a person', () => {
  expect(describeField('expected length >= 1')).toBe('is required');
  expect(describeField('is missing (expected a value)')).toBe('is required');
  expect(describeField('expected string to match pattern ^[a-z]+$')).toBe('has characters that are not allowed here');
  expect(describeField('expected number >= 5')).toBe('must be at least 5');
  expect(describeField('no such agent')).toBe('no such agent');
});

it('leaves out what is for programs', () => {
  const said = refuse('invalid request: /goal expected length >= 1', 'correct the fields listed in errors; see /openapi.json',
    [{ path: '/goal', message: 'expected length >= 1' }]);
  expect(said).toEqual({
    title: 'One field needs a correction.', hint: '', fields: [{ path: '/goal', message: 'is required' }],
  });
  expect(refuse('the bearer token is not valid', 'ask an owner')).toMatchObject(
    { title: 'The access token is not valid.', hint: 'Ask an owner.' });
});

it('says what may have become of a missing entry', () => {
  expect(refuse('run not found', 'check the id and the workspace; list the entries', [], 404).hint)
    .toBe('It was deleted, or belongs to another workspace.');
});

it('finds the field of a path', () => {
  expect(isField('/limit/calls', 'calls')).toBe(true);
  expect(isField('path/name', 'name')).toBe(true);
  expect(isField('/args/content', 'args/content')).toBe(true);
  expect(isField('/rename', 'name')).toBe(false);
});
