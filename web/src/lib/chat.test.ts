import { expect, it } from 'vitest';
import { addFrame, EMPTY_LOG, type Frame } from './chat';

const FRAMES: Frame[] = [
  { seq: 1, type: 'turn_started', turn_id: 't', user_id: 'ada', text: 'hi' },
  { seq: 2, type: 'token', turn_id: 't', text: 'Let ' },
  { seq: 3, type: 'token', turn_id: 't', text: 'me' },
  { seq: 4, type: 'message_complete', turn_id: 't', text: 'Let me look.' },
  { seq: 5, type: 'tool_started', turn_id: 't', tool_call_id: 'c', tool: 'list', args: {} },
  { seq: 6, type: 'approval_required', turn_id: 't', tool_call_id: 'c', approval_id: 'apr' },
  { seq: 7, type: 'tool_result', turn_id: 't', tool_call_id: 'c', content: '2' },
  { seq: 8, type: 'turn_complete', turn_id: 't', state: 'completed' },
];

it('shows each frame once, also when frames arrive again', () => {
  const once = FRAMES.reduce(addFrame, EMPTY_LOG);
  const twice = [...FRAMES, ...FRAMES.slice(3)].reduce(addFrame, EMPTY_LOG);
  expect(twice).toEqual(once);
  expect(once.lines.map((l) => l.kind)).toEqual(['person', 'answer', 'tool']);
  expect(once.openTurns).toEqual([]);
  expect(once.lines[2]).toMatchObject({ result: '2', approval: 'apr' });
});

it('streams tokens and drops them on discard', () => {
  const log = [...FRAMES.slice(0, 3), { seq: 3.5, type: 'token', turn_id: 't', discard: true, text: 'New' }].reduce(
    addFrame,
    EMPTY_LOG,
  );
  expect(log.lines.at(-1)).toMatchObject({ kind: 'answer', text: 'New', isOpen: true });
});

it('tells a cancelled call from one that failed', () => {
  const call = (seq: number, id: string, code: string): Frame[] => [
    { seq, type: 'tool_started', turn_id: 't', tool_call_id: id, tool: 'order', args: {} },
    { seq: seq + 1, type: 'tool_result', turn_id: 't', tool_call_id: id, content: 'no', is_error: true, code },
  ];
  const log = [
    ...call(1, 'a', 'TOOL_FAILED'),
    ...call(3, 'b', 'CANCELED'),
    { seq: 5, type: 'turn_complete', turn_id: 't', state: 'cancelled' },
  ].reduce(addFrame, EMPTY_LOG);
  expect(log.lines.map((l) => l.kind === 'tool' && Boolean(l.isCancelled))).toEqual([false, true, false]);
});
