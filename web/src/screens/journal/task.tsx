import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAct, useRefresh } from '../../app/act';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { Dialog } from '../../ui/dialog';
import { Button, Facts, Field, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { useUndone } from '../operation';
import { readChanges, Spent, STATUSES } from './shared';

/** TaskDialog shows a task with its checklists, times and changes. */
export function TaskDialog({ id, category, onClose }: { id: string; category: (id: string) => string; onClose: () => void }) {
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
                        “<Inert text={reasonText(c.reason)} />”
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

// reasonText leaves the id of the operation out of the reason of an undo.
function reasonText(reason: string): string {
  return reason.replace(/^undo of op_\S+, requested by /, 'undo, requested by ');
}

function Undo({ id }: { id: string }) {
  const { can } = useAccess();
  const notify = useNotify();
  const sayUndone = useUndone();
  const refresh = useRefresh('task', 'tasks', 'changes', 'undo-plan');
  const query = useLive(
    ['undo-plan', id],
    (signal) => ok(api.GET('/api/operations/{id}/undo', { params: { path: { id } }, signal })),
    { topics: ['operations'] },
    { enabled: can('member') },
  );
  const plan = query.data;
  if (plan?.undone_by)
    return (
      <Link to="/operations/$id" params={{ id: plan.undone_by }}>
        undone
      </Link>
    );
  if (!plan?.can_undo) return null;
  const undo = async () => {
    try {
      sayUndone(await ok(api.POST('/api/operations/{id}/undo', { params: { path: { id } } })));
    } catch (e) {
      notify.failed(e);
    }
    refresh();
  };
  return <Button onClick={() => void undo()}>Undo</Button>;
}

/** NewTask adds a task, and a category if needed. */
export function NewTask({
  categories,
  first,
  onClose,
}: {
  categories: Schemas['Category'][];
  first: string;
  onClose: () => void;
}) {
  const notify = useNotify();
  const refresh = useRefresh('tasks', 'categories');
  const [form, setForm] = useState({ title: '', category: first || categories[0]?.id || '', newCategory: '' });
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    try {
      let id = form.category;
      if (id === '') id = (await ok(api.POST('/api/journal/categories', { body: { name: form.newCategory } }))).id;
      await ok(api.POST('/api/journal/tasks', { body: { category_id: id, title: form.title } }));
      notify.done('Added');
      refresh();
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
        <Field label="Title" name="title">
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
          <Field label="Name of the category" name="name">
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
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={form.title.trim() === '' || (form.category === '' && form.newCategory.trim() === '')}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
