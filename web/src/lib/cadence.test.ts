import { expect, test } from 'vitest';
import { cadenceOf, NEVER_SET, whenOf } from './cadence';

test('C17 an interval is shown in its largest whole unit', () => {
  for (const [value, every, unit] of [
    ['2h', '2', 'h'],
    ['24h', '1', 'd'],
    ['1d', '1', 'd'],
    ['90m', '90', 'm'],
    ['1h30m', '90', 'm'],
    ['120m0s', '2', 'h'],
  ]) {
    expect(whenOf('interval', value!)).toMatchObject({ every, unit });
  }
});

test('C17 what a person enters becomes a cadence, and is shown again as entered', () => {
  for (const when of [
    { ...NEVER_SET, cron: '30 8 * * *' },
    { ...NEVER_SET, kind: 'interval' as const, every: '45', unit: 'm' as const },
    { ...NEVER_SET, kind: 'once' as const, at: '2027-03-01T07:00' },
  ]) {
    expect(whenOf(when.kind, cadenceOf(when))).toEqual(when);
  }
});

test('C17 an incomplete time is no cadence', () => {
  for (const when of [
    { ...NEVER_SET, cron: ' ' },
    { ...NEVER_SET, kind: 'interval' as const, every: '0' },
    { ...NEVER_SET, kind: 'once' as const, at: '' },
  ]) {
    expect(cadenceOf(when)).toBe('');
  }
});
