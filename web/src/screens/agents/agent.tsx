import { lazy, Suspense, useMemo, useState, type ReactNode } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { Dialog } from '../../ui/dialog';
import { JSONView } from '../../ui/json';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { SchemaForm } from '../../ui/schema-form';
import { Empty, Failure, Loading } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { BudgetDialog, BudgetFacts } from '../budget';
import { Categories } from './categories';

const Editor = lazy(() => import('../../ui/editor'));

const ANSWERS = ['allow', 'ask', 'propose', 'deny'] as const;

function useAct(id: string) {
  const notify = useNotify();
  const queries = useQueryClient();
  return async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ predicate: (q) => q.queryKey.includes(id) || q.queryKey[0] === 'agents' });
  };
}

/** AgentScreen shows an agent: state, tools with their policy, settings, and what destroying it would stop. */
export function AgentScreen() {
  const { id } = useParams({ from: '/agents/$id' });
  const { can } = useAccess();
  const act = useAct(id);
  const [isDestroying, setDestroying] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const query = useLive(
    ['agent', id],
    (signal) => ok(api.GET('/api/agents/{agentId}', { params: { path: { agentId: id } }, signal })),
    { topics: ['agents', 'control'] },
  );
  const a = query.data;
  const isPaused = Boolean(a?.stopped_at);
  return (
    <Page
      title={a ? <Inert text={a.name} /> : 'Agent'}
      tag={a && (isPaused ? <Tag tone="bad">stopped</Tag> : <StateTag state={a.lifecycle} />)}
      actions={
        a &&
        can('member') &&
        a.lifecycle !== 'destroyed' && (
          <>
            {isPaused ? (
              <Button
                kind="main"
                onClick={() =>
                  void act(ok(api.POST('/api/resume', { body: { agent: id } })), 'The agent may act again')
                }
              >
                Resume
              </Button>
            ) : (
              <Button
                onClick={() => void act(ok(api.POST('/api/stop', { body: { agent: id } })), 'The agent is stopped')}
              >
                Pause
              </Button>
            )}
            <Button kind="bad" onClick={() => setDestroying(true)}>
              Destroy…
            </Button>
          </>
        )
      }
    >
      <Ready query={query}>
        {(a) => (
          <div className="cols">
            <div className="stack">
              <ToolsPanel agent={a} />
              <LastRuns id={a.id} />
            </div>
            <div className="stack">
              <AgentFacts agent={a} />
              <Knows id={a.id} />
              <BudgetPanel agent={a} />
              <Panel
                title="Settings"
                aside={
                  can('member') && a.lifecycle !== 'destroyed' && <Button onClick={() => setEditing(true)}>Edit</Button>
                }
              >
                <div className="body">
                  <JSONView text={JSON.stringify(a.config ?? {})} label="Settings" />
                </div>
              </Panel>
            </div>
          </div>
        )}
      </Ready>
      {isEditing && a && <EditDialog agent={a} onClose={() => setEditing(false)} />}
      {isDestroying && a && <DestroyDialog agent={a} onClose={() => setDestroying(false)} />}
    </Page>
  );
}

// Knows shows what an agent remembers of itself: goal, task, open loops, preferences, and when it wakes next.
function Knows({ id }: { id: string }) {
  const query = useLive(
    ['agent-state', id],
    async (signal) => {
      const state = await ok(api.GET('/api/agents/{agentId}/state', { params: { path: { agentId: id } }, signal }));
      const ids = [...new Set([state.slots.active_task_id ?? '', ...(state.slots.open_loop_ids ?? [])])]
        .filter((x) => x.startsWith('task_'))
        .slice(0, 50);
      const tasks = await Promise.all(
        ids.map((task) =>
          ok(api.GET('/api/journal/tasks/{id}', { params: { path: { id: task } }, signal })).catch(() => null),
        ),
      );
      return { state, titles: new Map(tasks.flatMap((t) => (t ? [[t.id, t.title] as const] : []))) };
    },
    { topics: ['agents', 'runs', 'journal'] },
  );
  return (
    <Panel title="What it knows">
      <div className="body stack">
        <Ready query={query}>
          {({ state, titles }) => {
            const s = state.slots;
            const loops = s.open_loop_ids ?? [];
            const name = (x: string) => titles.get(x) ?? x;
            return state.revision === 0 && !state.next_wake_at && !state.sleep_until ? (
              <p className="faint small">
                Nothing yet. It writes its goal, open loops and preferences here with the tool agent_state_update.
              </p>
            ) : (
              <>
                <Facts
                  facts={[
                    ['Goal', s.primary_goal && <Inert key="g" text={s.primary_goal} />],
                    ['Works on', s.active_task_id && <Inert key="t" text={name(s.active_task_id)} />],
                    ['Sleeps until', state.sleep_until && <Ago key="s" time={state.sleep_until} />],
                    ['Wakes next', state.next_wake_at && <Ago key="n" time={state.next_wake_at} />],
                    ...Object.entries(s.preferences ?? {}).map(
                      ([k, v]) => [k, <Inert key={k} text={v} />] as [string, ReactNode],
                    ),
                  ]}
                />
                <section className="stack tight">
                  <h3>
                    Open loops <span className="faint num">{loops.length}</span>
                  </h3>
                  {loops.length > 0 && (
                    <ul className="small">
                      {loops.map((x) => (
                        <li key={x} className="break">
                          <Inert text={name(x)} />
                        </li>
                      ))}
                    </ul>
                  )}
                </section>
                {s.extension && Object.keys(s.extension).length > 0 && (
                  <JSONView text={JSON.stringify(s.extension)} label="Other slots" />
                )}
              </>
            );
          }}
        </Ready>
      </div>
    </Panel>
  );
}

function LastRuns({ id }: { id: string }) {
  const query = useLive(
    ['agent-runs', id],
    (signal) => ok(api.GET('/api/runs', { params: { query: { agent: id, limit: 8 } }, signal })),
    { topics: ['runs'] },
  );
  return (
    <Panel
      title="Last runs"
      aside={
        <Link to="/runs" search={{ agent: id }}>
          all
        </Link>
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.runs ?? []).length === 0 ? (
            <Empty title="It has not run yet">
              <p>Talk to it in a chat, or give it a schedule or a subscription.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Last runs">
              <table className="table">
                <tbody>
                  {(list.runs ?? []).map((r) => (
                    <tr key={r.id}>
                      <td>
                        <StateTag state={r.state} />
                      </td>
                      <td className="break">
                        <Link to="/runs/$id" params={{ id: r.id }}>
                          <Inert
                            text={(r.output || r.message || r.input || r.reason.replaceAll('_', ' ')).slice(0, 200)}
                          />
                        </Link>
                      </td>
                      <td>
                        <Ago time={r.started_at} />
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

function BudgetPanel({ agent }: { agent: Schemas['Agent'] }) {
  const { can } = useAccess();
  const [isEditing, setEditing] = useState(false);
  const subject = `agent:${agent.id}`;
  const query = useLive(['budgets'], (signal) => ok(api.GET('/api/budgets', { signal })), {
    topics: ['budgets', 'operations', 'runs'],
  });
  const own = query.data?.budgets?.find((b) => b.subject === subject);
  return (
    <Panel
      title="Budget"
      aside={can('owner') && <Button onClick={() => setEditing(true)}>{own ? 'Change' : 'Set'}</Button>}
    >
      <div className="body">
        <Ready query={query}>
          {() =>
            own ? (
              <BudgetFacts budget={own} />
            ) : (
              <p className="faint small">No limit of its own. The workspace&apos;s budget applies.</p>
            )
          }
        </Ready>
      </div>
      {isEditing && <BudgetDialog subject={subject} name={agent.name} budget={own} onClose={() => setEditing(false)} />}
    </Panel>
  );
}

function EditDialog({ agent, onClose }: { agent: Schemas['Agent']; onClose: () => void }) {
  const queries = useQueryClient();
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  const [mode, setMode] = useState(agent.mode);
  const [scope, setScope] = useState<string[]>(agent.categories ?? []);
  const [config, setConfig] = useState(() => JSON.stringify(agent.config ?? {}, null, 2));
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.PATCH('/api/agents/{agentId}', {
          params: { path: { agentId: agent.id } },
          body: { mode: mode as 'hybrid', categories: scope, config: JSON.parse(config) as unknown },
        }),
      );
      void queries.invalidateQueries({ predicate: (q) => q.queryKey.includes(agent.id) || q.queryKey[0] === 'agents' });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={`Settings of ${agent.name}`} wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <Field label="Mode">
          {(id) => (
            <select id={id} className="input" value={mode} onChange={(e) => setMode(e.target.value)}>
              <option value="hybrid">hybrid: chats, and wakes by itself</option>
              <option value="autonomous">autonomous: wakes by itself</option>
              <option value="interactive">interactive: only chats</option>
            </select>
          )}
        </Field>
        <Categories list={categories.data?.categories ?? []} chosen={scope} onChange={setScope} />
        <h3>Settings</h3>
        <Suspense fallback={<Loading />}>
          <Editor label="Settings as JSON" language="json" value={config} onChange={setConfig} />
        </Suspense>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit">
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function AgentFacts({ agent }: { agent: Schemas['Agent'] }) {
  const runtime = useLive(
    ['runtime', agent.id],
    (signal) => ok(api.GET('/api/agents/{agentId}/runtime', { params: { path: { agentId: agent.id } }, signal })),
    { topics: ['runs', 'agents'] },
  );
  const r = runtime.data;
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  return (
    <Panel title="Facts">
      <div className="body">
        <Facts
          facts={[
            ['Now', r && <StateTag key="n" state={r.run_status} />],
            [
              'Run',
              r?.active_run && (
                <Link key="r" to="/runs/$id" params={{ id: r.active_run }}>
                  <Id id={r.active_run} />
                </Link>
              ),
            ],
            ['Waiting wakes', r && r.queued_wakes > 0 && String(r.queued_wakes)],
            ['Failures in a row', r && r.failure_streak > 0 && String(r.failure_streak)],
            ['Last run', r?.last_run_at && <Ago key="l" time={r.last_run_at} />],
            [
              'History',
              <Link key="h" to="/runs" search={{ agent: agent.id }}>
                all runs
              </Link>,
            ],
            ['Kind', agent.kind],
            ['Mode', agent.mode],
            [
              'Categories',
              agent.categories?.length
                ? agent.categories
                    .map((c) => categories.data?.categories?.find((x) => x.id === c)?.name ?? c)
                    .join(', ')
                : 'none',
            ],
            ['Created', <Ago key="c" time={agent.created_at} />],
            [
              'Id',
              <code key="i" className="break">
                {agent.id}
              </code>,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

function ToolsPanel({ agent }: { agent: Schemas['Agent'] }) {
  const { can } = useAccess();
  const act = useAct(agent.id);
  const [isAttaching, setAttaching] = useState(false);
  const query = useLive(
    ['agent-tools', agent.id],
    (signal) => ok(api.GET('/api/agents/{agentId}/tools', { params: { path: { agentId: agent.id } }, signal })),
    { topics: ['agents', 'tools'] },
  );
  const policy = agent.policy;
  const setPolicy = (tool: string, answer: string) => {
    const tools = { ...(policy.tools ?? {}) };
    if (answer === '') delete tools[tool];
    else tools[tool] = answer as (typeof ANSWERS)[number];
    void act(
      ok(
        api.PATCH('/api/agents/{agentId}', {
          params: { path: { agentId: agent.id } },
          body: { policy: { ...policy, tools } },
        }),
      ),
      `${tool}: ${answer || 'as its tier'}`,
    );
  };
  const tierAnswer = (t: Schemas['ToolView']) =>
    policy.tiers?.[t.tier] ?? (t.tier === 'read_only' ? 'allow' : t.tier === 'privileged' ? 'ask' : 'allow');
  return (
    <Panel
      title="Tools and policy"
      aside={can('member') && <Button onClick={() => setAttaching(true)}>Attach a tool</Button>}
    >
      <Ready query={query}>
        {(list) =>
          (list.tools ?? []).length === 0 ? (
            <Empty title="No tools">
              <p>Without tools an agent can only talk.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Tools and policy">
              <table className="table matrix">
                <thead>
                  <tr>
                    <th scope="col">Tool</th>
                    {ANSWERS.map((x) => (
                      <th key={x} scope="col">
                        {x}
                      </th>
                    ))}
                    <th scope="col">as tier</th>
                    <th scope="col">
                      <span className="hide">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {(list.tools ?? []).map((t) => {
                    const own = policy.tools?.[t.id];
                    return (
                      <tr key={t.id}>
                        <td>
                          <Link className="mono" to="/tools/$id" params={{ id: t.id }}>
                            {t.id}
                          </Link>
                          <div className="small faint">
                            {t.tier.replace('_', ' ')}, {t.risk} risk
                          </div>
                        </td>
                        {ANSWERS.map((x) => (
                          <td key={x}>
                            <input
                              type="radio"
                              name={`policy-${t.id}`}
                              aria-label={`${t.id}: ${x}`}
                              disabled={!can('member')}
                              checked={own === x}
                              onChange={() => setPolicy(t.id, x)}
                            />
                          </td>
                        ))}
                        <td>
                          <label className="row small soft">
                            <input
                              type="radio"
                              name={`policy-${t.id}`}
                              aria-label={`${t.id}: as its tier`}
                              disabled={!can('member')}
                              checked={own === undefined}
                              onChange={() => setPolicy(t.id, '')}
                            />
                            {tierAnswer(t)}
                          </label>
                        </td>
                        <td>
                          {can('member') && (
                            <Button
                              kind="quiet"
                              onClick={() =>
                                void act(
                                  ok(
                                    api.DELETE('/api/agents/{agentId}/tools/{toolId}', {
                                      params: { path: { agentId: agent.id, toolId: t.id } },
                                    }),
                                  ),
                                  `Detached ${t.id}`,
                                )
                              }
                            >
                              Detach
                            </Button>
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
      {isAttaching && (
        <AttachDialog
          agent={agent}
          attached={query.data?.tools?.map((t) => t.id) ?? []}
          onClose={() => setAttaching(false)}
        />
      )}
    </Panel>
  );
}

function AttachDialog({
  agent,
  attached,
  onClose,
}: {
  agent: Schemas['Agent'];
  attached: string[];
  onClose: () => void;
}) {
  const tools = useTools();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState('');
  const [config, setConfig] = useState<Record<string, unknown>>({});
  const [error, setError] = useState<unknown>(null);
  const free = useMemo(() => (tools.data?.tools ?? []).filter((t) => !attached.includes(t.id)), [tools.data, attached]);
  const tool = free.find((t) => t.id === chosen);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.POST('/api/agents/{agentId}/tools', {
          params: { path: { agentId: agent.id } },
          body: { tool_id: chosen, config: Object.keys(config).length ? config : undefined },
        }),
      );
      void queries.invalidateQueries({ queryKey: ['agent-tools', agent.id] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="Attach a tool" wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <Field label="Tool">
          {(id) => (
            <select
              id={id}
              className="input"
              value={chosen}
              onChange={(e) => {
                setChosen(e.target.value);
                setConfig({});
              }}
            >
              <option value="">Choose…</option>
              {free.map((t) => (
                <option key={t.id} value={t.id}>
                  {t.id}
                </option>
              ))}
            </select>
          )}
        </Field>
        {tool && (
          <p className="soft break">
            <Inert text={tool.description} />
          </p>
        )}
        {tool?.config_schema ? (
          <>
            <h3>Settings</h3>
            <SchemaForm schema={tool.config_schema} value={config} onChange={setConfig} />
          </>
        ) : null}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={!tool}>
            Attach
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function DestroyDialog({ agent, onClose }: { agent: Schemas['Agent']; onClose: () => void }) {
  const act = useAct(agent.id);
  const stops = useLive(
    ['destroy', agent.id],
    async (signal) => {
      const path = { agentId: agent.id };
      const [runtime, schedules, subscriptions, approvals] = await Promise.all([
        ok(api.GET('/api/agents/{agentId}/runtime', { params: { path }, signal })),
        ok(api.GET('/api/schedules', { params: { query: { agent: agent.id, limit: 100 } }, signal })),
        ok(api.GET('/api/agents/{agentId}/subscriptions', { params: { path }, signal })),
        ok(api.GET('/api/approvals', { params: { query: { state: 'pending', limit: 500 } }, signal })),
      ]);
      return [
        [runtime.open_runs, 'open runs'],
        [runtime.queued_wakes, 'waiting wakes'],
        [schedules.total, 'schedules'],
        [subscriptions.subscriptions?.length ?? 0, 'subscriptions'],
        [approvals.approvals?.filter((x) => x.agent_id === agent.id).length ?? 0, 'calls that wait for approval'],
      ] as [number, string][];
    },
    {},
  );
  return (
    <Dialog title={`Destroy ${agent.name}?`} onClose={onClose}>
      <p>The agent never acts again. Its history stays, and can still be explained.</p>
      <Ready query={stops}>
        {(list) => {
          const some = list.filter(([n]) => n > 0);
          return some.length === 0 ? (
            <p className="soft">Nothing is open.</p>
          ) : (
            <>
              <p>This stops:</p>
              <ul className="md">
                {some.map(([n, what]) => (
                  <li key={what}>
                    {n} {what}
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Ready>
      <div className="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          kind="bad"
          onClick={() => {
            onClose();
            void act(
              ok(
                api.PATCH('/api/agents/{agentId}', {
                  params: { path: { agentId: agent.id } },
                  body: { lifecycle: 'destroyed' },
                }),
              ),
              'Destroyed',
            );
          }}
        >
          Destroy
        </Button>
      </div>
    </Dialog>
  );
}
