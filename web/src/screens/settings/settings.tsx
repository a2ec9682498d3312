import { useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useAgentName, useStatus, useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { formatAmount } from '../../lib/format';
import { CheckList } from '../../ui/check-list';
import { Dialog } from '../../ui/dialog';
import { Button, Facts, Field, Page, Panel, Ready, Tag, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { Members, Tokens } from './access';
import { Secrets } from './secrets';
import { BudgetDialog, budgetParts, UsedBar } from '../budget';

const SECTIONS = [
  ['server', 'Server'],
  ['budgets', 'Budgets'],
  ['profiles', 'Kinds'],
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
        <Kinds />
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
                              <Tag tone="bad">spent</Tag>
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

// Kinds lists the kinds of agent and what each may do.
function Kinds() {
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
          <div className="scroll" tabIndex={0} role="group" aria-label="Kinds">
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
                    <td className="mono break">{(p.capabilities ?? []).join(', ') || 'none'}</td>
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
      {open && <KindDialog profile={open} onClose={() => setOpen(null)} />}
    </Panel>
  );
}

function KindDialog({ profile, onClose }: { profile: Schemas['Profile']; onClose: () => void }) {
  const notify = useNotify();
  const refresh = useRefresh('profiles');
  const tools = useTools();
  const [kind, setKind] = useState(profile.kind);
  const [chosen, setChosen] = useState<string[]>(profile.capabilities ?? []);
  const [error, setError] = useState<unknown>(null);
  const all = tools.data?.tools ?? [];
  const known = [...new Set([...all.map((t) => t.capability ?? ''), ...(profile.capabilities ?? [])])];
  const needing = (capability: string) => all.filter((t) => t.capability === capability).map((t) => t.id);
  const choices = known.filter(Boolean).sort().map((id) => ({ id, help: needing(id).join(', ') }));
  const save = async () => {
    setError(null);
    try {
      await ok(api.PUT('/api/profiles/{kind}', { params: { path: { kind } }, body: { capabilities: chosen } }));
      notify.done('Saved');
      onClose();
    } catch (e) {
      setError(e);
    }
    refresh();
  };
  return (
    <Dialog title={profile.kind ? `Kind ${profile.kind}` : 'New kind of agent'} wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {!profile.kind && (
          <Field label="Kind" help="A short name, such as courier.">
            {(id) => (
              <input
                id={id}
                className="input"
                autoFocus
                required
                value={kind}
                onChange={(e) => setKind(e.target.value)}
              />
            )}
          </Field>
        )}
        <p className="small soft">Some tools need a capability. Below each one stand the tools that need it.</p>
        <CheckList label="Capabilities" choices={choices} chosen={chosen} onChange={setChosen} />
        {error !== null && <Failure error={error} />}
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
