import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAccess } from '../../app/session';
import { formatAmount, some } from '../../lib/format';
import { Dialog } from '../../ui/dialog';
import { PreviewView } from '../../ui/diff';
import { ArgsView } from '../../ui/json';
import { Button, Panel, Ready, StateTag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';

const KINDS: Record<string, string> = { dry: 'plan', production: 'run', apply: 'applied plan' };

/** Runs lists the runs of an automation with their progress, and shows the plan that a run made. */
export function Runs({ id, onApply }: { id: string; onApply: (run: string) => Promise<void> }) {
  const [plan, setPlan] = useState('');
  const query = useLive(
    ['automation-runs', id],
    (signal) => ok(api.GET('/api/automations/{id}/runs', { params: { path: { id }, query: { limit: 10 } }, signal })),
    { topics: ['runs', 'automations', 'items'] },
  );
  return (
    <Panel title="Runs">
      <Ready query={query}>
        {(list) =>
          (list.runs ?? []).length === 0 ? (
            <Empty title="No runs to show">
              <p>Plan shows what it would do, and changes nothing.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Runs">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Run</th>
                    <th scope="col">State</th>
                    <th scope="col">Items</th>
                    <th scope="col">Cost</th>
                    <th scope="col">Started</th>
                    <th scope="col">
                      <span className="hide">Plan</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {(list.runs ?? []).map((r) => {
                    const state = r.run?.state ?? r.wake?.state ?? 'queued';
                    return (
                      <tr key={r.script.run_key}>
                        <td>
                          {r.run ? (
                            <Link to="/runs/$id" params={{ id: r.run.id }}>
                              {KINDS[r.script.type] ?? r.script.type}
                            </Link>
                          ) : (
                            (KINDS[r.script.type] ?? r.script.type)
                          )}
                        </td>
                        <td className={r.run?.message ? 'soft' : undefined}>
                          <StateTag state={state} />
                          {r.run?.message && (
                            <div className="small minus break">
                              <Inert text={r.run.message} />
                            </div>
                          )}
                        </td>
                        <td className="num">
                          <ItemProgress progress={r.script.progress} state={state} />
                        </td>
                        <td className="num">{formatAmount(r.run?.spent)}</td>
                        <td>
                          <Ago time={r.run?.started_at ?? r.wake?.created_at} />
                        </td>
                        <td>
                          {r.script.type === 'dry' && r.run?.state === 'completed' && (
                            <Button onClick={() => setPlan(r.run?.id ?? '')}>Show plan</Button>
                          )}
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {plan && (
        <PlanDialog
          run={plan}
          onClose={() => setPlan('')}
          onApply={async () => {
            await onApply(plan);
            setPlan('');
          }}
        />
      )}
    </Panel>
  );
}

// ItemProgress shows how far a run is. A run that only plans counts calls, and finishes no item.
function ItemProgress({ progress: p, state }: { progress: Schemas['Progress']; state: string }) {
  if (p.planned !== undefined) return <>{some(p.planned, 'call')} planned</>;
  const done = p.done + p.failed + p.skipped;
  const isBad = p.failed > 0 || state === 'failed';
  return (
    <>
      {done}
      {p.total !== undefined && ` of ${p.total}`}
      {p.failed > 0 && <span className="minus"> ({p.failed} failed)</span>}
      {p.total ? (
        <div className="progress" role="img" aria-label={`${Math.round((done / p.total) * 100)} % done`}>
          <div className={isBad ? 'bad' : ''} style={{ width: `${Math.min(100, (done / p.total) * 100)}%` }} />
        </div>
      ) : null}
      {p.current && state === 'running' && (
        <div className="small soft current-item">
          <Inert text={p.current} />
        </div>
      )}
    </>
  );
}

function PlanDialog({ run, onClose, onApply }: { run: string; onClose: () => void; onApply: () => Promise<void> }) {
  const { can } = useAccess();
  const query = useLive(
    ['plan', run],
    (signal) => ok(api.GET('/api/plans/{id}', { params: { path: { id: run }, query: { limit: 200 } }, signal })),
    { topics: ['runs'], id: run },
  );
  return (
    <Dialog title="What it would do" wide onClose={onClose}>
      <Ready query={query}>
        {(p) => {
          const calls = (p.calls ?? []).filter((c) => c.tool);
          return calls.length === 0 ? (
            <p>Nothing would change.</p>
          ) : (
            <>
              {p.next_cursor && <p className="soft">The first {calls.length} calls of the plan.</p>}
              {calls.map((c) => (
                <section key={c.ordinal} className="stack tight">
                  <h3>
                    <span className="mono">{c.tool}</span>{' '}
                    <span className="soft">
                      <Inert text={c.title} />
                    </span>{' '}
                    {c.state && <StateTag state={c.state} />}
                  </h3>
                  {c.preview ? <PreviewView preview={c.preview} /> : <ArgsView args={c.args} />}
                </section>
              ))}
            </>
          );
        }}
      </Ready>
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
        {can('member') && (
          <Button kind="main" disabled={!query.data} onClick={() => void onApply()}>
            Apply exactly this
          </Button>
        )}
      </div>
    </Dialog>
  );
}
