import { useState } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { Editor } from '../../ui/code-editor';
import { Dialog } from '../../ui/dialog';
import { CompareView } from '../../ui/diff';
import { Button, Field } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { useNotify } from '../../ui/toast';
import { EFFECTS } from '../inbox/call-card';

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

/** ToolDialog defines or changes an HTTP or script tool. */
export function ToolDialog({ tool, onClose }: { tool?: Schemas['ToolView']; onClose: () => void }) {
  const navigate = useNavigate();
  const notify = useNotify();
  const refresh = useRefresh('tools', 'tool');
  const firstKind = tool?.kind === 'script' ? 'script' : 'http';
  const [base, setBase] = useState(tool); // what the person has seen
  const [isOld, setOld] = useState(false);
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
    tool ? sourceOf(tool) : FIRST.http.spec,
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
      const now = tool && (await ok(api.GET('/api/tools/{id}', { params: { path: { id: tool.id } } })));
      if (now && now.version !== base?.version) {
        setBase(now);
        setOld(true);
        return;
      }
      const own = now as unknown as Schemas['ToolRequest'] | undefined;
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
        spec:
          kind === 'http'
            ? parseJSON(source, 'Request')
            : { ...(now?.spec as object | undefined), source, language: 'js' },
      };
      await ok(
        tool
          ? api.PUT('/api/tools/{id}', { params: { path: { id: tool.id } }, body })
          : api.POST('/api/tools', { body }),
      );
      notify.done('Saved');
      refresh();
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
        <div className="row wrap top-row">
          <Field label="Id" name="id" help="Such as weather_get.">
            {(id) => (
              <input
                id={id}
                className="input mono"
                autoFocus={!tool}
                required
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
        <Field label="Description, for models" name="description">
          {(id) => (
            <textarea
              id={id}
              className="input"
              autoFocus={Boolean(tool)}
              required
              value={form.description}
              onChange={(e) => setForm({ ...form, description: e.target.value })}
            />
          )}
        </Field>
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
        <p className="small faint">
          {kind === 'http'
            ? 'A secret is written as ${secret:NAME}. It needs the role owner.'
            : 'The arguments are in input. The last expression is the result.'}
        </p>
        {isOld && base && (
          <section className="stack tight" role="alert">
            <p>
              <strong>Somebody changed this tool while you edited.</strong> It has version {base.version} now. Your text
              is kept and is not saved. Compare it, then save it as the next version.
            </p>
            {[
              ['Description', base.description, form.description],
              ['Arguments', JSON.stringify(base.parameters, null, 2), parameters],
              [kind === 'http' ? 'Request' : 'Script', sourceOf(base), source],
            ].map(([title = '', before = '', after = '']) => (
              before !== after && <CompareView key={title} title={`${title} → yours`} before={before} after={after} />
            ))}
          </section>
        )}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={form.id === '' || form.description === ''}>
            {isOld ? 'Save yours' : 'Save'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

// sourceOf returns the script of a tool, or its request as JSON.
function sourceOf(tool: Schemas['ToolView']): string {
  const spec = tool.spec as { source?: string } | undefined;
  return tool.kind === 'script' ? (spec?.source ?? '') : JSON.stringify(spec, null, 2);
}

type Effect = 'read' | 'keyed' | 'verifiable' | 'unsafe';

function parseJSON(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (e) {
    throw new Error(`${what} is not JSON: ${e instanceof Error ? e.message : String(e)}`);
  }
}
