import { useCallback, useRef, useState } from 'react';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAgentName, useAgents } from '../../app/data';
import { useKeys } from '../../app/keyboard';
import { formatAmount } from '../../lib/format';
import { Button, Page, StateTag } from '../../ui/kit';
import { usePages } from '../../ui/paged';
import { Empty, Failure, Loading } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { VirtualList } from '../../ui/virtual';
import { Elapsed } from './elapsed';

const STATES = ['running', 'parked', 'completed', 'failed', 'cancelled'] as const;
type RunState = (typeof STATES)[number];

/** RunsScreen lists runs, newest first, with filters in the address. */
export function RunsScreen() {
  const search = useSearch({ from: '/runs' });
  const navigate = useNavigate({ from: '/runs' });
  const agents = useAgents();
  const nameOf = useAgentName();
  const { query, rows, more } = usePages(
    ['runs', search],
    { topics: ['runs'] },
    (cursor, signal) =>
      ok(
        api.GET('/api/runs', {
          params: { query: { cursor, limit: 200, agent: search.agent, state: search.state as RunState | undefined } },
          signal,
        }),
      ),
    (page) => page.runs ?? [],
  );
  const set = (change: { agent?: string; state?: string }) =>
    void navigate({
      search: (old) => Object.fromEntries(Object.entries({ ...old, ...change }).filter(([, v]) => v)),
      replace: true,
    });
  const list = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(-1);
  const move = (by: number) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>('.virtual a.list-row') ?? [])];
    const focused = links.indexOf(document.activeElement as HTMLElement);
    const next = links[Math.max(0, Math.min(links.length - 1, (focused < 0 ? at : focused) + by))];
    next?.focus();
    if (next) setAt(links.indexOf(next));
  };
  useKeys('Runs', [
    { keys: 'j', label: 'Next run', run: () => move(1), repeats: true },
    { keys: 'k', label: 'Previous run', run: () => move(-1), repeats: true },
  ]);
  const keyOf = useCallback((r: Schemas['Run']) => r.id, []);
  return (
    <Page
      title="Runs"
      actions={
        <>
          <label className="hide" htmlFor="agent">
            Agent
          </label>
          <select
            id="agent"
            data-search
            className="input"
            value={search.agent ?? ''}
            onChange={(e) => set({ agent: e.target.value })}
          >
            <option value="">All agents</option>
            {agents.data?.agents?.map((a) => (
              <option key={a.id} value={a.id}>
                {a.name}
              </option>
            ))}
          </select>
          <label className="hide" htmlFor="state">
            State
          </label>
          <select
            id="state"
            className="input"
            value={search.state ?? ''}
            onChange={(e) => set({ state: e.target.value })}
          >
            <option value="">All states</option>
            {STATES.map((s) => (
              <option key={s} value={s}>
                {s === 'parked' ? 'waits' : s}
              </option>
            ))}
          </select>
        </>
      }
    >
      {rows ? (
        rows.length === 0 ? (
          <div className="panel">
            {search.agent || search.state ? (
              <Empty title="No run matches the filter">
                <Button onClick={() => set({ agent: '', state: '' })}>Show all runs</Button>
              </Empty>
            ) : (
              <Empty title="No runs to show">
                <p>
                  A run begins with a chat message, a schedule, a change that an agent watches, or a wake. Only owners
                  see the runs for other people.
                </p>
                <Link className="btn main" to="/chat">
                  Start a chat
                </Link>
              </Empty>
            )}
          </div>
        ) : (
          <div className="panel" ref={list}>
            <div className="list-row list-head runs-row" aria-hidden>
              <span>State</span>
              <span>Agent</span>
              <span className="wide-only">Reason</span>
              <span>Duration</span>
              <span className="wide-only">Cost</span>
              <span className="wide-only">Started</span>
            </div>
            <VirtualList
              rows={rows}
              rowHeight={40}
              label="Runs"
              keyOf={keyOf}
              onEnd={more}
              render={(r) => <RunRow run={r} name={nameOf(r.agent_id)} />}
            />
          </div>
        )
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : (
        <Loading rows={8} />
      )}
    </Page>
  );
}

/** REASONS says in words why a run began. */
export const REASONS: Record<string, string> = {
  user_initiated: 'message',
  manual: 'started by hand',
  subscription: 'change',
  timer: 'schedule',
  schedule: 'schedule',
  delegation: 'asked by an agent',
  recovery: 'recovery',
  step: 'step of a turn',
};

/** reasonOf describes why a run began. */
export function reasonOf(run: { reason: string; input?: string }): string {
  const word = REASONS[run.reason] ?? run.reason.replaceAll('_', ' ');
  return run.input ? `${word}: ${run.input.slice(0, 120)}` : word;
}

function RunRow({ run, name }: { run: Schemas['Run']; name: string }) {
  return (
    <Link className="list-row runs-row" to="/runs/$id" params={{ id: run.id }}>
      <span>
        <StateTag state={run.state} />
      </span>
      <span className="cut strong">
        <Inert text={name} />
      </span>
      <span className="cut soft wide-only">
        <Inert text={reasonOf(run)} />
      </span>
      <span className="soft">
        <Elapsed from={run.started_at} to={run.finished_at} />
      </span>
      <span className="num soft cut wide-only">{formatAmount(run.spent)}</span>
      <span className="soft wide-only">
        <Ago time={run.started_at} />
      </span>
    </Link>
  );
}
