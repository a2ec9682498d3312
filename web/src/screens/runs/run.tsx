import { useMemo, useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { formatAmount, formatDuration, formatTime } from '../../lib/format';
import { compactRows, layoutTimeline, span, type TimelineRow } from '../../lib/timeline';
import { Dialog } from '../../ui/dialog';
import { JSONView } from '../../ui/json';
import { Button, Facts, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';
import { VirtualList } from '../../ui/virtual';
import { subtitle } from '../inbox/entries';
import { useDecision } from '../inbox/other-cards';
import { REASONS } from './runs';

/** RunScreen shows one run: facts, the timeline of its steps, and its result. */
export function RunScreen() {
  const { id } = useParams({ from: '/runs/$id' });
  const { can } = useAccess();
  const nameOf = useAgentName();
  const { isBusy, decide } = useDecision();
  const [isCancelling, setCancelling] = useState(false);
  const [isUndoing, setUndoing] = useState(false);
  const query = useLive(['run', id], (signal) => ok(api.GET('/api/runs/{id}', { params: { path: { id } }, signal })), {
    topics: ['runs'],
    id,
  });
  const run = query.data;
  const isOpen = run?.state === 'running' || run?.state === 'parked';
  const cancel = () => {
    setCancelling(false);
    void decide(() => ok(api.POST('/api/runs/{id}/cancel', { params: { path: { id } } })), 'The run is cancelled');
  };
  return (
    <Page
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
          <Button kind="bad" disabled={isBusy} onClick={() => setCancelling(true)}>
            Cancel run
          </Button>
        ) : (
          <Button onClick={() => setUndoing(true)}>Undo run…</Button>
        ))
      }
    >
      {isUndoing && <UndoDialog id={id} onClose={() => setUndoing(false)} />}
      <Ready query={query}>
        {(run) => (
          <>
            <RunFacts run={run} />
            <Timeline run={run} />
          </>
        )}
      </Ready>
      {isCancelling && (
        <Dialog title="Cancel this run?" onClose={() => setCancelling(false)}>
          <p>Its open calls end with a result that says so. Calls that were already sent cannot be recalled.</p>
          <div className="actions">
            <Button onClick={() => setCancelling(false)}>Keep it</Button>
            <Button kind="bad" onClick={cancel}>
              Cancel run
            </Button>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

// UndoDialog lists what an undo of the run does, in its order, and what cannot be undone; then it undoes.
function UndoDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [done, setDone] = useState<Schemas['UndoPlan'][] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const plan = useLive(
    ['run-undo', id],
    (signal) => ok(api.GET('/api/runs/{id}/undo', { params: { path: { id } }, signal })),
    {},
  );
  const undo = async () => {
    setBusy(true);
    setError(null);
    try {
      setDone((await ok(api.POST('/api/runs/{id}/undo', { params: { path: { id } } }))).steps ?? []);
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  return (
    <Dialog title="Undo this run?" wide onClose={onClose}>
      <Ready query={plan}>
        {(data) => {
          const steps = done ?? data.steps ?? [];
          const possible = steps.filter((s) => s.can_undo);
          const rest = steps.filter((s) => !s.can_undo);
          return (
            <>
              {steps.length === 0 && <p>This run changed nothing.</p>}
              {!done && possible.length > 0 && (
                <p className="soft">
                  The latest change is undone first. The gate checks each undo like any other call.
                </p>
              )}
              {done ? (
                <UndoList label="What came of it" steps={steps} />
              ) : (
                <>
                  {possible.length > 0 && <UndoList label="Is undone, in this order" steps={possible} />}
                  {rest.length > 0 && <UndoList label="Cannot be undone" steps={rest} />}
                </>
              )}
              {error !== null && <Failure error={error} />}
              <div className="actions">
                <Button onClick={onClose}>{done || possible.length === 0 ? 'Close' : 'Cancel'}</Button>
                {!done && possible.length > 0 && (
                  <Button kind="main" disabled={isBusy} onClick={() => void undo()}>
                    Undo {possible.length} {possible.length === 1 ? 'change' : 'changes'}
                  </Button>
                )}
              </div>
            </>
          );
        }}
      </Ready>
    </Dialog>
  );
}

function UndoList({ label, steps }: { label: string; steps: Schemas['UndoPlan'][] }) {
  return (
    <section aria-label={label}>
      <h3>{label}</h3>
      <ol className="undo-list">
        {steps.slice(0, 500).map((s) => (
          <li key={s.operation_id}>
            <Link className="mono" to="/operations/$id" params={{ id: s.operation_id }}>
              {s.tool}
            </Link>
            <span className="soft cut">
              <Inert text={subtitle(s.undo ? JSON.stringify(s.undo.args) : undefined)} />
            </span>
            <span className="soft">{s.why && <Inert text={s.why} />}</span>
          </li>
        ))}
      </ol>
      {steps.length > 500 && <p className="small soft">and {steps.length - 500} more</p>}
    </section>
  );
}

function RunFacts({ run }: { run: Schemas['Run'] }) {
  const nameOf = useAgentName();
  const end = run.finished_at ? Date.parse(run.finished_at) : Date.now();
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
            ['Duration', formatDuration(end - Date.parse(run.started_at))],
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
                  {rows.length - shown.length} short steps that went well are left out.
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
          <span className={row.isFailed ? 'minus' : 'faint'}>
            <Inert text={row.detail.slice(0, 160)} />
          </span>
        </span>
        {row.attempts > 1 && <Tag tone="wait">{row.attempts} tries</Tag>}
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

function StepDialog({ row, onClose }: { row: TimelineRow; onClose: () => void }) {
  return (
    <Dialog title={row.label} wide onClose={onClose}>
      <Facts
        facts={[
          ['At', formatTime(new Date(row.start).toISOString())],
          ['Duration', row.end === undefined ? 'still open' : formatDuration(row.end - row.start)],
          ['Tries', row.attempts > 1 ? String(row.attempts) : ''],
          [
            'Error',
            row.isFailed && (
              <span className="minus">
                <Inert text={row.detail} />
              </span>
            ),
          ],
          [
            'Operation',
            row.operation && (
              <Link key="o" to="/operations/$id" params={{ id: row.operation }}>
                explain, undo <Id id={row.operation} />
              </Link>
            ),
          ],
        ]}
      />
      {row.text && (
        <>
          <h3>{row.kind === 'call' ? 'Arguments' : 'Text'}</h3>
          <JSONView text={row.text} label="Text" />
        </>
      )}
      {row.result && (
        <>
          <h3>Result</h3>
          <JSONView text={row.result} label="Result" />
        </>
      )}
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
