import { useMemo, useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { Button, Page, Ready, Tag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { DayPlan, TimeEntries } from './day';
import { readChanges } from './shared';
import { NewTask, TaskDialog } from './task';

const COLUMNS: [string, string[]][] = [
  ['Open', ['open', 'groomed']],
  ['In progress', ['in_progress']],
  ['Blocked', ['blocked', 'on_hold']],
  ['Closed', ['done', 'rejected']],
];
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
  const add = can('member') && (
    <Button kind="main" onClick={() => setAdding(true)}>
      New task
    </Button>
  );
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
          {add}
        </>
      }
    >
      <Ready query={tasks}>
        {(list) =>
          (list.tasks ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No tasks">
                <p>Agents with journal tools keep tasks, checklists and time here. You can add tasks too.</p>
                {add}
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
