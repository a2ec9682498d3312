import { useState } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../../api/client';
import { useAgents } from '../../app/data';
import { useAccess } from '../../app/session';
import { Dialog } from '../../ui/dialog';
import { Button, Field, Page, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { Categories } from './categories';
import { ModelFields, Modes, type Config } from './config';

/** AgentsScreen lists agents, and creates them. */
export function AgentsScreen() {
  const { can } = useAccess();
  const agents = useAgents();
  const [isAdding, setAdding] = useState(false);
  const add = can('member') && (
    <Button kind="main" onClick={() => setAdding(true)}>
      New agent
    </Button>
  );
  return (
    <Page title="Agents" actions={add}>
      <Ready query={agents}>
        {(list) =>
          (list.agents ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No agents yet">
                <p>An agent acts through tools, within its policy and budget.</p>
                {add}
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Agents">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">Kind</th>
                    <th scope="col">Mode</th>
                    <th scope="col">Changed</th>
                  </tr>
                </thead>
                <tbody>
                  {(list.agents ?? []).map((a) => (
                    <tr key={a.id}>
                      <td>
                        <Link className="strong" to="/agents/$id" params={{ id: a.id }}>
                          <Inert text={a.name} />
                        </Link>
                      </td>
                      <td>{a.stopped_at ? <Tag tone="wait">paused</Tag> : <StateTag state={a.lifecycle} />}</td>
                      <td>{a.kind}</td>
                      <td>{a.mode}</td>
                      <td>
                        <Ago time={a.updated_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {isAdding && <NewAgent onClose={() => setAdding(false)} />}
    </Page>
  );
}

function NewAgent({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const notify = useNotify();
  const profiles = useLive(['profiles'], (signal) => ok(api.GET('/api/profiles', { signal })), {
    topics: ['profiles'],
  });
  const [form, setForm] = useState({
    name: '',
    kind: 'assistant',
    mode: 'hybrid',
    dollars: '',
  });
  const [config, setConfig] = useState<Config>({});
  const [scope, setScope] = useState<string[]>([]);
  const { can } = useAccess();
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<typeof form>) => setForm({ ...form, ...change });
  const save = async () => {
    setError(null);
    try {
      const agent = await ok(
        api.POST('/api/agents', {
          body: {
            name: form.name,
            kind: form.kind,
            lifecycle: 'active',
            mode: form.mode as 'hybrid',
            categories: scope,
            config,
            policy: { tiers: { side_effecting: 'ask', privileged: 'ask' } },
          },
        }),
      );
      void queries.invalidateQueries({ queryKey: ['agents'] });
      if (Number(form.dollars) > 0) {
        await ok(
          api.PUT('/api/budgets/{subject}', {
            params: { path: { subject: `agent:${agent.id}` } },
            body: { on_exceed: 'park', limit: { micros: Math.round(Number(form.dollars) * 1e6) } },
          }),
        ).catch(notify.failed);
      }
      onClose();
      void navigate({ to: '/agents/$id', params: { id: agent.id } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New agent" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Field label="Name" name="name" help="Letters, digits and dashes.">
          {(id) => (
            <input
              id={id}
              className="input"
              autoFocus
              required
              value={form.name}
              onChange={(e) => set({ name: e.target.value })}
            />
          )}
        </Field>
        <Field label="Kind" help="Decides what the agent is capable of.">
          {(id) => (
            <select id={id} className="input" value={form.kind} onChange={(e) => set({ kind: e.target.value })}>
              {(profiles.data?.profiles ?? [{ kind: 'assistant', capabilities: [] }]).map((p) => (
                <option key={p.kind} value={p.kind}>
                  {p.kind}
                  {p.capabilities?.length ? `: ${p.capabilities.join(', ')}` : ''}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Modes value={form.mode} onChange={(mode) => set({ mode })} />
        <ModelFields config={config} onChange={setConfig} />
        <Categories list={categories.data?.categories ?? []} chosen={scope} onChange={setScope} />
        {can('owner') && (
          <Field label="Budget in dollars (optional)" help="When it is spent, calls wait for a person.">
            {(id) => (
              <input
                id={id}
                className="input"
                type="number"
                min="0"
                step="any"
                value={form.dollars}
                onChange={(e) => set({ dollars: e.target.value })}
              />
            )}
          </Field>
        )}
        <p className="small soft">Every call that changes something asks you first. You can change that per tool.</p>
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={form.name.trim() === ''}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
