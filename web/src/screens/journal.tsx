import { useMemo, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { useAct } from '../app/act';
import { useAgentName } from '../app/data';
import { useAccess } from '../app/session';
import { formatDuration } from '../lib/format';
import { Dialog } from '../ui/dialog';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty, Failure } from '../ui/states';
import { Ago, Inert } from '../ui/text';

const COLUMNS: [string, string[]][] = [
  ['Open', ['open', 'groomed']],
  ['In progress', ['in_progress']],
  ['Blocked', ['blocked', 'on_hold']],
  ['Closed', ['done', 'rejected']],
];
const STATUSES = ['open', 'groomed', 'in_progress', 'blocked', 'on_hold', 'done', 'rejected'] as const;

const readChanges = (signal: AbortSignal, entity?: string) =>
  ok(api.GET('/api/changes', { params: { query: { entity, limit: 200 } }, signal }));

// useAgentMarks returns the newest change of each entity, if an agent made it.
function useAgentMarks(): Map<string, Schemas['ChangeRecord']> {
  const changes = useLive(['changes'], (signal) => readChanges(signal), { topics: ['journal', 'operations'] });
  return useMemo(() => {
    const newest = new Map<string, Schemas['ChangeRecord']>();
    for (const c of changes.data?.changes ?? [])
      for (const e of c.entities ?? []) if (!newest.has(e.id)) newest.set(e.id, c);
    for (const [id, c] of newest) if (!c.agent_id) newest.delete(id);
    return newest;
  }, [changes.data]);
}

/** JournalScreen shows tasks as a board by state, the plan of the day and the person's time entries. */
export function JournalScreen() {
  const { can } = useAccess();
  const [category, setCategory] = useState('');
  const [open, setOpen] = useState('');
  const [isAdding, setAdding] = useState(false);
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  const tasks = useLive(
    ['tasks', category],
    (signal) =>
      ok(api.GET('/api/journal/tasks', { params: { query: { category: category || undefined, limit: 200 } }, signal })),
    { topics: ['journal'] },
  );
  const marks = useAgentMarks();
  const nameOf = (id: string) => categories.data?.categories?.find((c) => c.id === id)?.name ?? '';
  return (
    <Page
      title="Journal"
      actions={
        <>
          <select
            className="input"
            aria-label="Category"
            value={category}
            onChange={(e) => setCategory(e.target.value)}
          >
            <option value="">All categories</option>
            {categories.data?.categories?.map((c) => (
              <option key={c.id} value={c.id}>
                {c.name}
              </option>
            ))}
          </select>
          {can('member') && (
            <Button kind="main" onClick={() => setAdding(true)}>
              New task
            </Button>
          )}
        </>
      }
    >
      <Ready query={tasks}>
        {(list) =>
          (list.tasks ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No tasks">
                <p>Agents with journal tools keep tasks, checklists and time here. You can add tasks too.</p>
              </Empty>
            </div>
          ) : (
            <div className="board">
              {COLUMNS.map(([label, states]) => {
                const rows = (list.tasks ?? []).filter((t) => states.includes(t.status));
                return (
                  <section key={label} className="board-column" aria-label={label}>
                    <h2 className="small soft">
                      {label} <span className="faint num">{rows.length}</span>
                    </h2>
                    <ul>
                      {rows.map((t) => (
                        <TaskCard
                          key={t.id}
                          task={t}
                          category={category ? '' : nameOf(t.category_id)}
                          mark={marks.get(t.id)}
                          onOpen={() => setOpen(t.id)}
                        />
                      ))}
                    </ul>
                  </section>
                );
              })}
            </div>
          )
        }
      </Ready>
      <div className="cols">
        <DayPlan tasks={tasks.data?.tasks ?? []} nameOf={nameOf} />
        <TimeEntries tasks={tasks.data?.tasks ?? []} />
      </div>
      {open && <TaskDialog id={open} category={nameOf} onClose={() => setOpen('')} />}
      {isAdding && (
        <NewTask categories={categories.data?.categories ?? []} first={category} onClose={() => setAdding(false)} />
      )}
    </Page>
  );
}

function TaskCard({
  task,
  category,
  mark,
  onOpen,
}: {
  task: Schemas['Task'];
  category: string;
  mark?: Schemas['ChangeRecord'];
  onOpen: () => void;
}) {
  const nameOf = useAgentName();
  return (
    <li>
      <button className="task-card" onClick={onOpen}>
        <span className="strong break">
          <Inert text={task.title} />
        </span>
        <span className="small soft row wrap">
          {category && <Inert text={category} />}
          {task.due_date && <span>due {task.due_date}</span>}
          {(task.priority === 'urgent' || task.priority === 'high') && <Tag tone="wait">{task.priority}</Tag>}
          {mark && (
            <Tag tone="run">
              changed by <Inert text={nameOf(mark.agent_id ?? '')} />
            </Tag>
          )}
          <span className="faint">
            <Ago time={task.updated_at} />
          </span>
        </span>
      </button>
    </li>
  );
}

function TaskDialog({ id, category, onClose }: { id: string; category: (id: string) => string; onClose: () => void }) {
  const { can } = useAccess();
  const act = useAct('task', 'tasks', 'time', 'changes');
  const params = { path: { id } };
  const query = useLive(['task', id], (signal) => ok(api.GET('/api/journal/tasks/{id}', { params, signal })), {
    topics: ['journal'],
  });
  const time = useLive(
    ['time', id],
    (signal) => ok(api.GET('/api/journal/time-entries', { params: { query: { task: id, limit: 50 } }, signal })),
    { topics: ['journal'] },
  );
  return (
    <Dialog title={query.data?.title ?? 'Task'} wide onClose={onClose}>
      <Ready query={query}>
        {(t) => (
          <>
            <Facts
              facts={[
                [
                  'State',
                  can('member') ? (
                    <select
                      key="s"
                      className="input"
                      aria-label="State"
                      value={t.status}
                      onChange={(e) =>
                        void act(
                          ok(
                            api.PATCH('/api/journal/tasks/{id}', {
                              params,
                              body: { status: e.target.value as 'open' },
                            }),
                          ),
                          'Changed',
                        )
                      }
                    >
                      {STATUSES.map((s) => (
                        <option key={s} value={s}>
                          {s.replace('_', ' ')}
                        </option>
                      ))}
                    </select>
                  ) : (
                    <StateTag key="s" state={t.status} />
                  ),
                ],
                ['Category', <Inert key="c" text={category(t.category_id)} />],
                ['Priority', t.priority],
                ['Due', t.due_date],
                ['Estimate', t.estimate_minutes ? `${t.estimate_minutes} min` : undefined],
                ['Created by', t.created_by && <Inert key="b" text={t.created_by} />],
              ]}
            />
            {t.description && (
              <p className="break">
                <Inert text={t.description} />
              </p>
            )}
            {(t.checklists ?? []).map((c) => (
              <section key={c.id} className="stack tight" aria-label={`Checklist ${c.title}`}>
                <h3>
                  <Inert text={c.title} />{' '}
                  <span className="faint small num">
                    {(c.items ?? []).filter((i) => i.checked).length} of {(c.items ?? []).length}
                  </span>
                </h3>
                <ul>
                  {(c.items ?? []).map((i) => (
                    <li key={i.id}>
                      <label className="row">
                        <input
                          type="checkbox"
                          checked={i.checked}
                          disabled={!can('member')}
                          onChange={(e) =>
                            void act(
                              ok(
                                api.PATCH('/api/journal/checklists/{id}/items', {
                                  params: { path: { id: c.id } },
                                  body: { items: [{ id: i.id, checked: e.target.checked }] },
                                }),
                              ),
                              e.target.checked ? 'Checked' : 'Unchecked',
                            )
                          }
                        />
                        <span className={i.checked ? 'soft' : ''}>
                          <Inert text={i.title} />
                        </span>
                      </label>
                    </li>
                  ))}
                </ul>
              </section>
            ))}
            <section className="stack tight">
              <h3>Your time</h3>
              <Ready query={time}>
                {(list) =>
                  (list.time_entries ?? []).length === 0 ? (
                    <p className="small faint">None yet.</p>
                  ) : (
                    <ul className="small num">
                      {(list.time_entries ?? []).map((e) => (
                        <li key={e.id}>
                          <Spent entry={e} />
                        </li>
                      ))}
                    </ul>
                  )
                }
              </Ready>
            </section>
            <History task={t} />
          </>
        )}
      </Ready>
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

// History shows who changed a task and its checklists, why, and offers to undo what an agent did.
function History({ task }: { task: Schemas['TaskView'] }) {
  const nameOf = useAgentName();
  const ids = [task.id, ...(task.checklists ?? []).flatMap((c) => [c.id, ...(c.items ?? []).map((i) => i.id)])].slice(
    0,
    40,
  );
  const query = useLive(
    ['changes', ids],
    async (signal) => {
      const lists = await Promise.all(ids.map((id) => readChanges(signal, id)));
      const byId = new Map(lists.flatMap((l) => l.changes ?? []).map((c) => [c.id, c]));
      return [...byId.values()].sort((a, b) => b.created_at.localeCompare(a.created_at)).slice(0, 50);
    },
    { topics: ['journal', 'operations'] },
  );
  return (
    <section className="stack tight" aria-label="History">
      <h3>Who changed what</h3>
      <Ready query={query}>
        {(list) =>
          list.length === 0 ? (
            <p className="small faint">No details are kept.</p>
          ) : (
            <ol className="stack tight">
              {list.map((c) => (
                <li key={c.id} className="change small">
                  <span className="grow">
                    <span className="row wrap">
                      {c.agent_id ? (
                        <Tag tone="run">
                          agent <Inert text={nameOf(c.agent_id)} />
                        </Tag>
                      ) : (
                        <Tag>
                          <Inert text={c.user_id || 'a person'} />
                        </Tag>
                      )}
                      {c.tool && (
                        <Link className="mono" to="/operations/$id" params={{ id: c.id }}>
                          {c.tool}
                        </Link>
                      )}
                      <span className="faint">
                        <Ago time={c.created_at} />
                      </span>
                    </span>
                    {c.reason && (
                      <span className="break">
                        “<Inert text={c.reason} />”
                      </span>
                    )}
                    {(c.entities ?? []).map((e) => (
                      <span key={e.id} className="soft break change-line">
                        {e.action} {(e.kind ?? '').replaceAll('_', ' ')} <Inert text={e.title ?? ''} />
                        {e.action === 'changed' && e.fields && (
                          <>
                            :{' '}
                            {Object.entries(e.fields)
                              .map(([k, v]) => `${k} ${v?.[0] || 'none'} → ${v?.[1] || 'none'}`)
                              .join(', ')}
                          </>
                        )}
                      </span>
                    ))}
                  </span>
                  {c.agent_id && c.tool && <Undo id={c.id} />}
                </li>
              ))}
            </ol>
          )
        }
      </Ready>
    </section>
  );
}

function Undo({ id }: { id: string }) {
  const { can } = useAccess();
  const act = useAct('task', 'tasks', 'changes', 'operation-undo');
  const query = useLive(
    ['operation-undo', id],
    (signal) => ok(api.GET('/api/operations/{id}', { params: { path: { id } }, signal })),
    { topics: ['operations'], id },
  );
  if (!query.data?.undo || query.data.state !== 'committed' || !can('member')) return null;
  return (
    <Button
      onClick={() =>
        void act(
          ok(api.POST('/api/operations/{id}/undo', { params: { path: { id } } })),
          'Undone, or waiting for approval in the inbox',
        )
      }
    >
      Undo
    </Button>
  );
}

function today(): string {
  const now = new Date();
  return `${now.getFullYear()}-${String(now.getMonth() + 1).padStart(2, '0')}-${String(now.getDate()).padStart(2, '0')}`;
}

const clock = (time: string) => new Date(time).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

function DayPlan({ tasks, nameOf }: { tasks: Schemas['Task'][]; nameOf: (category: string) => string }) {
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

function Spent({ entry, title }: { entry: Schemas['TimeEntry']; title?: string }) {
  const from = Date.parse(entry.started_at);
  return (
    <span className="row">
      <span className="soft">
        {new Date(from).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })} {clock(entry.started_at)}
      </span>
      <span className="grow break">
        {title && <Inert text={title} />}
        {entry.note && (
          <span className="soft">
            {' '}
            <Inert text={entry.note} />
          </span>
        )}
      </span>
      {entry.ended_at ? (
        <span>{formatDuration(Date.parse(entry.ended_at) - from)}</span>
      ) : (
        <Tag tone="run">running</Tag>
      )}
    </span>
  );
}

function TimeEntries({ tasks }: { tasks: Schemas['Task'][] }) {
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

function NewTask({
  categories,
  first,
  onClose,
}: {
  categories: Schemas['Category'][];
  first: string;
  onClose: () => void;
}) {
  const act = useAct('tasks', 'categories');
  const [form, setForm] = useState({ title: '', category: first || categories[0]?.id || '', newCategory: '' });
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    try {
      let id = form.category;
      if (id === '') id = (await ok(api.POST('/api/journal/categories', { body: { name: form.newCategory } }))).id;
      await ok(api.POST('/api/journal/tasks', { body: { category_id: id, title: form.title } }));
      await act(Promise.resolve(), 'Added');
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New task" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <Field label="Title">
          {(id) => (
            <input
              id={id}
              className="input"
              autoFocus
              value={form.title}
              onChange={(e) => setForm({ ...form, title: e.target.value })}
            />
          )}
        </Field>
        <Field label="Category">
          {(id) => (
            <select
              id={id}
              className="input"
              value={form.category}
              onChange={(e) => setForm({ ...form, category: e.target.value })}
            >
              {categories.map((c) => (
                <option key={c.id} value={c.id}>
                  {c.name}
                </option>
              ))}
              <option value="">a new one</option>
            </select>
          )}
        </Field>
        {form.category === '' && (
          <Field label="Name of the category">
            {(id) => (
              <input
                id={id}
                className="input"
                value={form.newCategory}
                onChange={(e) => setForm({ ...form, newCategory: e.target.value })}
              />
            )}
          </Field>
        )}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={form.title.trim() === ''}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
