import { useMemo, useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { Dialog } from '../../ui/dialog';
import { JSONView } from '../../ui/json';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { SchemaForm } from '../../ui/schema-form';
import { Empty, Failure } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';

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
            </div>
            <div className="stack">
              <AgentFacts agent={a} />
              <Panel title="Settings">
                <div className="body">
                  <JSONView text={JSON.stringify(a.config ?? {})} label="Settings" />
                </div>
              </Panel>
            </div>
          </div>
        )}
      </Ready>
      {isDestroying && a && <DestroyDialog agent={a} onClose={() => setDestroying(false)} />}
    </Page>
  );
}

function AgentFacts({ agent }: { agent: Schemas['Agent'] }) {
  const runtime = useLive(
    ['runtime', agent.id],
    (signal) => ok(api.GET('/api/agents/{agentId}/runtime', { params: { path: { agentId: agent.id } }, signal })),
    { topics: ['runs', 'agents'] },
  );
  const r = runtime.data;
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
            ['Categories', agent.categories?.length ? agent.categories.join(', ') : 'none'],
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
              <p>Without tools, an agent can only answer messages.</p>
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
      await ok(api.POST('/api/agents/{agentId}/tools', { params: { path: { agentId: agent.id } },
        body: { tool_id: chosen, config: Object.keys(config).length ? config : undefined } }));
      void queries.invalidateQueries({ queryKey: ['agent-tools', agent.id] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="Attach a tool" wide onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void save(); }}>
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
  const stops = useLive(['destroy', agent.id], async (signal) => {
    const path = { agentId: agent.id };
    const [runtime, schedules, subscriptions, approvals] = await Promise.all([
      ok(api.GET('/api/agents/{agentId}/runtime', { params: { path }, signal })),
      ok(api.GET('/api/schedules', { params: { query: { agent: agent.id, limit: 100 } }, signal })),
      ok(api.GET('/api/agents/{agentId}/subscriptions', { params: { path }, signal })),
      ok(api.GET('/api/approvals', { params: { query: { state: 'pending', limit: 500 } }, signal })),
    ]);
    return [
      [runtime.open_runs, 'open runs'], [runtime.queued_wakes, 'waiting wakes'], [schedules.total, 'schedules'],
      [subscriptions.subscriptions?.length ?? 0, 'subscriptions'],
      [approvals.approvals?.filter((x) => x.agent_id === agent.id).length ?? 0, 'calls that wait for approval'],
    ] as [number, string][];
  }, {});
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
