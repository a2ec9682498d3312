import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../api/client';
import { useAgentName, useAgents } from '../app/data';
import { useAccess } from '../app/session';
import { formatTime } from '../lib/format';
import { Dialog } from '../ui/dialog';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty, Failure } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';

const formatFiring = (time: string) =>
  new Date(time).toLocaleString(undefined, {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });

/** SchedulesScreen lists schedules with their next runs, and pauses, resumes or deletes them. */
export function SchedulesScreen() {
  const { can } = useAccess();
  const [isAdding, setAdding] = useState(false);
  const query = useLive(
    ['schedules'],
    (signal) => ok(api.GET('/api/schedules', { params: { query: { limit: 200 } }, signal })),
    { topics: ['schedules', 'runs'] },
  );
  return (
    <Page
      title="Schedules"
      actions={
        can('member') && (
          <Button kind="main" onClick={() => setAdding(true)}>
            New schedule
          </Button>
        )
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.schedules ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No schedules">
                <p>A schedule wakes an agent at set times, with a goal.</p>
              </Empty>
            </div>
          ) : (
            <>
              {(list.schedules ?? []).map((s) => (
                <ScheduleCard key={s.id} id={s.id} />
              ))}
            </>
          )
        }
      </Ready>
      {isAdding && <NewSchedule onClose={() => setAdding(false)} />}
    </Page>
  );
}

function ScheduleCard({ id }: { id: string }) {
  const { can } = useAccess();
  const nameOf = useAgentName();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isDeleting, setDeleting] = useState(false);
  const query = useLive(
    ['schedule', id],
    (signal) => ok(api.GET('/api/schedules/{id}', { params: { path: { id } }, signal })),
    { topics: ['schedules', 'runs'] },
  );
  const act = async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ predicate: (q) => ['schedule', 'schedules'].includes(String(q.queryKey[0])) });
  };
  const setStatus = (status: 'active' | 'paused') =>
    act(
      ok(api.PATCH('/api/schedules/{id}', { params: { path: { id } }, body: { status } })),
      status === 'active' ? 'The schedule runs again' : 'The schedule is paused',
    );
  const runNow = () =>
    act(ok(api.POST('/api/schedules/{id}/run', { params: { path: { id } } })), 'The schedule fires now');
  return (
    <Ready query={query}>
      {(s) => (
        <Panel
          title={<Inert text={s.name} />}
          aside={
            <>
              <StateTag state={s.status} />
              {s.missed > 0 && <Tag tone="wait">{s.missed} missed</Tag>}
            </>
          }
          footer={
            can('member') && (
              <>
                {s.status === 'active' && <Button onClick={() => void runNow()}>Run now</Button>}
                {s.status === 'paused' ? (
                  <Button onClick={() => void setStatus('active')}>Resume</Button>
                ) : (
                  <Button onClick={() => void setStatus('paused')}>Pause</Button>
                )}
                <Button kind="quiet" onClick={() => setDeleting(true)}>
                  Delete…
                </Button>
              </>
            )
          }
        >
          <div className="body cols">
            <Facts
              facts={[
                [
                  'Agent',
                  <Link key="a" to="/agents/$id" params={{ id: s.agent_id }}>
                    <Inert text={nameOf(s.agent_id)} />
                  </Link>,
                ],
                ['Goal', s.goal && <Inert key="g" text={s.goal} />],
                [
                  'When',
                  <span key="w">
                    <code>{s.cadence_value}</code> in {s.timezone}
                  </span>,
                ],
                ['Last run', s.last_run_at && <Ago key="l" time={s.last_run_at} />],
                ['Failures in a row', s.consecutive_failures > 0 && String(s.consecutive_failures)],
                ['Why it stands still', s.why && <Inert key="y" text={s.why} />],
                [
                  'Missed',
                  s.missed_at?.length ? (
                    <ol key="m" className="num">
                      {s.missed_at.map((t) => (
                        <li key={t}>{formatTime(t)}</li>
                      ))}
                    </ol>
                  ) : undefined,
                ],
                [
                  'Runs',
                  <Link key="r" to="/runs" search={{ agent: s.agent_id }}>
                    runs of this agent
                  </Link>,
                ],
              ]}
            />
            <section>
              <h3>
                Next, in your zone{' '}
                <span className="faint small">{Intl.DateTimeFormat().resolvedOptions().timeZone}</span>
              </h3>
              {s.upcoming?.length ? (
                <ol className="small num soft">
                  {s.upcoming.slice(0, 10).map((t) => (
                    <li key={t}>{formatFiring(t)}</li>
                  ))}
                </ol>
              ) : (
                <p className="faint small">Nothing is due.</p>
              )}
            </section>
          </div>
          {isDeleting && (
            <Dialog title={`Delete ${s.name}?`} onClose={() => setDeleting(false)}>
              <p>Its runs stay. It will not start another.</p>
              <div className="actions">
                <Button onClick={() => setDeleting(false)}>Cancel</Button>
                <Button
                  kind="bad"
                  onClick={() =>
                    void act(ok(api.DELETE('/api/schedules/{id}', { params: { path: { id } } })), 'Deleted')
                  }
                >
                  Delete
                </Button>
              </div>
            </Dialog>
          )}
        </Panel>
      )}
    </Ready>
  );
}

function NewSchedule({ onClose }: { onClose: () => void }) {
  const agents = useAgents();
  const queries = useQueryClient();
  const [form, setForm] = useState({
    agent: '',
    name: '',
    goal: '',
    cadence_type: 'cron' as 'cron' | 'once' | 'interval',
    cadence_value: '0 7 * * 1-5',
  });
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }));
  const save = async () => {
    try {
      await ok(
        api.POST('/api/schedules', {
          body: {
            ...form,
            agent: form.agent || agents.data?.agents?.[0]?.name,
            timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
          },
        }),
      );
      void queries.invalidateQueries({ queryKey: ['schedules'] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <Field label="Agent">
          {(id) => (
            <select id={id} className="input" value={form.agent} onChange={(e) => set({ agent: e.target.value })}>
              {agents.data?.agents?.map((a) => (
                <option key={a.id} value={a.name}>
                  {a.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Name">
          {(id) => (
            <input id={id} className="input" value={form.name} onChange={(e) => set({ name: e.target.value })} />
          )}
        </Field>
        <Field label="Goal" help="What the agent should do each time.">
          {(id) => (
            <textarea id={id} className="input" value={form.goal} onChange={(e) => set({ goal: e.target.value })} />
          )}
        </Field>
        <Field label="Kind">
          {(id) => (
            <select
              id={id}
              className="input"
              value={form.cadence_type}
              onChange={(e) => set({ cadence_type: e.target.value as 'cron' })}
            >
              <option value="cron">cron expression</option>
              <option value="interval">every so often</option>
              <option value="once">once</option>
            </select>
          )}
        </Field>
        <Field label="When" help="cron: 0 7 * * 1-5. Every so often: 2h. Once: 2027-01-31T09:00:00Z.">
          {(id) => (
            <input
              id={id}
              className="input mono"
              value={form.cadence_value}
              onChange={(e) => set({ cadence_value: e.target.value })}
            />
          )}
        </Field>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit">
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
