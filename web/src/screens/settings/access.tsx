import { useRef, useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useAccess } from '../../app/session';
import { formatTime, some } from '../../lib/format';
import { ConfirmButton } from '../../ui/confirm';
import { Dialog } from '../../ui/dialog';
import { Button, Field, Panel, Ready, Tag, useLive } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';

type AccessToken = Schemas['AccessToken'];

const RANK = { viewer: 1, member: 2, owner: 3 } as const;
type Role = keyof typeof RANK;

const ROLES: [Role, string][] = [
  ['viewer', 'viewer: sees'],
  ['member', 'member: decides and acts'],
  ['owner', 'owner: everything'],
];

function useTokens() {
  return useLive(['tokens'], (signal) => ok(api.GET('/api/tokens', { signal })), { topics: ['tokens'] });
}

const isOver = (t: AccessToken) => Boolean(t.revoked_at) || (t.expires_at && Date.parse(t.expires_at) <= Date.now());

const revoke = (id: string) => ok(api.DELETE('/api/tokens/{id}', { params: { path: { id } } }));

// isHere reports whether a session is the one of this browser. The server only says when it ends.
function isHere(t: AccessToken, expires: string | undefined): boolean {
  return t.kind === 'session' && Boolean(expires) && Boolean(t.expires_at)
    && Math.abs(Date.parse(t.expires_at ?? '') - Date.parse(expires ?? '')) < 1000;
}

/** Members lists people by their valid tokens and sessions. The strongest of them decides the role. */
export function Members() {
  const { session } = useAccess();
  const notify = useNotify();
  const refresh = useRefresh('tokens');
  const [isAdding, setAdding] = useState(false);
  const query = useTokens();
  const valid = (query.data?.tokens ?? []).filter((t) => !isOver(t));
  const users = [...new Set(valid.map((t) => t.user))].sort();
  const of = (user: string) => valid.filter((t) => t.user === user);
  const change = async (user: string, role: Role) => {
    try {
      for (const t of of(user).filter((t) => t.kind === 'token' && t.role !== role))
        await ok(api.PATCH('/api/tokens/{id}', { params: { path: { id: t.id } }, body: { role } }));
      notify.done(`${user} is now ${role}`);
    } catch (e) {
      notify.failed(e);
    }
    refresh();
  };
  const remove = async (user: string) => {
    try {
      for (const t of of(user)) await revoke(t.id);
    } finally {
      refresh();
    }
  };
  return (
    <Panel title="Members" aside={<Button onClick={() => setAdding(true)}>Add a member</Button>}>
      <Ready query={query}>
        {() => (
          <div className="scroll" tabIndex={0} role="group" aria-label="Members">
            <table className="table">
              <thead>
                <tr>
                  <th scope="col">Person</th>
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
                  const tokens = own.filter((t) => t.kind === 'token').length;
                  const sessions = own.length - tokens;
                  const role = own.reduce<Role>(
                    (best, t) => (RANK[t.role as Role] > RANK[best] ? (t.role as Role) : best),
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
                            onChange={(e) => void change(user, e.target.value as Role)}
                          >
                            {ROLES.map(([r]) => (
                              <option key={r}>{r}</option>
                            ))}
                          </select>
                        )}
                      </td>
                      <td className="num">{tokens}</td>
                      <td className="num">{sessions}</td>
                      <td>
                        {user !== session.user && (
                          <ConfirmButton
                            label="Remove"
                            title={`Remove ${user}?`}
                            done={`Removed ${user}`}
                            run={() => remove(user)}
                          >
                            <p>
                              This ends {some(tokens, 'token')} and {some(sessions, 'session')}. What the person
                              did stays, and so do their notes.
                            </p>
                          </ConfirmButton>
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
      <p className="body small faint">
        A person's role is that of their strongest token. A change holds for all their tokens, and at once for the
        sessions made with them.
      </p>
      {isAdding && <NewToken isMember onClose={() => setAdding(false)} />}
    </Panel>
  );
}

/** Tokens lists access tokens, and apart from them the sessions of the console. Those that ended come last. */
export function Tokens() {
  const [isAdding, setAdding] = useState(false);
  const query = useTokens();
  return (
    <>
      <Panel title="Access tokens" aside={<Button onClick={() => setAdding(true)}>New token</Button>}>
        <Ready query={query}>
          {(list) => <TokenTable label="Tokens" tokens={(list.tokens ?? []).filter((t) => t.kind === 'token')} />}
        </Ready>
        {isAdding && <NewToken onClose={() => setAdding(false)} />}
      </Panel>
      <Panel title="Sessions of the console">
        <Ready query={query}>
          {(list) => <TokenTable label="Sessions" tokens={(list.tokens ?? []).filter((t) => t.kind === 'session')} />}
        </Ready>
      </Panel>
    </>
  );
}

function TokenTable({ label, tokens }: { label: string; tokens: AccessToken[] }) {
  const { session } = useAccess();
  const refresh = useRefresh('tokens');
  const over = tokens.filter(isOver);
  const [isAll, setAll] = useState(false);
  const here = tokens.filter((t) => !isOver(t) && isHere(t, session.expires_at));
  const shown = [...tokens.filter((t) => !isOver(t)), ...(isAll ? over : [])];
  return (
    <>
      <div className="scroll" tabIndex={0} role="group" aria-label={label}>
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Person</th>
              <th scope="col">Role</th>
              <th scope="col">Made</th>
              <th scope="col">Expires</th>
              <th scope="col">
                <span className="hide">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((t) => {
              const isOwn = here.length === 1 && here[0] === t;
              return (
                <tr key={t.id}>
                  <td>
                    <Inert text={t.name} />
                    {isOwn && (
                      <>
                        {' '}
                        <Tag>this browser</Tag>
                      </>
                    )}
                  </td>
                  <td>
                    <Inert text={t.user} />
                  </td>
                  <td>{t.role}</td>
                  <td>
                    <Ago time={t.created_at} />
                  </td>
                  <td>{t.expires_at ? formatTime(t.expires_at) : 'never'}</td>
                  <td>
                    {t.revoked_at ? (
                      <Tag tone="bad">revoked</Tag>
                    ) : isOver(t) ? (
                      <Tag>expired</Tag>
                    ) : (
                      <ConfirmButton
                        label={t.kind === 'session' ? 'End' : 'Revoke'}
                        title={t.kind === 'session' ? `End this session of ${t.user}?` : `Revoke ${t.name}?`}
                        done={t.kind === 'session' ? 'Ended' : 'Revoked'}
                        run={() => revoke(t.id).finally(refresh)}
                      >
                        <p>
                          {t.kind === 'session'
                            ? isOwn
                              ? 'It is the session of this browser: you are signed out at once.'
                              : 'That browser is signed out at once.'
                            : 'Programs that use it are refused from now on, and sessions made with it end.'}
                        </p>
                        {t.kind === 'token' && t.user === session.user && (
                          <p>
                            It is a token of yours. If you signed in with it, you are signed out; if the command line
                            uses it, that stops working too.
                          </p>
                        )}
                      </ConfirmButton>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {over.length > 0 && (
        <footer>
          <Button kind="quiet" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
            {isAll ? 'Hide' : 'Show'} {over.length} that ended
          </Button>
        </footer>
      )}
    </>
  );
}

// NewToken makes a token. For a member, the token has the person's name.
function NewToken({ isMember, onClose }: { isMember?: boolean; onClose: () => void }) {
  const refresh = useRefresh('tokens');
  const [form, setForm] = useState({ name: '', user: '', role: 'member' as Role });
  const [made, setMade] = useState('');
  const [error, setError] = useState<unknown>(null);
  const name = isMember ? form.user.trim() : form.name.trim();
  const save = async () => {
    setError(null);
    try {
      const user = form.user.trim() || undefined;
      setMade((await ok(api.POST('/api/tokens', { body: { name, role: form.role, user } }))).token);
      refresh();
    } catch (e) {
      setError(e);
    }
  };
  if (made) return <Made token={made} isMember={isMember} onClose={onClose} />;
  const person = (
    <Field
      name="user"
      label={isMember ? 'Person' : 'Person (optional)'}
      help={isMember ? 'A short name, such as mia. The person signs in with the token.' : 'Empty: you.'}
    >
      {(id) => (
        <input
          id={id}
          className="input"
          autoFocus={isMember}
          required={isMember}
          autoComplete="off"
          value={form.user}
          onChange={(e) => setForm({ ...form, user: e.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Dialog title={isMember ? 'Add a member' : 'New access token'} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {!isMember && (
          <Field label="Name" name="name" help="Where it is used, such as laptop.">
            {(id) => (
              <input
                id={id}
                className="input"
                autoFocus
                required
                value={form.name}
                onChange={(e) => setForm({ ...form, name: e.target.value })}
              />
            )}
          </Field>
        )}
        {person}
        <Field label="Role">
          {(id) => (
            <select
              id={id}
              className="input"
              value={form.role}
              onChange={(e) => setForm({ ...form, role: e.target.value as Role })}
            >
              {ROLES.map(([role, help]) => (
                <option key={role} value={role}>
                  {help}
                </option>
              ))}
            </select>
          )}
        </Field>
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={name === ''}>
            Create token
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

// Made shows a new token, once. Only Done closes it.
function Made({ token, isMember, onClose }: { token: string; isMember?: boolean; onClose: () => void }) {
  const text = useRef<HTMLPreElement>(null);
  const [note, setNote] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(token); // missing without https, except on localhost
      setNote('Copied');
    } catch {
      if (text.current) getSelection()?.selectAllChildren(text.current);
      setNote('The browser does not allow copying here. The token is selected: press Ctrl+C, or ⌘C on a Mac.');
    }
  };
  return (
    <Dialog title={isMember ? 'Member added' : 'New access token'} keep onClose={onClose}>
      <p>{isMember ? 'Give the person this token now.' : 'Copy the token now.'} It is not shown again.</p>
      <pre className="code" tabIndex={0} ref={text} aria-label="Token" role="group">
        {token}
      </pre>
      <p className="small soft" role="status">
        {note}
      </p>
      <div className="actions">
        <Button autoFocus onClick={() => void copy()}>
          Copy
        </Button>
        <Button kind="main" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
