import { useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../api/client';
import { useAct } from '../app/act';
import { useAgentName, useStatus, useTools } from '../app/data';
import { useAccess } from '../app/session';
import { formatAmount, formatTime } from '../lib/format';
import { Dialog } from '../ui/dialog';
import { Button, Facts, Field, Page, Panel, Ready, Tag, useLive } from '../ui/kit';
import { Empty, Failure } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';
import { BudgetDialog, budgetParts, UsedBar } from './budget';

const SECTIONS = [
  ['server', 'Server'],
  ['budgets', 'Budgets'],
  ['profiles', 'Profiles'],
  ['members', 'Members'],
  ['tokens', 'Tokens'],
  ['secrets', 'Secrets'],
] as const;

/** SettingsScreen shows the settings of the server and the workspace, by section. */
export function SettingsScreen() {
  const { section = 'server' } = useParams({ strict: false }) as { section?: string };
  const { can } = useAccess();
  const shown = SECTIONS.filter(([id]) => !['members', 'tokens', 'secrets'].includes(id) || can('owner'));
  return (
    <Page title="Settings">
      <nav className="tabs" aria-label="Sections">
        {shown.map(([id, label]) => (
          <Link
            key={id}
            to="/settings/$section"
            params={{ section: id }}
            aria-current={id === section ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      {section === 'budgets' ? (
        <Budgets />
      ) : section === 'profiles' ? (
        <Profiles />
      ) : section === 'tokens' && can('owner') ? (
        <Tokens />
      ) : section === 'members' && can('owner') ? (
        <Members />
      ) : section === 'secrets' && can('owner') ? (
        <Secrets />
      ) : section === 'server' ? (
        <Server />
      ) : (
        <div className="panel">
          <Empty title="There is nothing here for you">
            <p>Choose a section above. Some of them need the role owner.</p>
          </Empty>
        </div>
      )}
    </Page>
  );
}

function Server() {
  const status = useStatus();
  const doctor = useLive(['doctor'], (signal) => ok(api.GET('/api/doctor', { signal })), {});
  return (
    <>
      <Panel title="Server">
        <div className="body">
          <Ready query={status}>
            {(s) => (
              <Facts
                facts={[
                  ['Version', s.version],
                  ['Database', s.engine],
                  ['Workspace', `${s.workspace.name} (${s.workspace.id})`],
                  ['Your role', s.role],
                  ['Started', <Ago key="s" time={s.started_at} />],
                  ['Node', <code key="n">{s.node}</code>],
                ]}
              />
            )}
          </Ready>
        </div>
      </Panel>
      <Panel title="Health" aside={<Button onClick={() => void doctor.refetch()}>Check again</Button>}>
        <Ready query={doctor}>
          {(d) => (
            <div className="scroll" tabIndex={0} role="group" aria-label="Checks">
              <table className="table">
                <tbody>
                  {(d.checks ?? []).map((c) => (
                    <tr key={c.name}>
                      <td>
                        <Tag tone={c.ok ? 'ok' : 'bad'}>{c.ok ? 'good' : 'bad'}</Tag>
                      </td>
                      <td className="strong">{c.name}</td>
                      <td className="soft break">
                        <Inert text={c.detail} />
                        {c.hint && (
                          <div>
                            <Inert text={c.hint} />
                          </div>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Ready>
      </Panel>
    </>
  );
}

function Budgets() {
  const { can } = useAccess();
  const nameOf = useAgentName();
  const [open, setOpen] = useState('');
  const title = (subject: string) => (subject.startsWith('agent:') ? `agent ${nameOf(subject.slice(6))}` : subject);
  const query = useLive(['budgets'], (signal) => ok(api.GET('/api/budgets', { signal })), {
    topics: ['budgets', 'operations', 'runs'],
  });
  return (
    <Panel
      title="Budgets"
      aside={
        can('owner') &&
        !query.data?.budgets?.some((b) => b.subject === 'workspace') && (
          <Button onClick={() => setOpen('workspace')}>Set one for the workspace</Button>
        )
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.budgets ?? []).length === 0 ? (
            <Empty title="No budgets">
              <p>Limit what the workspace spends here, and what an agent spends on its page.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Budgets">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">For</th>
                    <th scope="col">Used</th>
                    <th scope="col">Limit</th>
                    <th scope="col">When it is spent</th>
                    <th scope="col">
                      <span className="hide">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {(list.budgets ?? []).map((b) => {
                    const { parts, worst } = budgetParts(b);
                    return (
                      <tr key={b.subject}>
                        <td>
                          <Inert text={title(b.subject)} />
                        </td>
                        <td className="num">
                          {formatAmount(b.used) || 'nothing'} <UsedBar share={worst} />
                        </td>
                        <td className="num">
                          {parts.map((p) => `${p.show(p.limit)}${p.k === 'micros' ? '' : ` ${p.k}`}`).join(' · ')}
                        </td>
                        <td>
                          {b.on_exceed === 'park' ? 'calls wait' : 'runs end'}
                          {worst >= 1 && (
                            <>
                              {' '}
                              <Tag tone="bad">exhausted</Tag>
                            </>
                          )}
                        </td>
                        <td>
                          {can('owner') && (
                            <Button kind="quiet" onClick={() => setOpen(b.subject)}>
                              Change
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
      {open && (
        <BudgetDialog
          subject={open}
          name={title(open)}
          budget={query.data?.budgets?.find((b) => b.subject === open)}
          onClose={() => setOpen('')}
        />
      )}
    </Panel>
  );
}

function Profiles() {
  const { can } = useAccess();
  const [open, setOpen] = useState<Schemas['Profile'] | null>(null);
  const query = useLive(['profiles'], (signal) => ok(api.GET('/api/profiles', { signal })), { topics: ['profiles'] });
  return (
    <Panel
      title="What each kind of agent may do"
      aside={can('owner') && <Button onClick={() => setOpen({ kind: '', capabilities: [] })}>New kind</Button>}
    >
      <Ready query={query}>
        {(list) => (
          <div className="scroll" tabIndex={0} role="group" aria-label="Profiles">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Kind</th>
                  <th scope="col">Capabilities</th>
                  <th scope="col">
                    <span className="hide">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {(list.profiles ?? []).map((p) => (
                  <tr key={p.kind}>
                    <td>{p.kind}</td>
                    <td className="mono">{(p.capabilities ?? []).join(', ') || 'none'}</td>
                    <td>
                      {can('owner') && (
                        <Button kind="quiet" onClick={() => setOpen(p)}>
                          Change
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Ready>
      {open && <ProfileDialog profile={open} onClose={() => setOpen(null)} />}
    </Panel>
  );
}

function ProfileDialog({ profile, onClose }: { profile: Schemas['Profile']; onClose: () => void }) {
  const act = useAct('profiles');
  const tools = useTools();
  const [kind, setKind] = useState(profile.kind);
  const [chosen, setChosen] = useState<string[]>(profile.capabilities ?? []);
  const known = [...new Set([...(tools.data?.tools ?? []).map((t) => t.capability ?? ''), ...chosen])]
    .filter(Boolean)
    .sort();
  const save = async () => {
    if (
      await act(
        ok(api.PUT('/api/profiles/{kind}', { params: { path: { kind } }, body: { capabilities: chosen } })),
        'Saved',
      )
    )
      onClose();
  };
  return (
    <Dialog title={profile.kind ? `Kind ${profile.kind}` : 'New kind of agent'} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {!profile.kind && (
          <Field label="Kind">
            {(id) => <input id={id} className="input" value={kind} onChange={(e) => setKind(e.target.value)} />}
          </Field>
        )}
        <fieldset className="field plain">
          <legend className="label">Capabilities</legend>
          {known.map((c) => (
            <label key={c} className="row mono">
              <input
                type="checkbox"
                checked={chosen.includes(c)}
                onChange={(e) => setChosen(e.target.checked ? [...chosen, c] : chosen.filter((x) => x !== c))}
              />{' '}
              {c}
            </label>
          ))}
        </fieldset>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={kind === ''}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

const RANK = { viewer: 1, member: 2, owner: 3 } as const;

// Members lists people by their valid tokens and sessions. The strongest of them decides the role.
function Members() {
  const { session } = useAccess();
  const act = useAct('tokens');
  const [isAdding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState('');
  const query = useLive(['tokens'], (signal) => ok(api.GET('/api/tokens', { signal })), { topics: ['tokens'] });
  const now = Date.now();
  const valid = (query.data?.tokens ?? []).filter(
    (t) => !t.revoked_at && (!t.expires_at || Date.parse(t.expires_at) > now),
  );
  const users = [...new Set(valid.map((t) => t.user))].sort();
  const of = (user: string) => valid.filter((t) => t.user === user);
  const change = async (user: string, role: keyof typeof RANK) => {
    for (const t of of(user).filter((t) => t.kind === 'token' && t.role !== role))
      await act(
        ok(api.PATCH('/api/tokens/{id}', { params: { path: { id: t.id } }, body: { role } })),
        `${t.name} of ${user} is now ${role}`,
      );
  };
  const remove = async (user: string) => {
    setLeaving('');
    for (const t of of(user))
      await act(ok(api.DELETE('/api/tokens/{id}', { params: { path: { id: t.id } } })), `Revoked ${t.name}`);
  };
  return (
    <Panel title="Members" aside={<Button onClick={() => setAdding(true)}>Add a member</Button>}>
      <Ready query={query}>
        {() => (
          <div className="scroll" tabIndex={0} role="group" aria-label="Members">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">User</th>
                  <th scope="col">Role</th>
                  <th scope="col">Tokens</th>
                  <th scope="col">Sessions</th>
                  <th scope="col">
                    <span className="hide">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {users.map((user) => {
                  const own = of(user);
                  const role = own.reduce<keyof typeof RANK>(
                    (best, t) => (RANK[t.role as 'viewer'] > RANK[best] ? (t.role as 'viewer') : best),
                    'viewer',
                  );
                  return (
                    <tr key={user}>
                      <td>
                        <Inert text={user} />
                        {user === session.user && (
                          <>
                            {' '}
                            <Tag>you</Tag>
                          </>
                        )}
                      </td>
                      <td>
                        {user === session.user ? (
                          role
                        ) : (
                          <select
                            className="input"
                            aria-label={`Role of ${user}`}
                            value={role}
                            onChange={(e) => void change(user, e.target.value as typeof role)}
                          >
                            {Object.keys(RANK).map((r) => (
                              <option key={r}>{r}</option>
                            ))}
                          </select>
                        )}
                      </td>
                      <td className="num">{own.filter((t) => t.kind === 'token').length}</td>
                      <td className="num">{own.filter((t) => t.kind === 'session').length}</td>
                      <td>
                        {user !== session.user && (
                          <Button kind="quiet" onClick={() => setLeaving(user)}>
                            Remove…
                          </Button>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        )}
      </Ready>
      {isAdding && <NewToken needsUser onClose={() => setAdding(false)} />}
      {leaving && (
        <Dialog title={`Remove ${leaving}?`} onClose={() => setLeaving('')}>
          <p>
            This revokes {of(leaving).length} tokens and sessions. What the person did stays, and so do their notes.
          </p>
          <div className="actions">
            <Button onClick={() => setLeaving('')}>Cancel</Button>
            <Button kind="bad" onClick={() => void remove(leaving)}>
              Remove
            </Button>
          </div>
        </Dialog>
      )}
    </Panel>
  );
}

function Tokens() {
  const notify = useNotify();
  const queries = useQueryClient();
  const [isAdding, setAdding] = useState(false);
  const query = useLive(['tokens'], (signal) => ok(api.GET('/api/tokens', { signal })), { topics: ['tokens'] });
  const revoke = async (id: string) => {
    try {
      await ok(api.DELETE('/api/tokens/{id}', { params: { path: { id } } }));
      notify.done('Revoked');
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ queryKey: ['tokens'] });
  };
  return (
    <Panel title="Access tokens" aside={<Button onClick={() => setAdding(true)}>New token</Button>}>
      <Ready query={query}>
        {(list) => (
          <div className="scroll" tabIndex={0} role="group" aria-label="Tokens">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">User</th>
                  <th scope="col">Role</th>
                  <th scope="col">Expires</th>
                  <th scope="col">
                    <span className="hide">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {(list.tokens ?? []).map((t) => (
                  <tr key={t.id}>
                    <td>
                      <Inert text={t.name} />
                    </td>
                    <td>
                      <Inert text={t.user} />
                    </td>
                    <td>{t.role}</td>
                    <td>{t.expires_at ? formatTime(t.expires_at) : 'never'}</td>
                    <td>
                      {t.revoked_at ? (
                        <Tag tone="bad">revoked</Tag>
                      ) : (
                        <Button kind="quiet" onClick={() => void revoke(t.id)}>
                          Revoke
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Ready>
      {isAdding && <NewToken onClose={() => setAdding(false)} />}
    </Panel>
  );
}

function NewToken({ needsUser, onClose }: { needsUser?: boolean; onClose: () => void }) {
  const queries = useQueryClient();
  const [form, setForm] = useState({ name: '', user: '', role: 'member' as 'viewer' | 'member' | 'owner' });
  const [made, setMade] = useState('');
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    try {
      const token = await ok(
        api.POST('/api/tokens', { body: { name: form.name, role: form.role, user: form.user || undefined } }),
      );
      setMade(token.token);
      void queries.invalidateQueries({ queryKey: ['tokens'] });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={needsUser ? 'Add a member' : 'New access token'} onClose={onClose}>
      {made ? (
        <>
          <p>Copy the token now. It is not shown again.</p>
          <pre className="code" tabIndex={0}>
            {made}
          </pre>
          <div className="actions">
            <Button onClick={() => void navigator.clipboard.writeText(made)}>Copy</Button>
            <Button kind="main" onClick={onClose}>
              Done
            </Button>
          </div>
        </>
      ) : (
        <form
          className="stack"
          onSubmit={(e) => {
            e.preventDefault();
            void save();
          }}
        >
          {error !== null && <Failure error={error} />}
          <Field label="Name">
            {(id) => (
              <input
                id={id}
                className="input"
                autoFocus
                value={form.name}
                onChange={(e) => setForm({ ...form, name: e.target.value })}
              />
            )}
          </Field>
          <Field label="User" help={needsUser ? 'The person gets the token, and signs in with it.' : 'Empty: you.'}>
            {(id) => (
              <input
                id={id}
                className="input"
                value={form.user}
                onChange={(e) => setForm({ ...form, user: e.target.value })}
              />
            )}
          </Field>
          <Field label="Role">
            {(id) => (
              <select
                id={id}
                className="input"
                value={form.role}
                onChange={(e) => setForm({ ...form, role: e.target.value as 'member' })}
              >
                <option value="viewer">viewer: sees</option>
                <option value="member">member: decides and acts</option>
                <option value="owner">owner: everything</option>
              </select>
            )}
          </Field>
          <div className="actions">
            <Button onClick={onClose}>Cancel</Button>
            <Button
              kind="main"
              type="submit"
              disabled={form.name.trim() === '' || (needsUser && form.user.trim() === '')}
            >
              Create
            </Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Secrets() {
  const notify = useNotify();
  const queries = useQueryClient();
  const [form, setForm] = useState({ name: '', value: '' });
  const query = useLive(['secrets'], (signal) => ok(api.GET('/api/secrets', { signal })), { topics: ['secrets'] });
  const act = async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
      setForm({ name: '', value: '' });
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ queryKey: ['secrets'] });
  };
  return (
    <>
      <Panel title="Secrets">
        <Ready query={query}>
          {(list) =>
            (list.secrets ?? []).length === 0 ? (
              <Empty title="No secrets">
                <p>Write one below. Tools use secrets by name, and their values are never shown.</p>
              </Empty>
            ) : (
              <div className="scroll" tabIndex={0} role="group" aria-label="Secrets">
                <table className="table">
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Written</th>
                      <th scope="col">
                        <span className="hide">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {(list.secrets ?? []).map((s) => (
                      <tr key={s.name}>
                        <td className="mono">
                          <Inert text={s.name} />
                        </td>
                        <td>
                          <Ago time={s.updated_at} />
                        </td>
                        <td>
                          <Button
                            kind="quiet"
                            onClick={() =>
                              void act(
                                ok(api.DELETE('/api/secrets/{name}', { params: { path: { name: s.name } } })),
                                'Deleted',
                              )
                            }
                          >
                            Delete
                          </Button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Ready>
      </Panel>
      <Panel title="Write a secret">
        <form
          className="body stack"
          onSubmit={(e) => {
            e.preventDefault();
            void act(
              ok(
                api.PUT('/api/secrets/{name}', { params: { path: { name: form.name } }, body: { value: form.value } }),
              ),
              'Stored',
            );
          }}
        >
          <Field label="Name">
            {(id) => (
              <input
                id={id}
                className="input mono"
                value={form.name}
                onChange={(e) => setForm({ ...form, name: e.target.value })}
              />
            )}
          </Field>
          <Field label="Value" help="Can be replaced, not read.">
            {(id) => (
              <input
                id={id}
                className="input"
                type="password"
                autoComplete="off"
                value={form.value}
                onChange={(e) => setForm({ ...form, value: e.target.value })}
              />
            )}
          </Field>
          <div>
            <Button kind="main" type="submit" disabled={!form.name || !form.value}>
              Store
            </Button>
          </div>
        </form>
      </Panel>
    </>
  );
}
