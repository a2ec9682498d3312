import { expect, it } from 'vitest';
import { compactRows, layoutTimeline, span, type StepMessage } from './timeline';

const at = (ms: number) => new Date(1_000_000 + ms).toISOString();
const call = (id: string, ms: number): StepMessage => ({
  id,
  kind: 'action',
  content: '{}',
  metadata: { tool: 'send' },
  created_at: at(ms),
});
const result = (id: string, action: string, ms: number, metadata: object): StepMessage => ({
  id,
  kind: 'tool_result',
  content: 'text',
  action_id: action,
  metadata,
  created_at: at(ms),
});

it('joins a call with its result, and marks failures and retries', () => {
  const [row] = layoutTimeline([
    call('a', 0),
    result('b', 'a', 40, { status: 'error', message: 'no', attempts: 3, spent: { millis: 40 } }),
  ]);
  expect(row).toMatchObject({ label: 'send', isFailed: true, tone: 'bad', attempts: 3, detail: 'no' });
  expect((row?.end ?? 0) - (row?.start ?? 0)).toBe(40);
});

it('marks calls that overlap as parallel, and calls without a result as open', () => {
  const rows = layoutTimeline([
    call('a', 0),
    call('b', 10),
    result('r', 'a', 50, { status: 'success' }),
    call('c', 90),
  ]);
  expect(rows.map((r) => r.isParallel)).toEqual([true, true, true]);
  expect(rows[1]?.end).toBeUndefined();
});

it('never leaves out what failed, was retried or is open', () => {
  const messages: StepMessage[] = [];
  for (let i = 0; i < 5000; i++) {
    messages.push(
      call(`a${i}`, i),
      result(`r${i}`, `a${i}`, i, { status: i % 100 === 0 ? 'error' : 'success', attempts: i % 250 === 1 ? 2 : 1 }),
    );
  }
  messages.push(call('open', 5001));
  const rows = layoutTimeline(messages);
  const shown = compactRows(rows, 5001);
  expect(rows).toHaveLength(5001);
  expect(shown.filter((r) => r.isFailed)).toHaveLength(50);
  expect(shown.filter((r) => r.attempts > 1)).toHaveLength(20);
  expect(shown.at(-1)?.id).toBe('open');
});

it('places a row within its track', () => {
  const [row] = layoutTimeline([call('a', 50)]);
  expect(row && span(row, 1_000_000, 1_000_100)).toEqual({ left: 50, width: 50 });
});
