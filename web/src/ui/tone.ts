/** Tone is the colour of a state. */
export type Tone = 'ok' | 'wait' | 'bad' | 'run' | 'odd' | 'none';

const TONES: Record<string, Tone> = {
  completed: 'ok',
  committed: 'ok',
  applied: 'ok',
  approved: 'ok',
  done: 'ok',
  active: 'ok',
  success: 'ok',
  passed: 'ok',
  running: 'run',
  dispatched: 'run',
  prepared: 'run',
  processing: 'run',
  accepted: 'run',
  queued: 'run',
  parked: 'wait',
  pending: 'wait',
  waiting: 'wait',
  proposed: 'wait',
  paused: 'wait',
  needs_attention: 'wait',
  waits: 'wait',
  failed: 'bad',
  denied: 'bad',
  refused: 'bad',
  error: 'bad',
  stopped: 'bad',
  stale: 'bad',
  expired: 'bad',
  unknown: 'odd',
};

/** stateTone returns the colour of a state. States without one stay grey. */
export function stateTone(state: string): Tone {
  return TONES[state] ?? 'none';
}

const LABELS: Record<string, string> = {
  parked: 'waits',
  committed: 'done',
  dispatched: 'sent',
  unknown: 'unknown outcome',
  needs_attention: 'needs attention',
};

/** stateLabel returns the word for a state. */
export function stateLabel(state: string): string {
  return LABELS[state] ?? state.replaceAll('_', ' ');
}
