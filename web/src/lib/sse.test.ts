import { expect, it } from 'vitest';
import { SSEParser } from './sse';

const STREAM =
  ': hi\n\nid: e-1\nevent: change\ndata: {"topic":"runs",\ndata: "id":"r"}\n\nid: e-2\r\nevent: reset\r\ndata\r\n\r\n';
const WANT = [
  { id: 'e-1', event: 'change', data: '{"topic":"runs",\n"id":"r"}' },
  { id: 'e-2', event: 'reset', data: '' },
];

it('reads events in one piece', () => {
  expect(new SSEParser().push(STREAM)).toEqual(WANT);
});

it('reads the same events however the stream is cut', () => {
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const parser = new SSEParser();
    expect([...parser.push(STREAM.slice(0, cut)), ...parser.push(STREAM.slice(cut))]).toEqual(WANT);
  }
});
