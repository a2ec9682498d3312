import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { Panel, Ready, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Inert } from '../../ui/text';
import { clock, Spent } from './shared';

function today(): string {
  const now = new Date();
  return `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, '0')}-${String(now.getDate()).padStart(2, '0')}`;
}

/** DayPlan shows what is planned for a day. */
export function DayPlan({ tasks, nameOf }: { tasks: Schemas['Task'][]; nameOf: (category: string) => string }) {
  const [day, setDay] = useState(today);
  const query = useLive(
    ['plan', day],
    (signal) => ok(api.GET('/api/journal/plans/{day}', { params: { path: { day } }, signal })),
    { topics: ['journal'] },
  );
  const title = (id: string) => tasks.find((t) => t.id === id)?.title ?? id;
  return (
    <Panel
      title="Day plan"
      aside={
        <input
          type="date"
          className="input day"
          aria-label="Day"
          value={day}
          onChange={(e) => e.target.value && setDay(e.target.value)}
        />
      }
    >
      <Ready query={query}>
        {(plan) =>
          (plan.blocks ?? []).length + (plan.pinned_task_ids ?? []).length === 0 ? (
            <Empty title="Nothing is planned for this day">
              <p>Agents that have the tools of the journal plan days. Choose another day, or ask one.</p>
            </Empty>
          ) : (
            <div className="body stack">
              {(plan.pinned_task_ids ?? []).length > 0 && (
                <p className="small soft">
                  Pinned:{' '}
                  {(plan.pinned_task_ids ?? []).map(title).map((t, i) => (
                    <span key={i}>
                      {i > 0 && ', '}
                      <Inert text={t} />
                    </span>
                  ))}
                </p>
              )}
              <ol className="stack tight">
                {(plan.blocks ?? []).map((b) => (
                  <li key={b.id} className="plan-block">
                    <span className="num soft">
                      {clock(b.starts_at)} – {clock(b.ends_at)}
                    </span>
                    <span className="break">
                      <span className="strong">
                        <Inert text={b.task_id ? title(b.task_id) : nameOf(b.category_id)} />
                      </span>
                      {b.note && (
                        <span className="soft">
                          {' '}
                          <Inert text={b.note} />
                        </span>
                      )}
                    </span>
                  </li>
                ))}
              </ol>
            </div>
          )
        }
      </Ready>
    </Panel>
  );
}

/** TimeEntries shows the times that the person recorded. */
export function TimeEntries({ tasks }: { tasks: Schemas['Task'][] }) {
  const query = useLive(
    ['time'],
    (signal) => ok(api.GET('/api/journal/time-entries', { params: { query: { limit: 20 } }, signal })),
    { topics: ['journal'] },
  );
  return (
    <Panel title="Your time">
      <Ready query={query}>
        {(list) =>
          (list.time_entries ?? []).length === 0 ? (
            <Empty title="No time entries">
              <p>Agents record time with the tools of the journal, and programs with the REST API.</p>
            </Empty>
          ) : (
            <ul className="body stack tight small num" aria-label="Time entries">
              {(list.time_entries ?? []).map((e) => (
                <li key={e.id}>
                  <Spent entry={e} title={tasks.find((t) => t.id === e.task_id)?.title ?? e.task_id} />
                </li>
              ))}
            </ul>
          )
        }
      </Ready>
    </Panel>
  );
}
