import { lazy, Suspense, useMemo, useState } from 'react';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { useAct } from '../app/act';
import { useAgents, useTools } from '../app/data';
import { useAccess } from '../app/session';
import { Dialog } from '../ui/dialog';
import { PreviewView } from '../ui/diff';
import { JSONView } from '../ui/json';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty, Failure, Loading } from '../ui/states';
import { Inert } from '../ui/text';
import { SchemaForm } from '../ui/schema-form';
import { EFFECTS } from './inbox/call-card';

const Editor = lazy(() => import('../ui/editor'));

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
  const [isDeleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const act = useAct('tools', 'tool');
  const isOwn = query.data && (query.data.kind === 'http' || query.data.kind === 'script');
  const remove = async () => {
    setDeleting(false);
    if (await act(ok(api.DELETE('/api/tools/{id}', { params: { path: { id } } })), 'Deleted'))
      void navigate({ to: '/tools' });
  };
  return (
    <Page
      title={id}
      actions={
        isOwn &&
        can('member') && (
          <>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <Button kind="quiet" onClick={() => setDeleting(true)}>
              Delete…
            </Button>
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
      {isDeleting && (
        <Dialog title={`Delete ${id}?`} onClose={() => setDeleting(false)}>
          <p>Agents can no longer call it. Past calls stay, and can still be explained.</p>
          <div className="actions">
            <Button onClick={() => setDeleting(false)}>Cancel</Button>
            <Button kind="bad" onClick={() => void remove()}>
              Delete
            </Button>
          </div>
        </Dialog>
      )}
    </Page>
  );
}

const FIRST = {
  http: {
    parameters:
      '{\n  "type": "object",\n  "properties": {"city": {"type": "string", "description": "Name of the city"}},\n  "required": ["city"],\n  "additionalProperties": false\n}',
    spec: '{\n  "method": "GET",\n  "url": "https://api.example.com/v1/forecast?city={city}",\n  "headers": {"Authorization": "Bearer ${secret:WEATHER_KEY}"}\n}',
  },
  script: {
    parameters: '{\n  "type": "object",\n  "properties": {"a": {"type": "number"}, "b": {"type": "number"}}\n}',
    spec: 'input.a + input.b\n',
  },
} as const;

// ToolDialog defines or changes an HTTP or script tool.
function ToolDialog({ tool, onClose }: { tool?: Schemas['ToolView']; onClose: () => void }) {
  const navigate = useNavigate();
  const act = useAct('tools', 'tool');
  const firstKind = tool?.kind === 'script' ? 'script' : 'http';
  const spec = (tool?.spec ?? {}) as { source?: string };
  const [kind, setKind] = useState<'http' | 'script'>(firstKind);
  const [form, setForm] = useState({
    id: tool?.id ?? '',
    description: tool?.description ?? '',
    effect: (tool?.effect ?? 'read') as Effect,
  });
  const [parameters, setParameters] = useState<string>(
    tool ? JSON.stringify(tool.parameters, null, 2) : FIRST.http.parameters,
  );
  const [source, setSource] = useState<string>(
    tool ? (firstKind === 'script' ? (spec.source ?? '') : JSON.stringify(tool.spec, null, 2)) : FIRST.http.spec,
  );
  const [error, setError] = useState<unknown>(null);
  const change = (next: 'http' | 'script') => {
    setKind(next);
    setParameters(FIRST[next].parameters);
    setSource(FIRST[next].spec);
  };
  const save = async () => {
    setError(null);
    try {
      const own = tool as unknown as Schemas['ToolRequest'] | undefined;
      const body: Schemas['ToolRequest'] = {
        ...(own && {
          name: own.name,
          category: own.category,
          tier: own.tier,
          risk: own.risk,
          capability: own.capability,
          timeout_ms: own.timeout_ms,
          retry: own.retry,
          identity: own.identity,
          async: own.async,
          cost: own.cost,
          config_schema: own.config_schema,
          output_schema: own.output_schema,
        }),
        ...form,
        kind,
        parameters: parseJSON(parameters, 'Arguments'),
        spec: kind === 'http' ? parseJSON(source, 'Request') : { ...spec, source, language: 'js' },
      };
      await ok(
        tool
          ? api.PUT('/api/tools/{id}', { params: { path: { id: tool.id } }, body })
          : api.POST('/api/tools', { body }),
      );
      await act(Promise.resolve(), 'Saved');
      onClose();
      void navigate({ to: '/tools/$id', params: { id: form.id } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title={tool ? `Edit ${tool.id}` : 'New tool'} wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        {error !== null && <Failure error={error} />}
        <div className="row wrap top-row">
          <Field label="Id">
            {(id) => (
              <input
                id={id}
                className="input mono"
                disabled={Boolean(tool)}
                value={form.id}
                onChange={(e) => setForm({ ...form, id: e.target.value })}
              />
            )}
          </Field>
          <Field label="Kind">
            {(id) => (
              <select
                id={id}
                className="input"
                disabled={Boolean(tool)}
                value={kind}
                onChange={(e) => change(e.target.value as 'http')}
              >
                <option value="http">HTTP request</option>
                <option value="script">script</option>
              </select>
            )}
          </Field>
          <Field label="Effect">
            {(id) => (
              <select
                id={id}
                className="input"
                value={form.effect}
                onChange={(e) => setForm({ ...form, effect: e.target.value as Effect })}
              >
                {(['read', 'keyed', 'verifiable', 'unsafe'] as const).map((x) => (
                  <option key={x}>{x}</option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <p className="small faint">{EFFECTS[form.effect]}</p>
        <Field label="Description, for models">
          {(id) => (
            <textarea
              id={id}
              className="input"
              value={form.description}
              onChange={(e) => setForm({ ...form, description: e.target.value })}
            />
          )}
        </Field>
        <Suspense fallback={<Loading />}>
          <h3>Arguments (JSON Schema)</h3>
          <Editor key={`p-${kind}`} label="Arguments" language="json" value={parameters} onChange={setParameters} />
          <h3>{kind === 'http' ? 'Request' : 'Script'}</h3>
          <Editor
            key={`s-${kind}`}
            label={kind === 'http' ? 'Request' : 'Script'}
            language={kind === 'http' ? 'json' : 'js'}
            value={source}
            onChange={setSource}
          />
        </Suspense>
        <p className="small faint">
          {kind === 'http'
            ? 'A secret is written as ${secret:NAME}. It needs the role owner.'
            : 'The arguments are in input. The last expression is the result.'}
        </p>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={form.id === '' || form.description === ''}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

type Effect = 'read' | 'keyed' | 'verifiable' | 'unsafe';

function parseJSON(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Error(`${what} is not JSON: ${e instanceof Error ? e.message : String(e)}`);
  }
}

// Try calls the tool as one of the agents that have it. Every try passes the gate like any other call.
function Try({ tool }: { tool: Schemas['ToolView'] }) {
  const agents = useAgents();
  const [agent, setAgent] = useState('');
  const [args, setArgs] = useState<Record<string, unknown>>({});
  const [result, setResult] = useState<Schemas['Result'] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const chosen = agent || agents.data?.agents?.[0]?.id || '';
  const call = async (preview_only: boolean) => {
    setBusy(true);
    setError(null);
    setResult(null);
    try {
      setResult(
        await ok(
          api.POST('/api/agents/{agentId}/calls', {
            params: { path: { agentId: chosen } },
            body: { tool: tool.id, args, preview_only: preview_only || undefined },
          }),
        ),
      );
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  if (agents.data && !chosen) return null;
  return (
    <Panel
      title="Try it"
      footer={
        <>
          <Button kind="main" disabled={isBusy || !chosen} onClick={() => void call(false)}>
            Call
          </Button>
          {tool.previews && (
            <Button disabled={isBusy || !chosen} onClick={() => void call(true)}>
              Dry run
            </Button>
          )}
        </>
      }
    >
      <div className="body stack">
        <Field label="As agent" help="The agent needs the tool attached. Its policy applies.">
          {(id) => (
            <select id={id} className="input" value={chosen} onChange={(e) => setAgent(e.target.value)}>
              {agents.data?.agents?.map((a) => (
                <option key={a.id} value={a.id}>
                  {a.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <SchemaForm schema={tool.parameters} value={args} onChange={setArgs} />
        {error !== null && <Failure error={error} />}
        {result && (
          <section className="stack tight">
            <div className="row">
              <h3>{result.preview ? 'What would change' : 'Result'}</h3>
              {result.state && <StateTag state={result.state} />}
              {result.operation_id && !result.preview && (
                <Link to="/operations/$id" params={{ id: result.operation_id }}>
                  explain
                </Link>
              )}
              {result.approval_id && (
                <Link to="/approvals/$id" params={{ id: result.approval_id }}>
                  approve
                </Link>
              )}
            </div>
            {result.message && (
              <p className="soft">
                <Inert text={result.message} />
              </p>
            )}
            {result.preview ? (
              <PreviewView preview={result.content} />
            ) : (
              result.content && <JSONView text={result.content} label="Result" />
            )}
          </section>
        )}
      </div>
    </Panel>
  );
}
