import { lazy, Suspense, useState } from 'react';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../api/client';
import { useTools } from '../app/data';
import { useAccess } from '../app/session';
import { formatAmount } from '../lib/format';
import { Dialog } from '../ui/dialog';
import { CompareView, PreviewView } from '../ui/diff';
import { ArgsView } from '../ui/json';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty, Failure, Loading } from '../ui/states';
import { Ago, Id, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';

const Editor = lazy(() => import('../ui/editor'));

/** AutomationsScreen lists automations. */
export function AutomationsScreen() {
  const query = useLive(
    ['automations'],
    (signal) => ok(api.GET('/api/automations', { params: { query: { limit: 200 } }, signal })),
    { topics: ['automations', 'runs'] },
  );
  const { can } = useAccess();
  const [isAdding, setAdding] = useState(false);
  return (
    <Page
      title="Automations"
      actions={
        can('member') && (
          <Button kind="main" onClick={() => setAdding(true)}>
            New automation
          </Button>
        )
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.automations ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No automations">
                <p>
                  An automation is an agent that a script drives. Write its script here, or save one with{' '}
                  <code>reeve run SCRIPT --save</code>.
                </p>
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Automations">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">Version</th>
                    <th scope="col">Owner</th>
                    <th scope="col">Changed</th>
                  </tr>
                </thead>
                <tbody>
                  {(list.automations ?? []).map((a) => (
                    <tr key={a.agent_id}>
                      <td>
                        <Link className="strong" to="/automations/$id" params={{ id: a.agent_id }}>
                          <Inert text={a.name} />
                        </Link>
                      </td>
                      <td>
                        <StateTag state={a.status} />
                      </td>
                      <td className="num">{a.version}</td>
                      <td>{a.owner && <Inert text={a.owner} />}</td>
                      <td>
                        <Ago time={a.updated_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {isAdding && <NewAutomation onClose={() => setAdding(false)} />}
    </Page>
  );
}

const FIRST_SCRIPT = `// Each item is done once, however often this runs.
const names = ['one', 'two'];
Items.total(names.length);
for (const name of names) {
  await Items.withItem(name, name, async (ctx) => {
    if (ctx.item.isDone) return;
    // call tools here
  });
}
`;

function NewAutomation({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const tools = useTools();
  const [name, setName] = useState('');
  const [source, setSource] = useState(FIRST_SCRIPT);
  const [chosen, setChosen] = useState<string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    try {
      const a = await ok(api.POST('/api/automations', { body: { name, source, language: 'js', tools: chosen } }));
      onClose();
      void navigate({ to: '/automations/$id', params: { id: a.agent_id } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New automation" wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <Field label="Name">
          {(id) => <input id={id} className="input" autoFocus value={name} onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Tools that the script may call">
          {(id) => (
            <select
              id={id}
              className="input"
              multiple
              size={5}
              value={chosen}
              onChange={(e) => setChosen([...e.target.selectedOptions].map((o) => o.value))}
            >
              {(tools.data?.tools ?? []).map((t) => (
                <option key={t.id} value={t.id}>
                  {t.id}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Suspense fallback={<Loading />}>
          <Editor label="Script" language="js" value={source} onChange={setSource} />
        </Suspense>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={name.trim() === ''}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** AutomationScreen shows an automation: runs, plans, items, script versions. */
export function AutomationScreen() {
  const { id } = useParams({ from: '/automations/$id' });
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const query = useLive(
    ['automation', id],
    (signal) => ok(api.GET('/api/automations/{id}', { params: { path: { id } }, signal })),
    { topics: ['automations', 'runs', 'items'] },
  );
  const a = query.data;
  const act = async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith('automation') });
  };
  const params = { path: { id } };
  return (
    <Page
      title={a ? <Inert text={a.name} /> : 'Automation'}
      tag={
        a && (
          <>
            <StateTag state={a.status} />
            {a.version && <Tag>version {a.version}</Tag>}
          </>
        )
      }
      actions={
        a &&
        can('member') && (
          <>
            <Button
              kind="main"
              onClick={() =>
                void act(
                  ok(api.POST('/api/automations/{id}/runs', { params, body: { type: 'dry' } })),
                  'A dry run started',
                )
              }
            >
              Plan
            </Button>
            <Button
              onClick={() =>
                void act(
                  ok(api.POST('/api/automations/{id}/runs', { params, body: { type: 'production' } })),
                  'A run started',
                )
              }
            >
              Run
            </Button>
            {a.status === 'active' ? (
              <Button onClick={() => void act(ok(api.POST('/api/automations/{id}/pause', { params })), 'Paused')}>
                Pause
              </Button>
            ) : (
              <Button onClick={() => void act(ok(api.POST('/api/automations/{id}/resume', { params })), 'Resumed')}>
                Resume
              </Button>
            )}
          </>
        )
      }
    >
      <Ready query={query}>
        {(a) => (
          <>
            {a.failure?.message && (
              <div className="state error" role="alert">
                <h2>
                  <Inert text={a.failure.message} />
                </h2>
                <p className="small">
                  {a.failure.class} failure{a.failure.repairs ? `, ${a.failure.repairs} repairs` : ''}
                  {a.failure.run_id && (
                    <>
                      {' '}
                      in{' '}
                      <Link to="/runs/$id" params={{ id: a.failure.run_id }}>
                        run <Id id={a.failure.run_id} />
                      </Link>
                    </>
                  )}
                </p>
              </div>
            )}
            <Runs
              id={id}
              onApply={(run) =>
                act(
                  ok(api.POST('/api/plans/{id}/apply', { params: { path: { id: run } } })),
                  'The plan is being applied',
                )
              }
            />
            <Items id={id} />
            <Versions
              id={id}
              onActivate={(version) =>
                act(
                  ok(api.POST('/api/automations/{id}/activate', { params, body: { version } })),
                  `Version ${version} is active`,
                )
              }
            />
          </>
        )}
      </Ready>
    </Page>
  );
}

function Runs({ id, onApply }: { id: string; onApply: (run: string) => Promise<void> }) {
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
            <Empty title="It has not run yet">
              <p>Plan shows what it would do, and changes nothing.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Runs">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Kind</th>
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
                    const p = r.script.progress;
                    const done = p.done + p.failed + p.skipped;
                    return (
                      <tr key={r.script.run_key}>
                        <td>
                          {r.run ? (
                            <Link to="/runs/$id" params={{ id: r.run.id }}>
                              {r.script.type}
                            </Link>
                          ) : (
                            r.script.type
                          )}
                        </td>
                        <td>
                          <StateTag state={r.run?.state ?? r.wake?.state ?? 'queued'} />
                          {r.run?.message && (
                            <div className="small minus break">
                              <Inert text={r.run.message} />
                            </div>
                          )}
                        </td>
                        <td className="num">
                          {p.planned !== undefined ? (
                            `${p.planned} calls planned`
                          ) : (
                            <>
                              {done}
                              {p.total !== undefined && ` of ${p.total}`}
                              {p.failed > 0 && <span className="minus"> ({p.failed} failed)</span>}
                            </>
                          )}
                          {p.total ? (
                            <div
                              className="progress"
                              role="img"
                              aria-label={`${Math.round((done / p.total) * 100)} % done`}
                            >
                              <div
                                className={p.failed > 0 ? 'bad' : ''}
                                style={{ width: `${Math.min(100, (done / p.total) * 100)}%` }}
                              />
                            </div>
                          ) : null}
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

function Items({ id }: { id: string }) {
  const { can } = useAccess();
  const notify = useNotify();
  const [status, setStatus] = useState('');
  const query = useLive(
    ['automation-items', id, status],
    (signal) =>
      ok(
        api.GET('/api/automations/{id}/items', {
          params: { path: { id }, query: { limit: 100, status: (status || undefined) as 'failed' | undefined } },
          signal,
        }),
      ),
    { topics: ['items'] },
  );
  const act = async (
    path: '/api/automations/{id}/items/reprocess' | '/api/automations/{id}/items/skip',
    item: string,
  ) => {
    try {
      await ok(api.POST(path, { params: { path: { id } }, body: { item } }));
      notify.done(path.endsWith('skip') ? 'Skipped' : 'A new attempt starts');
    } catch (e) {
      notify.failed(e);
    }
    void query.refetch();
  };
  return (
    <Panel
      title={
        <>
          Items <span className="soft num">{query.data?.total}</span>
        </>
      }
      aside={
        <select
          className="input"
          aria-label="State of items"
          value={status}
          onChange={(e) => setStatus(e.target.value)}
        >
          <option value="">All</option>
          {['processing', 'done', 'failed', 'needs_attention', 'skipped'].map((s) => (
            <option key={s} value={s}>
              {s.replace('_', ' ')}
            </option>
          ))}
        </select>
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.items ?? []).length === 0 ? (
            <Empty title="No items">
              <p>
                {status
                  ? 'No item has this state. Choose another.'
                  : 'A script tracks items with Items.withItem. They appear when it runs.'}
              </p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Items">
              <table className="table">
                <tbody>
                  {(list.items ?? []).map((i) => (
                    <tr key={i.id}>
                      <td>
                        <StateTag state={i.state} />
                      </td>
                      <td className="break">
                        <Inert text={i.title || i.id} />
                        {i.message && (
                          <div className="minus small">
                            <Inert text={i.message} />
                          </div>
                        )}
                      </td>
                      <td className="num">attempt {i.attempt}</td>
                      <td>
                        <Ago time={i.updated_at} />
                      </td>
                      <td>
                        {can('member') && (
                          <span className="row">
                            <Button
                              kind="quiet"
                              onClick={() => void act('/api/automations/{id}/items/reprocess', i.id)}
                            >
                              Reprocess
                            </Button>
                            {i.state !== 'done' && (
                              <Button kind="quiet" onClick={() => void act('/api/automations/{id}/items/skip', i.id)}>
                                Skip
                              </Button>
                            )}
                          </span>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
    </Panel>
  );
}

function Versions({ id, onActivate }: { id: string; onActivate: (version: string) => Promise<void> }) {
  const query = useLive(
    ['automation-versions', id],
    (signal) => ok(api.GET('/api/automations/{id}/versions', { params: { path: { id } }, signal })),
    { topics: ['automations'] },
  );
  return (
    <Panel title="Script">
      <Ready query={query}>
        {(list) =>
          (list.versions ?? []).length === 0 ? (
            <Empty title="No script yet">
              <p>
                Save one with <code>reeve run FILE --save</code>.
              </p>
            </Empty>
          ) : (
            <Script id={id} list={list} onActivate={onActivate} />
          )
        }
      </Ready>
    </Panel>
  );
}

const versionOf = (v: Schemas['ScriptVersion']) => `${v.major}.${v.minor}`;

function Script({
  id,
  list,
  onActivate,
}: {
  id: string;
  list: Schemas['ScriptVersionList'];
  onActivate: (version: string) => Promise<void>;
}) {
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const versions = list.versions ?? [];
  const [chosen, setChosen] = useState(list.active ?? (versions[0] ? versionOf(versions[0]) : ''));
  const [other, setOther] = useState('');
  const [draft, setDraft] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const read = (version: string, enabled: boolean) =>
    useLive(
      ['automation-script', id, version],
      (signal) =>
        ok(api.GET('/api/automations/{id}/versions/{version}', { params: { path: { id, version } }, signal })),
      {},
      { enabled },
    );
  const current = read(chosen, chosen !== '');
  const compared = read(other, other !== '');
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.POST('/api/automations/{id}/versions', {
          params: { path: { id } },
          body: { source: draft ?? '', fix: true },
        }),
      );
      notify.done('Saved as a new version');
      setDraft(null);
      void queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith('automation') });
    } catch (e) {
      setError(e);
    }
  };
  const source = current.data?.source ?? '';
  return (
    <div className="body stack">
      <div className="row wrap">
        <label className="row small">
          Version{' '}
          <select
            className="input"
            value={chosen}
            onChange={(e) => {
              setChosen(e.target.value);
              setDraft(null);
            }}
          >
            {versions.map((v) => (
              <option key={v.id} value={versionOf(v)}>
                {versionOf(v)}
                {versionOf(v) === list.active ? ' (active)' : ''}
                {v.comment ? `: ${v.comment}` : ''}
              </option>
            ))}
          </select>
        </label>
        <label className="row small">
          Compare with{' '}
          <select className="input" value={other} onChange={(e) => setOther(e.target.value)}>
            <option value="">none</option>
            {versions
              .filter((v) => versionOf(v) !== chosen)
              .map((v) => (
                <option key={v.id} value={versionOf(v)}>
                  {versionOf(v)}
                </option>
              ))}
          </select>
        </label>
        <span className="grow" />
        {can('member') && chosen !== list.active && (
          <Button onClick={() => void onActivate(chosen)}>Activate {chosen}</Button>
        )}
        {can('member') && draft !== null && draft !== source && (
          <Button kind="main" onClick={() => void save()}>
            Save and activate
          </Button>
        )}
      </div>
      {error !== null && <Failure error={error} />}
      {other && compared.data ? (
        <CompareView title={`${other} → ${chosen}`} before={compared.data.source ?? ''} after={source} />
      ) : (
        <Ready query={current}>
          {() => (
            <Suspense fallback={<Loading />}>
              <Editor
                key={chosen}
                label="Script"
                language={current.data?.language === 'ts' ? 'ts' : 'js'}
                value={source}
                readOnly={!can('member')}
                onChange={setDraft}
              />
            </Suspense>
          )}
        </Ready>
      )}
      {draft !== null && draft !== source && <CompareView title="Your changes" before={source} after={draft} />}
      <Facts
        facts={[
          ['Written', current.data && <Ago key="w" time={current.data.created_at} />],
          ['By', current.data?.created_by],
        ]}
      />
    </div>
  );
}
