/** Frame is an event of a conversation. */
export interface Frame {
  seq?: number;
  type: string;
  turn_id?: string;
  message_id?: string;
  agent_id?: string;
  user_id?: string;
  text?: string;
  at?: string;
  tool?: string;
  tool_call_id?: string;
  args?: unknown;
  content?: string;
  is_error?: boolean;
  approval_id?: string;
  operation_id?: string;
  preview?: string;
  state?: string;
  code?: string;
  message?: string;
  hint?: string;
  reasoning?: boolean;
  discard?: boolean;
  cut?: string;
  last_seq?: number;
  attachments?: { media_type: string; name?: string; hash?: string }[];
}

/** Line is what a conversation shows. */
export type Line =
  | { kind: 'person'; key: string; who: string; text: string; turn: string; attachments: Frame['attachments'] }
  | { kind: 'answer'; key: string; text: string; turn: string; isOpen: boolean; cut: string; agent: string }
  | {
      kind: 'tool';
      key: string;
      turn: string;
      tool: string;
      args: unknown;
      result?: string;
      isFailed: boolean;
      isCancelled?: boolean; // the turn was cancelled before the outcome came
      approval?: string;
      preview?: string;
      operation?: string;
    }
  | { kind: 'media'; key: string; turn: string; text: string; attachments: NonNullable<Frame['attachments']> }
  | { kind: 'end'; key: string; turn: string; state: string; message: string };

/** Log is the state of a conversation after some frames. */
export interface Log {
  seq: number;
  lines: Line[];
  openTurns: string[];
}

export const EMPTY_LOG: Log = { seq: 0, lines: [], openTurns: [] };

/** addFrame returns the log with one more frame. A frame that the log already has changes nothing. */
export function addFrame(log: Log, f: Frame): Log {
  if (f.seq !== undefined && f.type !== 'connected') {
    if (f.seq <= log.seq) return log;
    log = { ...log, seq: f.seq };
  }
  const turn = f.turn_id ?? '';
  const key = `${f.type}-${f.seq ?? `${log.lines.length}`}`;
  const add = (line: Line): Log => ({ ...log, lines: [...withoutOpen(log.lines, line), line] });
  switch (f.type) {
    case 'turn_started':
      log = { ...log, openTurns: [...log.openTurns, turn] };
      return add({ kind: 'person', key, who: f.user_id ?? '', text: f.text ?? '', turn, attachments: f.attachments });
    case 'token': {
      if (f.reasoning) return log;
      const at = log.lines.findLastIndex((l) => l.kind === 'answer' && l.turn === turn && l.isOpen);
      const old = log.lines[at];
      const text = (f.discard || old?.kind !== 'answer' ? '' : old.text) + (f.text ?? '');
      if (old?.kind !== 'answer')
        return add({ kind: 'answer', key, text, turn, isOpen: true, cut: '', agent: f.agent_id ?? '' });
      return { ...log, lines: log.lines.with(at, { ...old, text }) };
    }
    case 'message_complete':
      return add({
        kind: 'answer',
        key,
        text: f.text ?? '',
        turn,
        isOpen: false,
        cut: f.cut ?? '',
        agent: f.agent_id ?? '',
      });
    case 'tool_started':
      return add({ kind: 'tool', key: f.tool_call_id ?? key, turn, tool: f.tool ?? '', args: f.args, isFailed: false });
    case 'approval_required':
    case 'tool_result': {
      const at = log.lines.findLastIndex((l) => l.kind === 'tool' && l.turn === turn && l.key === f.tool_call_id);
      const old = log.lines[at];
      const base: Line & { kind: 'tool' } =
        old?.kind === 'tool'
          ? old
          : { kind: 'tool', key: f.tool_call_id ?? key, turn, tool: f.tool ?? '', args: f.args, isFailed: false };
      const next: Line =
        f.type === 'tool_result'
          ? {
              ...base,
              result: f.content ?? f.message ?? '',
              isFailed: f.is_error ?? false,
              isCancelled: f.is_error && f.code === 'CANCELED',
              operation: f.operation_id ?? base.operation,
            }
          : {
              ...base,
              approval: f.approval_id,
              preview: f.preview,
              operation: f.operation_id,
              args: f.args ?? base.args,
            };
      return at < 0 ? add(next) : { ...log, lines: log.lines.with(at, next) };
    }
    case 'media':
      return add({ kind: 'media', key, turn, text: f.text ?? '', attachments: f.attachments ?? [] });
    case 'turn_complete': {
      log = {
        ...log,
        openTurns: log.openTurns.filter((t) => t !== turn),
        lines: log.lines.filter((l) => !(l.kind === 'answer' && l.isOpen && l.turn === turn)),
      };
      if (f.state === 'cancelled') {
        const isOpen = (l: Line) => l.kind === 'tool' && l.turn === turn && l.result === undefined;
        log = { ...log, lines: log.lines.map((l) => (isOpen(l) ? { ...l, isCancelled: true } as Line : l)) };
      }
      if (f.state === 'completed') return log;
      return add({ kind: 'end', key, turn, state: f.state ?? '', message: f.message ?? '' });
    }
    default:
      return log;
  }
}

// withoutOpen drops the streamed pieces of an answer when its whole text arrives.
function withoutOpen(lines: Line[], next: Line): Line[] {
  if (next.kind !== 'answer' || next.isOpen) return lines;
  return lines.filter((l) => !(l.kind === 'answer' && l.isOpen && l.turn === next.turn));
}
