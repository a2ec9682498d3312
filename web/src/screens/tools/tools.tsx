import { useMemo, useState } from 'react';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { api, ok } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { ConfirmButton } from '../../ui/confirm';
import { JSONView } from '../../ui/json';
import { Button, Facts, Page, Panel, Ready, Tag, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Inert } from '../../ui/text';
import { EFFECTS } from '../inbox/call-card';
import { ToolDialog } from './define';
import { Try } from './try';

const RISK = { low: 'none', medium: 'wait', high: 'bad' } as const;

/** ToolsScreen shows the catalogue, with search. */
export function ToolsScreen() {
  const tools = useTools();
  const [search, setSearch] = useState('');
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return (tools.data?.tools ?? [])
      .filter((t) => words.every((w) => `${t.id} ${t.description} ${t.category} ${t.tier}`.toLowerCase().includes(w)))
      .sort((a, b) => a.id.localeCompare(b.id));
  }, [tools.data, search]);
  const { can } = useAccess();
  const [isAdding, setAdding] = useState(false);
  return (
    <Page
      title="Tools"
      actions={
        <>
          <input
            type="search"
            className="input"
            aria-label="Search tools"
            placeholder="Search"
            value={search}
            onChange={(e) => setSearch(e.target.value)}
          />
          {can('member') && (
            <Button kind="main" onClick={() => setAdding(true)}>
              New tool
            </Button>
          )}
        </>
      }
    >
      <Ready query={tools}>
        {() =>
          shown.length === 0 ? (
            <div className="panel">
              <Empty title="No tool matches">
                <p>Try fewer or other words.</p>
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Tools">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Tool</th>
                    <th scope="col">What it does</th>
                    <th scope="col">Effect</th>
                    <th scope="col">Risk</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map((t) => (
                    <tr key={t.id}>
                      <td>
                        <Link className="mono" to="/tools/$id" params={{ id: t.id }}>
                          {t.id}
                        </Link>
                      </td>
                      <td className="soft">
                        <Inert text={firstSentence(t.description)} />
                        {t.broken && (
                          <>
                            {' '}
                            <Tag tone="bad">broken</Tag>
                          </>
                        )}
                      </td>
                      <td>{t.effect}</td>
                      <td>
                        <Tag tone={RISK[t.risk as keyof typeof RISK] ?? 'none'}>{t.risk}</Tag>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {isAdding && <ToolDialog onClose={() => setAdding(false)} />}
    </Page>
  );
}

function firstSentence(text: string): string {
  const end = text.search(/\.\s/);
  return end < 0 ? text : text.slice(0, end + 1);
}

/** ToolScreen shows a tool, its schema, and a form to try it. */
export function ToolScreen() {
  const { id } = useParams({ from: '/tools/$id' });
  const { can } = useAccess();
  const query = useLive(
    ['tool', id],
    (signal) => ok(api.GET('/api/tools/{id}', { params: { path: { id } }, signal })),
    { topics: ['tools'], id },
  );
  const [isEditing, setEditing] = useState(false);
  const navigate = useNavigate();
  const refresh = useRefresh('tools', 'tool');
  const isOwn = query.data && (query.data.kind === 'http' || query.data.kind === 'script');
  return (
    <Page
      up={<Link to="/tools">Tools</Link>}
      title={id}
      actions={
        isOwn &&
        can('member') && (
          <>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <ConfirmButton
              label="Delete"
              title={`Delete ${id}?`}
              done="Deleted"
              run={async () => {
                await ok(api.DELETE('/api/tools/{id}', { params: { path: { id } } }));
                refresh();
                void navigate({ to: '/tools' });
              }}
            >
              <p>Agents can no longer call it. Past calls stay, and can still be explained.</p>
            </ConfirmButton>
          </>
        )
      }
      tag={query.data && <Tag tone={RISK[query.data.risk as keyof typeof RISK] ?? 'none'}>{query.data.risk} risk</Tag>}
    >
      <Ready query={query}>
        {(t) => (
          <div className="cols">
            <div className="stack">
              <Panel title="What it does">
                <div className="body stack">
                  {t.broken && <Failure error={new Error(t.broken)} />}
                  <p className="break">
                    <Inert text={t.description} />
                  </p>
                </div>
              </Panel>
              {can('member') && <Try tool={t} />}
            </div>
            <div className="stack">
              <Panel title="Facts">
                <div className="body">
                  <Facts
                    facts={[
                      ['Pack', t.pack],
                      ['Category', t.category],
                      ['Kind', t.kind],
                      ['Tier', t.tier.replace('_', ' ')],
                      ['Effect', `${t.effect}: ${EFFECTS[t.effect] ?? ''}`],
                      ['Capability', t.capability],
                      ['Preview', t.previews ? 'yes' : 'no'],
                      ['Time limit', `${t.timeout_ms / 1000} s`],
                      ['Tries', String(t.retry.attempts ?? 1)],
                      ['Version', String(t.version)],
                    ]}
                  />
                </div>
              </Panel>
              <Panel title="Arguments (schema)">
                <div className="body">
                  <JSONView text={JSON.stringify(t.parameters)} label="Schema" />
                </div>
              </Panel>
            </div>
          </div>
        )}
      </Ready>
      {isEditing && query.data && <ToolDialog tool={query.data} onClose={() => setEditing(false)} />}
    </Page>
  );
}
