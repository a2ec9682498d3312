import { useState } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { api, ok } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { formatFiring, formatTime } from '../../lib/format';
import { ConfirmButton } from '../../ui/confirm';
import { Button, Facts, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { ScheduleForm } from './form';

/** SchedulesScreen lists schedules with their next runs, and pauses, resumes or deletes them. */
export function SchedulesScreen() {
  const { can } = useAccess();
  const [isAdding, setAdding] = useState(false);
  const query = useLive(
    ['schedules'],
    (signal) => ok(api.GET('/api/schedules', { params: { query: { limit: 200 } }, signal })),
    { topics: ['schedules', 'runs'] },
  );
  const add = can('member') && (
    <Button kind="main" onClick={() => setAdding(true)}>
      New schedule
    </Button>
  );
  return (
    <Page title="Schedules" actions={add}>
      <Ready query={query}>
        {(list) =>
          (list.schedules ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No schedules">
                <p>A schedule wakes an agent at set times, with a goal.</p>
                {add}
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
      {isAdding && <ScheduleForm onClose={() => setAdding(false)} />}
    </Page>
  );
}

function ScheduleCard({ id }: { id: string }) {
  const { can } = useAccess();
  const [isEditing, setEditing] = useState(false);
  const nameOf = useAgentName();
  const notify = useNotify();
  const refresh = useRefresh('schedule', 'schedules');
  const navigate = useNavigate();
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
    refresh();
  };
  const setStatus = (status: 'active' | 'paused') =>
    act(
      ok(api.PATCH('/api/schedules/{id}', { params: { path: { id } }, body: { status } })),
      status === 'active' ? 'The schedule runs again' : 'The schedule is paused',
    );
  const runNow = async () => {
    try {
      const wake = await ok(api.POST('/api/schedules/{id}/run', { params: { path: { id } } }));
      notify.done('The schedule fires now', {
        label: 'See the run',
        run: () =>
          void (wake.run_id
            ? navigate({ to: '/runs/$id', params: { id: wake.run_id } })
            : navigate({ to: '/runs', search: { agent: wake.agent_id } })),
      });
    } catch (e) {
      notify.failed(e);
    }
    refresh();
  };
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
                <Button onClick={() => setEditing(true)}>Edit</Button>
                <ConfirmButton
                  label="Delete"
                  title={`Delete ${s.name}?`}
                  done="Deleted"
                  run={() => ok(api.DELETE('/api/schedules/{id}', { params: { path: { id } } })).finally(refresh)}
                >
                  <p>Its runs stay. It will not start another.</p>
                </ConfirmButton>
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
                    {s.cadence_type === 'interval' && 'every '}
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
                <p className="faint small">
                  {s.status === 'paused' ? 'Paused. It fires again after Resume.' : 'It does not fire again.'}
                </p>
              )}
            </section>
          </div>
          {isEditing && <ScheduleForm schedule={s} onClose={() => setEditing(false)} />}
        </Panel>
      )}
    </Ready>
  );
}
