import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../api/client';
import { useRefresh } from '../app/act';
import { useAgents } from '../app/data';
import { useAccess } from '../app/session';
import { ConfirmButton } from '../ui/confirm';
import { Dialog } from '../ui/dialog';
import { Button, Field, Page, Ready, Tag, useLive } from '../ui/kit';
import { Empty, Failure } from '../ui/states';
import { Ago, Inert } from '../ui/text';

const WATCHES = { key: 'a kind of thing', subtype: 'a kind of change', id: 'one thing' } as const;

const NAME_HELP = {
  key: 'Such as TASK: all tasks. The list has all names.',
  subtype: 'What changes, a dot, and its new state: task.done.',
  id: 'The id of a task, category, schedule or agent, such as task_…',
} as const;

// KNOWN lists the names that docs/wakes.md explains.
const KNOWN: Record<keyof typeof WATCHES, string[]> = {
  key: [
    'TASK',
    'CATEGORY',
    'LABEL',
    'CHECKLIST',
    'TIME_ENTRY',
    'DAY_PLAN',
    'RATING',
    'AGENT_STATE',
    'SCHEDULE',
    'SCHEDULE_FIRED',
    'SCHEDULE_ENDED',
    'FILE',
    'SESSION_FILE',
    'SCRATCHPAD',
    'MEDIA',
    'NOTIFICATION',
    'AGENT',
    'AGENT_MESSAGE',
  ],
  subtype: [
    'task.open',
    'task.groomed',
    'task.in_progress',
    'task.blocked',
    'task.on_hold',
    'task.done',
    'task.rejected',
    'time_entry.running',
    'time_entry.ended',
    'rating.task',
    'agent.created',
    'agent.changed',
    'agent.destroyed',
    'agent_message.timer',
    'schedule_fired.timer',
    'schedule_fired.recovery_catchup',
    'schedule_ended.completed',
    'schedule_ended.failed',
  ],
  id: [],
};

/** SubscriptionsScreen lists the changes that agents watch. */
export function SubscriptionsScreen() {
  const { can } = useAccess();
  const agents = useAgents();
  const refresh = useRefresh('subscriptions');
  const ids = agents.data?.agents?.map((a) => a.id) ?? [];
  const query = useLive(
    ['subscriptions'],
    async (signal) => {
      const all = await ok(api.GET('/api/agents', { params: { query: { limit: 500 } }, signal }));
      const lists = await Promise.all(
        (all.agents ?? []).map((a) =>
          ok(api.GET('/api/agents/{agentId}/subscriptions', { params: { path: { agentId: a.id } }, signal })),
        ),
      );
      return lists.flatMap((l) => l.subscriptions ?? []);
    },
    { topics: ['subscriptions', 'agents'] },
  );
  const [asked, setAsked] = useState<Asked | null>(null);
  const nameOf = (id: string) => agents.data?.agents?.find((a) => a.id === id)?.name ?? id;
  const add = can('member') && ids.length > 0 && (
    <Button kind="main" onClick={() => setAsked({ agent: ids[0] ?? '', class: 'key', name: 'TASK', predicate: '' })}>
      New subscription
    </Button>
  );
  return (
    <Page title="Subscriptions" actions={add}>
      <Ready query={query}>
        {(list) =>
          list.length === 0 ? (
            <div className="panel">
              <Empty title="No agent watches anything">
                <p>
                  A subscription wakes an agent when something changes: say which agent, and what it watches.
                </p>
                {add || (
                  <Link className="btn" to="/agents">
                    Agents
                  </Link>
                )}
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Subscriptions">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Agent</th>
                    <th scope="col">Watches</th>
                    <th scope="col">When</th>
                    <th scope="col">Since</th>
                    <th scope="col">
                      <span className="hide">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((s) => (
                    <tr key={s.id}>
                      <td>
                        <Link to="/agents/$id" params={{ id: s.agent_id }}>
                          <Inert text={nameOf(s.agent_id)} />
                        </Link>
                      </td>
                      <td>
                        <span className="mono">
                          <Inert text={s.token.name} />
                        </span>
                        <div className="small faint">{WATCHES[s.token.class as 'key'] ?? s.token.class}</div>
                      </td>
                      <td className="mono break">{s.predicate ? <Inert text={s.predicate} /> : 'always'}</td>
                      <td>
                        <Ago time={s.created_at} />
                        {!s.can_fire && (
                          <div className="small minus">
                            <Inert text={s.why_not ?? ''} />
                          </div>
                        )}
                      </td>
                      <td>
                        <span className="row">
                          <Button
                            kind="quiet"
                            onClick={() =>
                              setAsked({
                                agent: s.agent_id,
                                class: s.token.class as 'key',
                                name: s.token.name,
                                predicate: s.predicate ?? '',
                                isKept: true,
                              })
                            }
                          >
                            Test…
                          </Button>
                          {can('member') && (
                            <ConfirmButton
                              label="Delete"
                              title={`Stop ${nameOf(s.agent_id)} watching ${s.token.name}?`}
                              done="Deleted"
                              run={() =>
                                ok(api.DELETE('/api/subscriptions/{id}', { params: { path: { id: s.id } } })).finally(
                                  refresh,
                                )
                              }
                            >
                              <p>These changes no longer wake the agent. Its past runs stay.</p>
                            </ConfirmButton>
                          )}
                        </span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {asked && <Subscribe first={asked} onClose={() => setAsked(null)} />}
    </Page>
  );
}

interface Asked {
  agent: string;
  class: 'key' | 'subtype' | 'id';
  name: string;
  predicate: string;
  isKept?: boolean;
}

// Subscribe edits a subscription and tests its predicate on past changes before it is made.
function Subscribe({ first, onClose }: { first: Asked; onClose: () => void }) {
  const agents = useAgents();
  const queries = useQueryClient();
  const { can } = useAccess();
  const [form, setForm] = useState(first);
  const [tried, setTried] = useState<Asked | null>(first.isKept ? first : null);
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<Asked>) => setForm((old) => ({ ...old, ...change }));
  const save = async () => {
    try {
      await ok(
        api.POST('/api/agents/{agentId}/subscriptions', {
          params: { path: { agentId: form.agent } },
          body: { class: form.class, name: form.name, predicate: form.predicate || undefined },
        }),
      );
      void queries.invalidateQueries({ queryKey: ['subscriptions'] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={first.isKept ? 'Test a subscription' : 'New subscription'} wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          setError(null);
          setTried({ ...form });
        }}
      >
        <div className="row wrap top-row">
          <Field label="Agent">
            {(id) => (
              <select
                id={id}
                className="input"
                autoFocus
                value={form.agent}
                onChange={(e) => set({ agent: e.target.value })}
              >
                {agents.data?.agents?.map((a) => (
                  <option key={a.id} value={a.id}>
                    {a.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Watches">
            {(id) => (
              <select
                id={id}
                className="input"
                value={form.class}
                onChange={(e) => {
                  const next = e.target.value as Asked['class'];
                  set({ class: next, name: KNOWN[next][0] ?? '' });
                }}
              >
                {Object.entries(WATCHES).map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Name" name="name">
            {(id) => (
              <>
                <input
                  id={id}
                  className="input mono"
                  required
                  list={`${id}-names`}
                  value={form.name}
                  onChange={(e) => set({ name: e.target.value })}
                />
                <datalist id={`${id}-names`}>
                  {KNOWN[form.class].map((name) => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
        </div>
        <p className="small faint">{NAME_HELP[form.class]}</p>
        <Field label="Only when (CEL, optional)" help={'An expression over entity, such as entity.status == "done".'}>
          {(id) => (
            <textarea
              id={id}
              className="input mono"
              spellCheck={false}
              value={form.predicate}
              onChange={(e) => set({ predicate: e.target.value })}
            />
          )}
        </Field>
        {tried && <Trial asked={tried} />}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>{first.isKept ? 'Close' : 'Cancel'}</Button>
          <Button type="submit">Test on past changes</Button>
          {!first.isKept && can('member') && (
            <Button kind="main" disabled={form.name.trim() === ''} onClick={() => void save()}>
              Subscribe
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function Trial({ asked }: { asked: Asked }) {
  const query = useLive(
    ['trial', asked],
    (signal) =>
      ok(
        api.GET('/api/agents/{agentId}/subscriptions/trial', {
          params: {
            path: { agentId: asked.agent },
            query: { class: asked.class, name: asked.name, predicate: asked.predicate || undefined, limit: 20 },
          },
          signal,
        }),
      ),
    {},
  );
  if (query.isError) return <Failure error={query.error} />; // the same test would fail again
  return (
    <Ready query={query}>
      {(list) => {
        const trials = list.trials ?? [];
        if (trials.length === 0) return <p className="soft">No past change of this kind is known.</p>;
        return (
          <section className="stack tight" aria-label="Past changes">
            <h3>
              {trials.filter((t) => t.holds).length} of the last {trials.length} changes would wake the agent
            </h3>
            <div className="scroll" tabIndex={0} role="group" aria-label="Results">
              <table className="table">
                <tbody>
                  {trials.map((t) => (
                    <tr key={t.change.id}>
                      <td>
                        <Tag tone={t.holds ? 'ok' : 'none'}>{t.holds ? 'wakes' : 'skipped'}</Tag>
                      </td>
                      <td className="break">
                        {(t.change.entities ?? []).map((e) => (
                          <div key={e.id}>
                            <Inert text={e.title || e.id} />{' '}
                            <span className="faint">
                              {e.action}
                              {e.fields &&
                                `: ${Object.entries(e.fields)
                                  .map(([k, v]) => `${k} → ${v?.[1] || 'none'}`)
                                  .join(', ')}`}
                            </span>
                          </div>
                        ))}
                        {t.why && (
                          <div className="small soft">
                            <Inert text={t.why} />
                            {t.why.includes('can see none') && (
                              <>
                                .{' '}
                                <Link to="/agents/$id" params={{ id: asked.agent }}>
                                  Give the agent the category
                                </Link>
                              </>
                            )}
                          </div>
                        )}
                      </td>
                      <td>
                        <Ago time={t.change.created_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <p className="small faint">Each entry is tested as the change left it. Deleted entries count as skipped.</p>
          </section>
        );
      }}
    </Ready>
  );
}
