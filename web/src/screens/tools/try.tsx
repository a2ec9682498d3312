import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { PreviewView } from '../../ui/diff';
import { JSONView } from '../../ui/json';
import { Button, Field, Panel, Ready, StateTag, useLive } from '../../ui/kit';
import { SchemaForm } from '../../ui/schema-form';
import { Failure } from '../../ui/states';
import { Inert } from '../../ui/text';

// useAgentsWith reads the agents that have a tool attached and can act.
function useAgentsWith(tool: string) {
  return useLive(
    ['agents-with', tool],
    async (signal) => {
      const list = await ok(api.GET('/api/agents', { params: { query: { limit: 500 } }, signal }));
      const all = (list.agents ?? []).filter((a) => a.lifecycle !== 'destroyed');
      const tools = await Promise.all(
        all.map((a) =>
          ok(api.GET('/api/agents/{agentId}/tools', { params: { path: { agentId: a.id } }, signal })),
        ),
      );
      return all.filter((_, i) => tools[i]?.tools?.some((t) => t.id === tool));
    },
    { topics: ['agents', 'tools'] },
  );
}

// isMissing reports whether a required argument has no value.
function isMissing(schema: unknown, args: Record<string, unknown>): boolean {
  const required = (schema as { required?: string[] } | null)?.required ?? [];
  return required.some((name) => args[name] === undefined || args[name] === '');
}

/** Try calls a tool as one of the agents that have it. Every try passes the gate like any other call. */
export function Try({ tool }: { tool: Schemas['ToolView'] }) {
  const agents = useAgentsWith(tool.id);
  return (
    <Panel title="Try it">
      <Ready query={agents}>
        {(list) =>
          list.length === 0 ? (
            <p className="body soft">
              No agent has this tool. <Link to="/agents">Attach it on the page of an agent</Link>, then try it here.
            </p>
          ) : (
            <TryForm tool={tool} agents={list} />
          )
        }
      </Ready>
    </Panel>
  );
}

function TryForm({ tool, agents }: { tool: Schemas['ToolView']; agents: Schemas['Agent'][] }) {
  const [agent, setAgent] = useState('');
  const [args, setArgs] = useState<Record<string, unknown>>({});
  const [result, setResult] = useState<Schemas['Result'] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const chosen = agents.some((a) => a.id === agent) ? agent : (agents[0]?.id ?? '');
  const missing = isMissing(tool.parameters, args);
  const call = async (preview_only: boolean) => {
    if (isBusy) return;
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
  return (
    <div className="body stack">
      <Field label="As agent" help="The agents that have the tool. Its policy applies.">
        {(id) => (
          <select id={id} className="input" value={chosen} onChange={(e) => setAgent(e.target.value)}>
            {agents.map((a) => (
              <option key={a.id} value={a.id}>
                {a.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <SchemaForm schema={tool.parameters} value={args} onChange={setArgs} />
      {missing && <p className="small faint">Fill in what is required.</p>}
      <div className="row wrap">
        {tool.previews && (
          <Button kind="main" disabled={missing || isBusy} onClick={() => void call(true)}>
            Preview
          </Button>
        )}
        <Button
          kind={tool.previews ? '' : 'main'}
          disabled={missing || isBusy}
          onClick={() => void call(false)}
        >
          Call
        </Button>
        <span className="small faint">
          {tool.previews ? 'Preview changes nothing. Call does it.' : 'Call does it; this tool has no preview.'}
        </span>
      </div>
      {error !== null && <Failure error={error} />}
      {result && <Outcome result={result} />}
    </div>
  );
}

function Outcome({ result }: { result: Schemas['Result'] }) {
  return (
    <section className="stack tight">
      <div className="row">
        <h3>{result.preview ? 'What would change' : 'Result'}</h3>
        {result.state && <StateTag state={result.state} />}
        {result.operation_id && !result.preview && (
          <Link to="/operations/$id" params={{ id: result.operation_id }}>
            Explain
          </Link>
        )}
        {result.approval_id && (
          <Link to="/approvals/$id" params={{ id: result.approval_id }}>
            Approve or deny
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
  );
}
