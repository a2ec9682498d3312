import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';

const COLUMNS: [string, string[]][] = [
  ['Open', ['open', 'groomed']], ['In progress', ['in_progress']], ['Blocked', ['blocked', 'on_hold']], ['Closed', ['done', 'rejected']],
];

/** JournalScreen shows the tasks of a category as lists by state. */
export function JournalScreen() {
  const [category, setCategory] = useState('');
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), { topics: ['journal'] });
  const tasks = useLive(['tasks', category], (signal) => ok(api.GET('/api/journal/tasks', { params: { query: { category: category || undefined, limit: 200 } }, signal })), { topics: ['journal'] });
  const nameOf = (id: string) => categories.data?.categories?.find((c) => c.id === id)?.name ?? '';
  return (
    <Page title="Journal" actions={
      <select className="input" aria-label="Category" value={category} onChange={(e) => setCategory(e.target.value)}>
        <option value="">All categories</option>
        {categories.data?.categories?.map((c) => <option key={c.id} value={c.id}>{c.name}</option>)}
      </select>
    }>
      <Ready query={tasks}>
        {(list) => (list.tasks ?? []).length === 0 ? (
          <div className="panel"><Empty title="No tasks"><p>Agents with journal tools keep tasks, checklists and time here.</p></Empty></div>
        ) : COLUMNS.map(([label, states]) => {
          const rows = (list.tasks ?? []).filter((t) => states.includes(t.status));
          return rows.length === 0 ? null : (
            <Panel key={label} title={<>{label} <span className="soft num">{rows.length}</span></>}>
              <ul>{rows.map((t) => <TaskRow key={t.id} task={t} category={nameOf(t.category_id)} />)}</ul>
            </Panel>
          );
        })}
      </Ready>
    </Page>
  );
}

function TaskRow({ task, category }: { task: Schemas['Task']; category: string }) {
  return (
    <li className="list-row" style={{ gridTemplateColumns: 'minmax(0,1fr) auto', padding: '0.5rem 0.9rem' }}>
      <span className="grow">
        <span className="strong"><Inert text={task.title} /></span>
        <span className="small soft" style={{ display: 'block' }}><Inert text={category} />{task.due_date && <> · due {task.due_date}</>}
          {task.created_by && <> · by <Inert text={task.created_by} /></>} · <Ago time={task.updated_at} /></span>
      </span>
      <span className="row">{(task.priority === 'urgent' || task.priority === 'high') && <Tag tone="wait">{task.priority}</Tag>}<StateTag state={task.status} /></span>
    </li>
  );
}
