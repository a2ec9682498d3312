import { useMemo, useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { formatAmount, formatDuration, formatTime, some } from '../../lib/format';
import { compactRows, layoutTimeline, span, type TimelineRow } from '../../lib/timeline';
import { ConfirmButton } from '../../ui/confirm';
import { Facts, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';
import { VirtualList } from '../../ui/virtual';
import { subtitle } from '../inbox/entries';
import { Elapsed } from './elapsed';
import { REASONS } from './runs';
import { StepDialog } from './step';
import { UndoButton } from './undo';

/** RunScreen shows one run: facts, the timeline of its steps, and its result. */
export function RunScreen() {
  const { id } = useParams({ from: '/runs/$id' });
  const { can } = useAccess();
  const nameOf = useAgentName();
  const refresh = useRefresh('run', 'runs', 'inbox');
  const query = useLive(['run', id], (signal) => ok(api.GET('/api/runs/{id}', { params: { path: { id } }, signal })), {
    topics: ['runs'],
    id,
  });
  const run = query.data;
  const isOpen = run?.state === 'running' || run?.state === 'parked';
  return (
    <Page
      up={<Link to="/runs">Runs</Link>}
      title={
        run ? (
          <>
            Run of <Inert text={nameOf(run.agent_id)} />
          </>
        ) : (
          'Run'
        )
      }
      tag={run && <StateTag state={run.state} />}
      actions={
        run &&
        can('member') &&
        (isOpen ? (
          <ConfirmButton
            label="Cancel run"
            kind="bad"
            title="Cancel this run?"
            done="The run is cancelled"
            run={() => ok(api.POST('/api/runs/{id}/cancel', { params: { path: { id } } })).finally(refresh)}
          >
            <p>Its open calls end with a result that says so. Calls that were already sent cannot be recalled.</p>
          </ConfirmButton>
        ) : (
          <UndoButton id={id} />
        ))
      }
    >
      <Ready query={query}>
        {(run) => (
          <>
            <RunFacts run={run} />
            <Timeline run={run} />
          </>
        )}
      </Ready>
    </Page>
  );
}

function RunFacts({ run }: { run: Schemas['Run'] }) {
  const nameOf = useAgentName();
  return (
    <div className="panel">
      <div className="body stack">
        {run.message && (
          <p className={run.state === 'failed' ? 'minus' : ''}>
            <Inert text={run.message} />
          </p>
        )}
        <Facts
          facts={[
            [
              'Agent',
              <Link key="a" to="/agents/$id" params={{ id: run.agent_id }}>
                <Inert text={nameOf(run.agent_id)} />
              </Link>,
            ],
            ['Reason', REASONS[run.reason] ?? run.reason.replaceAll('_', ' ')],
            ['For', run.user_id && <Inert key="u" text={run.user_id} />],
            [
              'Started',
              <span key="s">
                {formatTime(run.started_at)} (<Ago time={run.started_at} />)
              </span>,
            ],
            ['Duration', <Elapsed key="d" from={run.started_at} to={run.finished_at} />],
            ['Cost', formatAmount(run.spent)],
            ['Attempts', run.attempts > 1 ? String(run.attempts) : ''],
            ['Code', run.code],
            [
              'Caller',
              run.parent_id && (
                <Link key="p" to="/runs/$id" params={{ id: run.parent_id }}>
                  run <Id id={run.parent_id} />
                </Link>
              ),
            ],
            [
              'Chat',
              run.session_id?.startsWith('conv_') && (
                <Link key="c" to="/chat/$id" params={{ id: run.session_id }}>
                  conversation <Id id={run.session_id} />
                </Link>
              ),
            ],
            [
              'Input',
              run.input && (
                <span key="i" className="break">
                  <Inert text={run.input} />
                </span>
              ),
            ],
            [
              'Output',
              run.output && (
                <span key="o" className="break">
                  <Inert text={run.output} />
                </span>
              ),
            ],
            ['Id', <code key="id">{run.id}</code>],
          ]}
        />
      </div>
    </div>
  );
}

// readSteps reads all steps of a run. onPart gets what is read so far, after each page.
async function readSteps(
  run: Schemas['Run'],
  signal: AbortSignal,
  onPart: (steps: Schemas['Message'][]) => void,
): Promise<Schemas['Message'][]> {
  const out: Schemas['Message'][] = [];
  for (let cursor: string | undefined; ;) {
    const page: Schemas['MessageList'] = await ok(
      api.GET('/api/agents/{agentId}/messages', {
        params: { path: { agentId: run.agent_id }, query: { run: run.id, cursor, limit: 500 } },
        signal,
      }),
    );
    out.push(...(page.messages ?? []));
    cursor = page.next_cursor || undefined;
    if (!cursor || signal.aborted) return out;
    onPart([...out]);
  }
}

function Timeline({ run }: { run: Schemas['Run'] }) {
  const [isCompact, setCompact] = useState(false);
  const [onlyFailed, setOnlyFailed] = useState(false);
  const [open, setOpen] = useState<TimelineRow | null>(null);
  const [part, setPart] = useState<Schemas['Message'][]>([]); // shown until all steps of a long run are read
  const query = useLive(['steps', run.id], (signal) => readSteps(run, signal, setPart), {
    topics: ['runs', 'operations', 'approvals'],
    id: run.id,
  });
  const rows = useMemo(() => layoutTimeline(query.data ?? part), [query.data, part]);
  const from = Math.min(Date.parse(run.started_at), ...rows.slice(0, 1).map((r) => r.start));
  const to = run.finished_at ? Date.parse(run.finished_at) : Date.now();
  const failed = useMemo(() => rows.filter((r) => r.isFailed), [rows]);
  const shown = onlyFailed ? failed : isCompact ? compactRows(rows, to - from) : rows;
  return (
    <Panel
      title={
        <>
          Timeline <span className="soft num">{rows.length}</span>
        </>
      }
      aside={
        <>
          {failed.length > 0 && (
            <label className="row small">
              <input type="checkbox" checked={onlyFailed} onChange={(e) => setOnlyFailed(e.target.checked)} />
              only failed ({failed.length})
            </label>
          )}
          <label className="row small">
            <input type="checkbox" checked={isCompact} onChange={(e) => setCompact(e.target.checked)} /> compact
          </label>
        </>
      }
    >
      <Ready query={query} early={part.length > 0 ? part : undefined}>
        {() =>
          rows.length === 0 ? (
            <Empty title="No steps yet">
              <p>Answers and calls appear here as they happen.</p>
            </Empty>
          ) : (
            <>
              <div className="wf-list">
                <VirtualList
                  rows={shown}
                  rowHeight={32}
                  label="Steps"
                  keyOf={(r) => r.id}
                  className={shown.length > 20 ? 'virtual' : 'virtual-short'}
                  render={(row) => (
                    <Step row={row} from={from} to={to} isOpen={row === open} onOpen={() => setOpen(row)} />
                  )}
                />
              </div>
              {isCompact && shown.length < rows.length && (
                <footer className="small soft">
                  {some(rows.length - shown.length, 'short step')} that went well{' '}
                  {rows.length - shown.length === 1 ? 'is' : 'are'} left out.
                </footer>
              )}
            </>
          )
        }
      </Ready>
      {open && <StepDialog row={open} onClose={() => setOpen(null)} />}
    </Panel>
  );
}

function Step({
  row,
  from,
  to,
  isOpen,
  onOpen,
}: {
  row: TimelineRow;
  from: number;
  to: number;
  isOpen: boolean;
  onOpen: () => void;
}) {
  const { left, width } = span(row, from, to);
  return (
    <button className="wf-row" aria-expanded={isOpen} onClick={onOpen}>
      <span className="row">
        <span className={`dot ${row.tone}`} />
        <span className="cut grow">
          <span className={row.kind === 'call' ? 'mono' : 'soft'}>
            {row.isParallel && '∥ '}
            <Inert text={row.label} />
          </span>{' '}
          {row.kind === 'call' && (
            <span className="soft">
              <Inert text={subtitle(row.text)} />{' '}
            </span>
          )}
          <span className={row.isFailed ? 'minus' : 'faint'}>
            <Inert text={row.detail.slice(0, 160)} />
          </span>
        </span>
        {row.attempts > 1 && <Tag tone="wait">{some(row.attempts, 'try', 'tries')}</Tag>}
      </span>
      <span className="wf-track">
        <span className={`wf-bar ${row.tone}`} style={{ left: `${left}%`, width: `${width}%` }} />
      </span>
      <span className="num soft">
        {row.end === undefined ? 'waits' : row.end === row.start ? '' : formatDuration(row.end - row.start)}
      </span>
    </button>
  );
}
