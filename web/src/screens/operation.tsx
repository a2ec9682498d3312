import { useState } from 'react';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { useAgentName } from '../app/data';
import { useAccess } from '../app/session';
import { formatAmount } from '../lib/format';
import { sentence } from '../lib/problem';
import { PreviewView } from '../ui/diff';
import { ArgsView, JSONView } from '../ui/json';
import { Button, Facts, Page, Panel, Ready, StateTag, useLive } from '../ui/kit';
import { Loading } from '../ui/states';
import { Ago, Id, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';
import { EFFECTS } from './inbox/call-card';
import { UnknownCard } from './inbox/other-cards';

/** OperationScreen explains one call: request, the gate's steps, result, and undo. */
export function OperationScreen() {
  const { id } = useParams({ from: '/operations/$id' });
  const query = useLive(
    ['operation', id],
    (signal) => ok(api.GET('/api/operations/{id}', { params: { path: { id } }, signal })),
    { topics: ['operations', 'approvals'], id },
  );
  const op = query.data;
  return (
    <Page
      up={op?.run_id ? <Link to="/runs/$id" params={{ id: op.run_id }}>Run</Link> : <Link to="/runs">Runs</Link>}
      title={op ? op.tool : 'Operation'}
      tag={op && <StateTag state={op.state} />}
    >
      <Ready query={query}>
        {(op) => (
          <div className="cols">
            <div className="stack">
              <Undoes op={op} />
              {op.state === 'parked' && <Waits id={op.id} />}
              {op.state === 'unknown' && !op.resolution && <UnknownCard operation={op} />}
              <Request op={op} />
              <Result op={op} />
              <UndoPanel op={op} />
            </div>
            <div className="stack">
              <OperationFacts op={op} />
              <Ladder op={op} />
            </div>
          </div>
        )}
      </Ready>
    </Page>
  );
}

// Waits leads to the approval that a call waits for.
function Waits({ id }: { id: string }) {
  const approval = useLive(
    ['operation-approval', id],
    async (signal) => {
      for (let cursor: string | undefined; ; ) {
        const query = { state: 'pending' as const, limit: 500, cursor };
        const list: Schemas['ApprovalList'] = await ok(api.GET('/api/approvals', { params: { query }, signal }));
        const found = list.approvals?.find((a) => a.operation_id === id);
        cursor = list.next_cursor || undefined;
        if (found || !cursor) return found ?? null;
      }
    },
    { topics: ['approvals'] },
  );
  if (!approval.data) return null;
  return (
    <section className="panel" aria-label="What it waits for">
      <p className="body row wrap">
        <span className="grow">A person must approve this call before it is made.</span>
        <Link className="btn main" to="/approvals/$id" params={{ id: approval.data.id }}>
          Open the approval
        </Link>
      </p>
    </section>
  );
}

function useExplanation(op: Schemas['Operation']) {
  return useLive(
    ['explanation', op.call_id],
    (signal) => ok(api.GET('/api/calls/{id}/explanation', { params: { path: { id: op.call_id } }, signal })),
    { topics: ['operations', 'approvals'], id: op.id },
  );
}

function OperationFacts({ op }: { op: Schemas['Operation'] }) {
  const nameOf = useAgentName();
  const trace = useExplanation(op).data?.trace_id;
  return (
    <Panel title="Facts">
      <div className="body">
        <Facts
          facts={[
            [
              'Agent',
              <Link key="a" to="/agents/$id" params={{ id: op.agent_id }}>
                <Inert text={nameOf(op.agent_id)} />
              </Link>,
            ],
            [
              'Tool',
              <Link key="t" to="/tools/$id" params={{ id: op.tool }}>
                {op.tool}
              </Link>,
            ],
            ['Effect', `${op.effect}: ${EFFECTS[op.effect] ?? ''}`],
            [
              'Run',
              op.run_id && (
                <Link key="r" to="/runs/$id" params={{ id: op.run_id }}>
                  <Id id={op.run_id} />
                </Link>
              ),
            ],
            ['Cost', formatAmount(op.spent)],
            ['Attempts', op.attempts > 1 ? String(op.attempts) : ''],
            [
              'Decided',
              op.resolved_by && (
                <span key="d">
                  {op.resolution} by <Inert text={op.resolved_by} />
                </span>
              ),
            ],
            ['Began', <Ago key="b" time={op.created_at} />],
            ['Changed', <Ago key="c" time={op.updated_at} />],
            ['Tool version', <code key="v">{op.tool_version}</code>],
            ['Policy version', <code key="p">{op.policy}</code>],
            [
              'Arguments hash',
              <code key="h" className="break">
                {op.args_hash}
              </code>,
            ],
            [
              'Trace',
              trace && (
                <code key="s" className="break">
                  {trace}
                </code>
              ),
            ],
            [
              'Id',
              <code key="i" className="break">
                {op.id}
              </code>,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

function useThread(op: Schemas['Operation']) {
  const session = op.thread_id.split(':session:')[1];
  return useLive(
    ['operation-messages', op.id, op.result_id],
    async (signal) => {
      for (let cursor: string | undefined, page = 0; page < 20; page++) {
        const list: Schemas['MessageList'] = await ok(
          api.GET('/api/agents/{agentId}/messages', {
            params: {
              path: { agentId: op.agent_id },
              query: { run: op.run_id, session: op.run_id ? undefined : session, cursor, limit: 500 },
            },
            signal,
          }),
        );
        const call = list.messages?.find((m) => m.id === op.call_id);
        const result = list.messages?.find((m) => m.id === op.result_id || m.action_id === op.call_id);
        if (call || result) return { call, result };
        cursor = list.next_cursor || undefined;
        if (!cursor) break;
      }
      return { call: undefined, result: undefined };
    },
    { topics: ['operations'], id: op.id },
  );
}

function Request({ op }: { op: Schemas['Operation'] }) {
  const thread = useThread(op);
  const args = op.args ?? thread.data?.call?.content;
  return (
    <Panel title="Request">
      <div className="body stack">
        {args ? (
          <ArgsView args={args} />
        ) : thread.isPending ? (
          <Loading rows={2} />
        ) : (
          <p className="faint">The arguments are no longer stored.</p>
        )}
      </div>
    </Panel>
  );
}

function Result({ op }: { op: Schemas['Operation'] }) {
  const thread = useThread(op);
  return (
    <Panel title="Result">
      <div className="body stack">
        {op.message && (
          <p className={op.state === 'failed' || op.state === 'denied' ? 'minus' : ''}>
            {op.code && <code>{op.code}</code>} <Inert text={op.message} />
          </p>
        )}
        {thread.data?.result ? (
          <JSONView text={thread.data.result.content} label="Result" />
        ) : thread.isPending ? (
          <Loading rows={2} />
        ) : (
          !op.message && (
            <p className="faint">
              {op.state === 'committed' ? 'It returned nothing that is kept.' : 'No result yet.'}
            </p>
          )
        )}
      </div>
    </Panel>
  );
}

const MARKS: Record<string, [string, string]> = {
  passed: ['✓', 'passed'],
  refused: ['✕', 'refused'],
  waits: ['…', 'waits'],
  not_reached: ['·', 'not reached'],
};

function Ladder({ op }: { op: Schemas['Operation'] }) {
  const query = useExplanation(op);
  return (
    <Panel title="Why it was allowed, or not">
      <div className="body stack">
        <Ready query={query}>
          {(e) => (
            <>
              <p>
                <Inert text={e.outcome} />
              </p>
              <ol className="ladder">
                {(e.steps ?? []).map((s, i) => {
                  const [mark, word] = MARKS[s.verdict || 'passed'] ?? ['·', s.verdict ?? ''];
                  return (
                    <li key={i} className={s.verdict || 'passed'}>
                      <span className="mark" aria-hidden>
                        {mark}
                      </span>
                      <span>
                        {s.step}
                        <span className="hide"> {word}</span>
                      </span>
                      <span className="soft break">{s.why ? <Inert text={s.why} /> : word}</span>
                    </li>
                  );
                })}
              </ol>
            </>
          )}
        </Ready>
      </div>
    </Panel>
  );
}

// useUndoes returns the operation that a call undoes, if it is an undo.
function useUndoes(op: Schemas['Operation']): string | undefined {
  const info = useThread(op).data?.call?.metadata as { undoes?: string } | undefined;
  return info?.undoes;
}

// Undoes says that a call is the undo of another one.
function Undoes({ op }: { op: Schemas['Operation'] }) {
  const id = useUndoes(op);
  const undone = useLive(
    ['operation', id],
    (signal) => ok(api.GET('/api/operations/{id}', { params: { path: { id: id ?? '' } }, signal })),
    { topics: ['operations'], id },
    { enabled: id !== undefined },
  );
  if (id === undefined) return null;
  return (
    <section className="panel" aria-label="What this call reverses">
      <p className="body">
        {op.state === 'committed' ? 'This call undid ' : 'This call is to undo '}
        <Link to="/operations/$id" params={{ id }}>
          {undone.data ? <span className="mono">{undone.data.tool}</span> : 'another call'}
        </Link>
        {undone.data && (
          <>
            , made <Ago time={undone.data.created_at} />
          </>
        )}
        .
      </p>
    </section>
  );
}

/** useUndone returns a function that says what came of an undo, and leads to what is left to decide. */
export function useUndone(): (result: { approval_id?: string; proposal_id?: string }) => void {
  const notify = useNotify();
  const navigate = useNavigate();
  return ({ approval_id: id, proposal_id }) => {
    if (id)
      notify.done('The undo waits for approval', {
        label: 'Open the approval', run: () => void navigate({ to: '/approvals/$id', params: { id } }),
      });
    else if (proposal_id)
      notify.done('The undo is a proposal', { label: 'Inbox', run: () => void navigate({ to: '/inbox' }) });
    else notify.done('Undone');
  };
}

// UndoPanel shows the call that reverses the operation and what it would change, and makes it.
function UndoPanel({ op }: { op: Schemas['Operation'] }) {
  const { can } = useAccess();
  const notify = useNotify();
  const sayUndone = useUndone();
  const navigate = useNavigate();
  const [isBusy, setBusy] = useState(false);
  const isUndo = useUndoes(op) !== undefined;
  const plan = useLive(
    ['undo-plan', op.id],
    (signal) => ok(api.GET('/api/operations/{id}/undo', { params: { path: { id: op.id } }, signal })),
    { topics: ['operations'] },
    { enabled: can('member') && op.state === 'committed' },
  );
  if (!can('member') || op.state !== 'committed') return null;
  const run = async () => {
    setBusy(true);
    try {
      const result = await ok(api.POST('/api/operations/{id}/undo', { params: { path: { id: op.id } } }));
      sayUndone(result);
      if (result.operation_id) void navigate({ to: '/operations/$id', params: { id: result.operation_id } });
    } catch (e) {
      notify.failed(e);
    }
    setBusy(false);
  };
  return (
    <section aria-label="Undo">
      <Panel
        title="Undo"
        aside={
          plan.data?.can_undo && (
            <Button kind={isUndo ? 'quiet' : 'main'} disabled={isBusy} onClick={() => !isBusy && void run()}>
              {isUndo ? 'Undo the undo' : 'Undo'}
            </Button>
          )
        }
      >
        <div className="body stack">
          <Ready query={plan}>
            {(p) =>
              p.can_undo && p.undo ? (
                <>
                  <p className="soft">
                    Reeve makes the call <code>{p.undo.tool}</code> to reverse it. It is checked like any other call.
                  </p>
                  {p.preview ? <PreviewView preview={p.preview} /> : <ArgsView args={JSON.stringify(p.undo.args)} />}
                </>
              ) : (
                <WhyNot plan={p} />
              )
            }
          </Ready>
        </div>
      </Panel>
    </section>
  );
}

function WhyNot({ plan }: { plan: Schemas['UndoPlan'] }) {
  const id = plan.undone_by;
  const undo = useLive(
    ['operation', id],
    (signal) => ok(api.GET('/api/operations/{id}', { params: { path: { id: id ?? '' } }, signal })),
    { topics: ['operations'], id },
    { enabled: id !== undefined },
  );
  if (id === undefined)
    return (
      <p className="soft">
        This cannot be undone: <Inert text={plan.why ?? ''} />.
      </p>
    );
  return (
    <p className="soft">
      {undo.data?.state === 'committed' ? (
        <>
          Undone <Ago time={undo.data.updated_at} />
        </>
      ) : (
        <Inert text={sentence(plan.why ?? '').replace(/\.$/, '')} />
      )}
      .{' '}
      <Link to="/operations/$id" params={{ id }}>
        See the undo
      </Link>
    </p>
  );
}
