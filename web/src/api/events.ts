import type { QueryClient } from '@tanstack/react-query';
import { SSEParser, type SSEEvent } from '../lib/sse';
import { currentWorkspace } from './client';

/** Change names what changed: a topic, the id of the changed thing and the run it belongs to. */
export interface Change {
  topic: string;
  id?: string;
  run?: string;
}

/** Live is the state of the event stream. */
export type Live = 'connecting' | 'live' | 'offline';

/**
 * QueryMeta says which changes make a query stale. Without an id every change of the topics does. Every change of the
 * topics in also does, whatever the id.
 */
export interface QueryMeta extends Record<string, unknown> {
  topics?: string[];
  id?: string;
  also?: string[];
}

type Notice = { kind: 'state'; state: Live } | { kind: 'event'; event: SSEEvent } | { kind: 'hello' };

const RETRY_MS = [500, 1000, 2000, 5000, 10000];

/**
 * EventStream keeps the queries of a tab current. The tabs of a browser share one connection: the tab that holds the
 * lock reads it and passes events to the others.
 */
export class EventStream {
  private channel: BroadcastChannel;
  private stop = new AbortController();
  private pending: Change[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastId = '';
  private state: Live = 'connecting';
  private leads = false;

  constructor(
    private queries: QueryClient,
    private onState: (state: Live) => void,
  ) {
    const name = `reeve-events:${currentWorkspace()}`;
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = (m: MessageEvent<Notice>) => this.receive(m.data);
    this.channel.postMessage({ kind: 'hello' } satisfies Notice);
    const lead = () => {
      this.leads = true;
      return this.read();
    };
    if (navigator.locks) navigator.locks.request(name, { signal: this.stop.signal }, lead).catch(() => {});
    else void lead();
  }

  /** close ends the stream. */
  close(): void {
    this.stop.abort();
    this.channel.close();
    clearTimeout(this.timer);
  }

  private async read(): Promise<void> {
    for (let failures = 0; !this.stop.signal.aborted; ) {
      try {
        const headers: Record<string, string> = { 'X-Workspace-Id': currentWorkspace() };
        if (this.lastId) headers['Last-Event-ID'] = this.lastId;
        const answer = await fetch('/api/events', { headers, signal: this.stop.signal, credentials: 'same-origin' });
        if (answer.status === 401) {
          await this.queries.invalidateQueries({ queryKey: ['session'] });
          return this.announce('offline');
        }
        if (!answer.ok || !answer.body) throw new Error(`events: ${answer.status}`);
        if (failures > 0 && !this.lastId) await this.queries.invalidateQueries();
        failures = 0;
        this.announce('live');
        await this.consume(answer.body);
        void this.queries.invalidateQueries({ queryKey: ['session'] }); // the role may have been lowered
      } catch {
        if (this.stop.signal.aborted) return;
      }
      this.announce('offline');
      const delay = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? 1000;
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }

  private async consume(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
    const parser = new SSEParser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const event of parser.push(value)) {
        const notice: Notice = { kind: 'event', event };
        this.channel.postMessage(notice);
        this.receive(notice);
      }
    }
  }

  private announce(state: Live): void {
    if (this.stop.signal.aborted) return;
    const notice: Notice = { kind: 'state', state };
    this.channel.postMessage(notice);
    this.receive(notice);
  }

  private receive(notice: Notice): void {
    if (notice.kind === 'hello') {
      if (this.leads) this.channel.postMessage({ kind: 'state', state: this.state } satisfies Notice);
      return;
    }
    if (notice.kind === 'state') {
      this.state = notice.state;
      this.onState(notice.state);
      return;
    }
    const { event } = notice;
    if (event.id) this.lastId = event.id;
    if (event.event === 'reset') {
      void this.queries.invalidateQueries();
    } else if (event.event === 'change') {
      this.pending.push(JSON.parse(event.data) as Change);
      this.timer ??= setTimeout(() => this.flush(), 40);
    }
  }

  private flush(): void {
    const changes = this.pending;
    this.pending = [];
    this.timer = undefined;
    void this.queries.invalidateQueries({
      predicate: (query) => changes.some((c) => concerns(c, (query.meta ?? {}) as QueryMeta)),
    });
  }
}

/** concerns reports whether a change makes a query with this meta stale. */
export function concerns(change: Change, meta: QueryMeta): boolean {
  if (meta.also?.includes(change.topic)) return true;
  if (!meta.topics?.includes(change.topic)) return false;
  return !meta.id || !change.id || change.id === meta.id || change.run === meta.id;
}
