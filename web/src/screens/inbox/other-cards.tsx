import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from '../../api/client';
import { useAgentName } from '../../app/data';
import { useKeys } from '../../app/keyboard';
import { useAccess } from '../../app/session';
import { useSettled } from '../../app/settled';
import { JSONView } from '../../ui/json';
import { Button, Facts, Field, Panel, Ready, StateTag, useLive } from '../../ui/kit';
import { Ago, Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { BASE_TOPICS, OutOfDate, Reason } from './approval';
import { CallBody, CardTitle, EFFECTS } from './call-card';
import { subtitle } from './entries';
import { BudgetDialog, BudgetFacts } from '../budget';

/** useDecision runs a decision, tells the person, and reads the inbox again. decide reports whether it succeeded. */
export function useDecision(onDone?: () => void) {
  const notify = useNotify();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const decide = async (request: () => Promise<unknown>, text: string) => {
    setBusy(true);
    let isDone = false;
    try {
      await request();
      isDone = true;
      notify.done(text);
      onDone?.();
    } catch (e) {
      notify.failed(e);
    }
    setBusy(false);
    void queries.invalidateQueries({ queryKey: ['inbox'] });
    return isDone;
  };
  return { isBusy, decide };
}

/** ProposalCard shows a proposed call, and applies or rejects it. */
export function ProposalCard({ id, onDone }: { id: string; onDone?: () => void }) {
  const { can } = useAccess();
  const { isBusy, decide } = useDecision(onDone);
  const [isRejecting, setRejecting] = useState(false);
  const query = useLive(
    ['proposal', id],
    (signal) => ok(api.GET('/api/proposals/{id}', { params: { path: { id } }, signal })),
    { topics: ['proposals'], id, also: BASE_TOPICS },
  );
  const p = query.data;
  const isSettled = useSettled(p ? `${id} ${p.state}` : '-');
  const mayDecide = p?.state === 'pending' && can('member') && !isBusy && isSettled;
  const accept = () =>
    decide(
      () => ok(api.POST('/api/proposals/{id}/accept', { params: { path: { id } }, body: {} })),
      `Accepted ${p?.tool}`,
    );
  const reject = async (comment: string) => {
    const isDone = await decide(
      () =>
        ok(
          api.POST('/api/proposals/{id}/reject', { params: { path: { id } }, body: { comment: comment || undefined } }),
        ),
      `Rejected ${p?.tool}`,
    );
    if (isDone) setRejecting(false);
  };
  useKeys(
    'Proposal',
    mayDecide
      ? [
          ...(p?.stale ? [] : [{ keys: 'a', label: 'Accept', run: () => void accept() }]),
          { keys: 'd', label: 'Reject with a reason', run: () => setRejecting(true) },
        ]
      : [],
  );
  return (
    <section className="panel">
      <Ready query={query}>
        {(p) => (
          <>
            <header>
              <CardTitle tool={p.tool} args={subtitle(p.args)} state={p.state} />
            </header>
            {p.stale && (
              <OutOfDate why={p.stale}>Accepting it would apply nothing. The agent can propose it again.</OutOfDate>
            )}
            <CallBody
              call={p}
              facts={[
                [
                  'Change set',
                  <Link key="s" to="/change-sets/$id" params={{ id: p.set_id }}>
                    all proposals of this run
                  </Link>,
                ],
                ['Message', p.message && <Inert key="m" text={p.message} />],
                [
                  'Decided',
                  p.decided_by && (
                    <span key="d">
                      <Inert text={p.decided_by} />, <Ago time={p.decided_at} />
                    </span>
                  ),
                ],
              ]}
            />
            {p.state === 'pending' && can('member') && (
              <footer className="sticky-foot">
                {!p.stale && (
                  <Button kind="main" disabled={!mayDecide} onClick={() => void accept()}>
                    Accept <kbd>a</kbd>
                  </Button>
                )}
                <Button disabled={!mayDecide} onClick={() => setRejecting(true)}>
                  Reject… <kbd>d</kbd>
                </Button>
              </footer>
            )}
            {p.state === 'rejected' && can('member') && (
              <footer>
                <Button
                  onClick={() =>
                    void decide(
                      () => ok(api.POST('/api/proposals/{id}/reopen', { params: { path: { id } } })),
                      'Opened again',
                    )
                  }
                >
                  Open again
                </Button>
              </footer>
            )}
          </>
        )}
      </Ready>
      {isRejecting && (
        <Reason
          title="Reject this proposal?"
          verb="Reject"
          help="Kept with the proposal."
          locked={p && p.state !== 'pending' && !isBusy ? describeLock(p) : undefined}
          onClose={() => setRejecting(false)}
          onGive={reject}
        />
      )}
    </section>
  );
}

// describeLock says why an open dialog can no longer reject a proposal.
function describeLock(p: Schemas['Proposal']): string {
  const by = p.decided_by ? ` by ${p.decided_by}` : '';
  return `This proposal is ${p.state}${by}.`;
}

/** UnknownCard shows a call whose outcome is not proven, and records what a person found out. */
export function UnknownCard({ operation, onDone }: { operation: Schemas['Operation']; onDone?: () => void }) {
  const { can } = useAccess();
  const { isBusy, decide } = useDecision(onDone);
  const resolve = (resolution: 'happened' | 'retry' | 'skip', text: string) =>
    decide(
      () =>
        ok(
          api.POST('/api/operations/{id}/resolve', {
            params: { path: { id: operation.id } },
            body: { resolution, attempts: operation.attempts },
          }),
        ),
      text,
    );
  return (
    <section className="panel">
      <header>
        <CardTitle tool={operation.tool} args={subtitle(operation.args)} state={operation.state} />
      </header>
      <div className="body stack">
        <p>
          The request left Reeve, but no answer proves what happened. Look at the other side, then say what you found.
        </p>
        <Evidence operation={operation} />
        {operation.effect === 'verifiable' && can('member') && <LookUp operation={operation} />}
      </div>
      {can('member') && (
        <footer className="sticky-foot">
          <Button disabled={isBusy} onClick={() => void resolve('happened', 'Recorded: it happened')}>
            It happened
          </Button>
          <Button disabled={isBusy} onClick={() => void resolve('retry', 'It runs again')}>
            It did not, run it again
          </Button>
          <Button
            kind="quiet"
            disabled={isBusy}
            onClick={() => void resolve('skip', 'Skipped; the outcome stays unknown')}
          >
            Skip
          </Button>
        </footer>
      )}
    </section>
  );
}

const OUTCOMES: Record<string, string> = {
  applied: 'The tool says: it happened.',
  not_applied: 'The tool says: it did not happen.',
  cannot_tell: 'The tool cannot tell.',
};

// LookUp asks the tool what happened. The answer decides nothing by itself.
function LookUp({ operation }: { operation: Schemas['Operation'] }) {
  const [answer, setAnswer] = useState<Schemas['LookUpResult'] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    setError(null);
    try {
      setAnswer(await ok(api.POST('/api/operations/{id}/lookup', { params: { path: { id: operation.id } } })));
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  return (
    <div className="stack tight">
      <div className="row wrap">
        <Button disabled={isBusy} onClick={() => void ask()}>
          {isBusy ? 'Asking…' : 'Ask the tool again'}
        </Button>
        {answer && <span role="status">{OUTCOMES[answer.outcome]}</span>}
      </div>
      {answer?.found && <JSONView text={answer.found} label="What the tool found" />}
      {error !== null && <NoAnswer error={error} />}
    </div>
  );
}

// NoAnswer says that a look-up failed. The text of the error is about the look-up; it must not be read as an answer about
// the call, so it stays folded.
function NoAnswer({ error }: { error: unknown }) {
  return (
    <div role="alert">
      <p>The tool could not be asked, so this says nothing about the call. Try again in a moment.</p>
      <details className="small soft">
        <summary>Why the tool could not be asked</summary>
        <p className="break">
          The look-up failed: <Inert text={withoutClaim(error)} />
        </p>
        {error instanceof ApiError && error.requestId && (
          <p>
            Request <code>{error.requestId}</code>
          </p>
        )}
      </details>
    </div>
  );
}

// withoutClaim leaves out that nothing was sent: that is about the look-up.
function withoutClaim(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/[;,]?\s*nothing was sent\.?/i, '');
}

function Evidence({ operation }: { operation: Schemas['Operation'] }) {
  const nameOf = useAgentName();
  return (
    <>
      {operation.args && <JSONView text={operation.args} label="Arguments" />}
      <Facts
        facts={[
          ['Agent', <Inert key="a" text={nameOf(operation.agent_id)} />],
          ['What is known', operation.message && <Inert key="m" text={operation.message} />],
          ['Effect', EFFECTS[operation.effect] ?? operation.effect],
          [
            'Look-up',
            operation.effect === 'verifiable'
              ? 'the tool was asked and could not tell; you can ask it again'
              : 'the tool has none',
          ],
          ['Attempts', String(operation.attempts)],
          ['Sent', <Ago key="s" time={operation.created_at} />],
          [
            'Explanation',
            <Link key="o" to="/operations/$id" params={{ id: operation.id }}>
              every check of the call <Id id={operation.id} />
            </Link>,
          ],
        ]}
      />
    </>
  );
}

/** ItemCard shows an item of an automation that needs a person. */
export function ItemCard({ item, onDone }: { item: Schemas['WaitingItem']; onDone?: () => void }) {
  const { can } = useAccess();
  const { isBusy, decide } = useDecision(onDone);
  const act = (path: '/api/automations/{id}/items/reprocess' | '/api/automations/{id}/items/skip', text: string) =>
    decide(() => ok(api.POST(path, { params: { path: { id: item.agent_id } }, body: { item: item.id } })), text);
  return (
    <Panel
      title={<Inert text={item.title || item.id} />}
      aside={<StateTag state={item.state} />}
      footer={
        can('member') && (
          <>
            <Button
              kind="main"
              disabled={isBusy}
              onClick={() => void act('/api/automations/{id}/items/reprocess', 'A new attempt starts')}
            >
              Start another attempt
            </Button>
            <Button disabled={isBusy} onClick={() => void act('/api/automations/{id}/items/skip', 'Skipped')}>
              Skip this item
            </Button>
          </>
        )
      }
    >
      <div className="body stack">
        {item.message && (
          <p>
            <Inert text={item.message} />
          </p>
        )}
        <Facts
          facts={[
            [
              'Automation',
              <Link key="a" to="/automations/$id" params={{ id: item.agent_id }}>
                <Inert text={item.automation} />
              </Link>,
            ],
            [
              'Item',
              <code key="i" className="break">
                <Inert text={item.id} />
              </code>,
            ],
            ['Code', item.code],
            ['Attempt', String(item.attempt)],
            [
              'Last run',
              item.last_run && (
                <Link key="r" to="/runs/$id" params={{ id: item.last_run }}>
                  <Id id={item.last_run} />
                </Link>
              ),
            ],
            ['Since', <Ago key="s" time={item.updated_at} />],
          ]}
        />
        <p className="small soft">Another attempt repeats every call of the item, also those that succeeded.</p>
      </div>
    </Panel>
  );
}

/** QuestionCard shows a question of a script job, and answers it. */
export function QuestionCard({ job, onDone }: { job: Schemas['ScriptJob']; onDone?: () => void }) {
  const { can } = useAccess();
  const { isBusy, decide } = useDecision(onDone);
  const [answer, setAnswer] = useState('');
  return (
    <Panel
      title={job.kind === 'repair' ? 'A repair has a question' : 'A script job has a question'}
      aside={<StateTag state={job.state} />}
    >
      <form
        className="body stack"
        onSubmit={(e) => {
          e.preventDefault();
          void decide(
            () => ok(api.POST('/api/script-jobs/{id}/answer', { params: { path: { id: job.id } }, body: { answer } })),
            'Answered',
          );
        }}
      >
        <p className="strong break">
          <Inert text={job.question ?? ''} />
        </p>
        <Facts
          facts={[
            ['Automation', <Inert key="a" text={job.automation} />],
            [
              'Request',
              <span key="r" className="break">
                <Inert text={job.request} />
              </span>,
            ],
            ['Asked', <Ago key="t" time={job.created_at} />],
          ]}
        />
        {can('member') && (
          <>
            <Field label="Your answer">
              {(id) => (
                <textarea id={id} className="input" value={answer} onChange={(e) => setAnswer(e.target.value)} />
              )}
            </Field>
            <div>
              <Button kind="main" type="submit" disabled={isBusy || answer.trim() === ''}>
                Answer
              </Button>
            </div>
          </>
        )}
      </form>
    </Panel>
  );
}

/** ScheduleCard shows a schedule that was disabled because its runs failed, and enables it again. */
export function ScheduleCard({ schedule, onDone }: { schedule: Schemas['Timer']; onDone?: () => void }) {
  const { can } = useAccess();
  const nameOf = useAgentName();
  const { isBusy, decide } = useDecision(onDone);
  const enable = () =>
    decide(
      () => ok(api.PATCH('/api/schedules/{id}', { params: { path: { id: schedule.id } }, body: { status: 'active' } })),
      'The schedule runs again',
    );
  return (
    <Panel
      title={<Inert text={schedule.name} />}
      aside={<StateTag state={schedule.status} />}
      footer={
        can('member') && (
          <Button kind="main" disabled={isBusy} onClick={() => void enable()}>
            Run it again
          </Button>
        )
      }
    >
      <div className="body stack">
        <p>The schedule stopped because its runs failed. Look at the runs of the agent first.</p>
        <Facts
          facts={[
            [
              'Agent',
              <Link key="a" to="/runs" search={{ agent: schedule.agent_id }}>
                <Inert text={nameOf(schedule.agent_id)} />, all runs
              </Link>,
            ],
            ['Goal', schedule.goal && <Inert key="g" text={schedule.goal} />],
            ['Failures in a row', String(schedule.consecutive_failures)],
            ['Last run', schedule.last_run_at && <Ago key="l" time={schedule.last_run_at} />],
          ]}
        />
      </div>
    </Panel>
  );
}

/** BudgetCard shows a budget that is spent. An owner can raise it. */
export function BudgetCard({ budget }: { budget: Schemas['Budget'] }) {
  const { can } = useAccess();
  const nameOf = useAgentName();
  const [isRaising, setRaising] = useState(false);
  const agent = /^agent:(.+)/.exec(budget.subject)?.[1];
  const name = agent ? nameOf(agent) : budget.subject === 'workspace' ? 'this workspace' : budget.subject;
  return (
    <Panel
      title={
        <>
          Budget of <Inert text={name} />
        </>
      }
      footer={
        <>
          {can('owner') && (
            <Button kind="main" onClick={() => setRaising(true)}>
              Raise…
            </Button>
          )}
          <Link className="btn" to="/settings/$section" params={{ section: 'budgets' }}>
            All budgets
          </Link>
        </>
      }
    >
      <div className="body stack">
        <p>
          This budget is spent. {budget.on_exceed === 'park' ? 'Calls wait' : 'Runs end'} until an owner raises it.
          {!can('owner') && ' Ask an owner to raise it.'}
        </p>
        <BudgetFacts budget={budget} />
      </div>
      {isRaising && (
        <BudgetDialog subject={budget.subject} name={name} budget={budget} onClose={() => setRaising(false)} />
      )}
    </Panel>
  );
}
