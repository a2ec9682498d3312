import { useMemo, useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { useAgents, useTools } from '../app/data';
import { useAccess } from '../app/session';
import { PreviewView } from '../ui/diff';
import { JSONView } from '../ui/json';
import { Button, Facts, Field, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { Empty, Failure } from '../ui/states';
import { Inert } from '../ui/text';
import { SchemaForm } from '../ui/schema-form';
import { EFFECTS } from './inbox/call-card';

const RISK = { low: 'none', medium: 'wait', high: 'bad' } as const;

/** ToolsScreen shows the catalogue, with search. */
export function ToolsScreen() {
  const tools = useTools();
  const [search, setSearch] = useState('');
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return (tools.data?.tools ?? []).filter((t) => words.every((w) => `${t.id} ${t.description} ${t.category} ${t.tier}`.toLowerCase().includes(w)));
  }, [tools.data, search]);
  return (
    <Page title="Tools" actions={<input type="search" className="input" aria-label="Search tools" placeholder="Search" value={search}
      onChange={(e) => setSearch(e.target.value)} />}>
      <Ready query={tools}>
        {() => shown.length === 0 ? <div className="panel"><Empty title="No tool matches" /></div> : (
          <div className="panel scroll" tabIndex={0} role="group" aria-label="Tools">
            <table className="table">
              <thead><tr><th scope="col">Tool</th><th scope="col">What it does</th><th scope="col">Effect</th><th scope="col">Risk</th></tr></thead>
              <tbody>
                {shown.map((t) => (
                  <tr key={t.id}>
                    <td><Link className="mono" to="/tools/$id" params={{ id: t.id }}>{t.id}</Link></td>
                    <td className="soft"><Inert text={firstSentence(t.description)} />{t.broken && <> <Tag tone="bad">broken</Tag></>}</td>
                    <td>{t.effect}</td>
                    <td><Tag tone={RISK[t.risk as keyof typeof RISK] ?? 'none'}>{t.risk}</Tag></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Ready>
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
  const query = useLive(['tool', id], (signal) => ok(api.GET('/api/tools/{id}', { params: { path: { id } }, signal })), { topics: ['tools'], id });
  return (
    <Page title={id} tag={query.data && <Tag tone={RISK[query.data.risk as keyof typeof RISK] ?? 'none'}>{query.data.risk} risk</Tag>}>
      <Ready query={query}>
        {(t) => (
          <div className="cols">
            <div className="stack">
              <Panel title="What it does">
                <div className="body stack">
                  {t.broken && <Failure error={new Error(t.broken)} />}
                  <p className="break"><Inert text={t.description} /></p>
                </div>
              </Panel>
              {can('member') && <Try tool={t} />}
            </div>
            <div className="stack">
              <Panel title="Facts">
                <div className="body">
                  <Facts facts={[
                    ['Pack', t.pack], ['Category', t.category], ['Kind', t.kind], ['Tier', t.tier.replace('_', ' ')],
                    ['Effect', `${t.effect}: ${EFFECTS[t.effect] ?? ''}`], ['Capability', t.capability], ['Preview', t.previews ? 'yes' : 'no'],
                    ['Time limit', `${t.timeout_ms / 1000} s`], ['Tries', String(t.retry.attempts ?? 1)], ['Version', String(t.version)],
                  ]} />
                </div>
              </Panel>
              <Panel title="Arguments (schema)"><div className="body"><JSONView text={JSON.stringify(t.parameters)} label="Schema" /></div></Panel>
            </div>
          </div>
        )}
      </Ready>
    </Page>
  );
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
      setResult(await ok(api.POST('/api/agents/{agentId}/calls', {
        params: { path: { agentId: chosen } }, body: { tool: tool.id, args, preview_only: preview_only || undefined } })));
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  if (agents.data && !chosen) return null;
  return (
    <Panel title="Try it" footer={
      <>
        <Button kind="main" disabled={isBusy || !chosen} onClick={() => void call(false)}>Call</Button>
        {tool.previews && <Button disabled={isBusy || !chosen} onClick={() => void call(true)}>Dry run</Button>}
      </>
    }>
      <div className="body stack">
        <Field label="As agent" help="The agent needs the tool attached. Its policy applies.">
          {(id) => (
            <select id={id} className="input" value={chosen} onChange={(e) => setAgent(e.target.value)}>
              {agents.data?.agents?.map((a) => <option key={a.id} value={a.id}>{a.name}</option>)}
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
              {result.operation_id && !result.preview && <Link to="/operations/$id" params={{ id: result.operation_id }}>explain</Link>}
              {result.approval_id && <Link to="/approvals/$id" params={{ id: result.approval_id }}>approve</Link>}
            </div>
            {result.message && <p className="soft"><Inert text={result.message} /></p>}
            {result.preview ? <PreviewView preview={result.content} /> : result.content && <JSONView text={result.content} label="Result" />}
          </section>
        )}
      </div>
    </Panel>
  );
}
