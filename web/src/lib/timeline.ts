import type { Tone } from '../ui/tone';

/** StepMessage is a message of a thread, as far as the timeline needs it. */
export interface StepMessage {
  id: string;
  kind: string;
  content: string;
  metadata?: unknown;
  action_id?: string;
  operation_id?: string;
  created_at: string;
}

/** TimelineRow is one step of a run. Times are milliseconds since 1970; end is absent while the step is open. */
export interface TimelineRow {
  id: string;
  kind: 'said' | 'answer' | 'call' | 'note';
  label: string;
  detail: string;
  tone: Tone;
  start: number;
  end?: number;
  operation?: string;
  isFailed: boolean;
  isParallel: boolean;
  attempts: number;
  text: string;
  result: string;
}

interface Meta {
  type?: string;
  tool?: string;
  status?: string;
  code?: string;
  message?: string;
  attempts?: number;
  spent?: { millis?: number; tokens?: number };
  answer?: { model?: string; parts?: { type: string; text?: string; name?: string }[] };
}

/** layoutTimeline turns the messages of a run into rows in time order. A call and its result are one row. */
export function layoutTimeline(messages: StepMessage[]): TimelineRow[] {
  const rows: TimelineRow[] = [];
  const calls = new Map<string, TimelineRow>();
  for (const m of messages) {
    const meta = (m.metadata ?? {}) as Meta;
    const at = Date.parse(m.created_at);
    const row: TimelineRow = {
      id: m.id, kind: 'note', label: m.kind, detail: '', tone: 'none', start: at, end: at, operation: m.operation_id,
      isFailed: false, isParallel: false, attempts: 0, text: m.content, result: '',
    };
    if (m.kind === 'tool_result') {
      const call = m.action_id ? calls.get(m.action_id) : undefined;
      if (call) {
        close(call, meta, at, m.content);
        call.operation ??= m.operation_id;
        continue;
      }
    }
    if (m.kind === 'action') {
      row.kind = 'call';
      row.label = meta.tool ?? 'call';
      row.tone = 'wait';
      row.end = undefined;
      calls.set(m.id, row);
    } else if (m.kind === 'thought') {
      row.kind = 'answer';
      row.label = meta.answer?.model ? `answer of ${meta.answer.model}` : 'answer';
      row.start = at - (meta.spent?.millis ?? 0);
      row.tone = 'run';
      row.detail = m.content || (meta.answer?.parts ?? []).filter((p) => p.name).map((p) => p.name).join(', ');
    } else if (m.kind === 'user') {
      row.kind = 'said';
      row.label = 'message';
      row.detail = m.content;
    } else {
      row.detail = m.content;
      row.isFailed = meta.status === 'error' || meta.type === 'error';
      if (row.isFailed) row.tone = 'bad';
    }
    rows.push(row);
  }
  rows.sort((a, b) => a.start - b.start || (a.id < b.id ? -1 : 1));
  let lastCall: TimelineRow | undefined;
  for (const row of rows) {
    if (row.kind !== 'call') continue;
    if (lastCall && (lastCall.end === undefined || row.start < lastCall.end))
      row.isParallel = lastCall.isParallel = true;
    if (!lastCall || (row.end ?? Infinity) > (lastCall.end ?? Infinity)) lastCall = row;
  }
  return rows;
}

function close(call: TimelineRow, meta: Meta, at: number, content: string): void {
  call.end = Math.max(at, call.start + (meta.spent?.millis ?? 0));
  if (at === call.start && meta.spent?.millis) {
    call.start = at - meta.spent.millis;
    call.end = at;
  }
  call.isFailed = meta.status !== undefined && meta.status !== 'success' && meta.status !== 'skipped';
  call.tone = meta.status === 'unknown' ? 'odd' : call.isFailed ? 'bad' : 'ok';
  call.attempts = meta.attempts ?? 0;
  call.detail = meta.message ?? (call.isFailed ? meta.code ?? content : '');
  call.result = content;
}

/** compactRows leaves out steps that succeeded quickly, but never a failure, a retry or an open step. */
export function compactRows(rows: TimelineRow[], total: number): TimelineRow[] {
  return rows.filter(
    (r) =>
      r.isFailed ||
      r.end === undefined ||
      r.attempts > 1 ||
      r.kind === 'said' ||
      r.kind === 'answer' ||
      r.end - r.start > total / 50,
  );
}

/** span returns the position of a row in a track, in percent. */
export function span(row: TimelineRow, from: number, to: number): { left: number; width: number } {
  const total = Math.max(1, to - from);
  const left = Math.min(100, Math.max(0, ((row.start - from) / total) * 100));
  const width = Math.min(100 - left, (((row.end ?? to) - row.start) / total) * 100);
  return { left, width: Math.max(0, width) };
}
