import { useMemo, useRef, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { ConfirmButton } from '../../ui/confirm';
import { Dialog } from '../../ui/dialog';
import { Button, Field, Panel, Ready, useLive } from '../../ui/kit';
import { SchemaForm } from '../../ui/schema-form';
import { Empty, Failure } from '../../ui/states';
import { Inert } from '../../ui/text';
import { useAgentAct } from './act';

const ANSWERS = ['allow', 'ask', 'propose', 'deny'] as const;

/** ToolsPanel shows what an agent may call, and on what terms. */
export function ToolsPanel({ agent }: { agent: Schemas['Agent'] }) {
  const { can } = useAccess();
  const act = useAgentAct(agent.id);
  const refresh = useRefresh('agent-tools', 'agent', 'agents');
  const [isAttaching, setAttaching] = useState(false);
  const query = useLive(
    ['agent-tools', agent.id],
    (signal) => ok(api.GET('/api/agents/{agentId}/tools', { params: { path: { agentId: agent.id } }, signal })),
    { topics: ['agents', 'tools'] },
  );
  const policy = agent.policy;
  const last = useRef<Promise<unknown>>(Promise.resolve());
  const setPolicy = (tool: string, answer: string) => {
    const params = { path: { agentId: agent.id } };
    const set = async () => {
      const { policy: latest } = await ok(api.GET('/api/agents/{agentId}', { params }));
      const tools = { ...latest.tools };
      if (answer === '') delete tools[tool];
      else tools[tool] = answer as (typeof ANSWERS)[number];
      await ok(api.PATCH('/api/agents/{agentId}', { params, body: { policy: { ...latest, tools } } }));
    };
    const isSet = last.current.then(set); // one after the other, because each sends the whole policy
    last.current = isSet.catch(() => {});
    void act(isSet, `${tool}: ${answer || 'by default'}`);
  };
  const tierAnswer = (t: Schemas['ToolView']) =>
    policy.tiers?.[t.tier] ?? (t.tier === 'read_only' ? 'allow' : t.tier === 'privileged' ? 'ask' : 'allow');
  const attach = can('member') && agent.lifecycle !== 'destroyed' && (
    <Button onClick={() => setAttaching(true)}>Attach a tool</Button>
  );
  return (
    <Panel title="Tools and policy" aside={attach}>
      <Ready query={query}>
        {(list) =>
          (list.tools ?? []).length === 0 ? (
            <Empty title="No tools">
              <p>Without tools an agent can only talk.</p>
              {attach}
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Tools and policy">
              <table className="table matrix">
                <thead>
                  <tr>
                    <th scope="col">Tool</th>
                    {ANSWERS.map((x) => (
                      <th key={x} scope="col">
                        {x}
                      </th>
                    ))}
                    <th scope="col">by default</th>
                  </tr>
                </thead>
                <tbody>
                  {(list.tools ?? []).map((t) => {
                    const own = policy.tools?.[t.id];
                    return (
                      <tr key={t.id}>
                        <td>
                          <Link className="mono" to="/tools/$id" params={{ id: t.id }}>
                            {t.id}
                          </Link>
                          <div className="small faint">
                            {t.tier.replace('_', ' ')}, {t.risk} risk
                          </div>
                          {can('member') && (
                            <ConfirmButton
                              label="Detach"
                              title={`Detach ${t.id}?`}
                              done={`Detached ${t.id}`}
                              run={() =>
                                ok(
                                  api.DELETE('/api/agents/{agentId}/tools/{toolId}', {
                                    params: { path: { agentId: agent.id, toolId: t.id } },
                                  }),
                                ).finally(refresh)
                              }
                            >
                              <p>
                                The agent can no longer call it. Its settings for this agent are lost; past calls stay.
                              </p>
                            </ConfirmButton>
                          )}
                        </td>
                        {ANSWERS.map((x) => (
                          <td key={x}>
                            <input
                              type="radio"
                              name={`policy-${t.id}`}
                              aria-label={`${t.id}: ${x}`}
                              disabled={!can('member')}
                              checked={own === x}
                              onChange={() => setPolicy(t.id, x)}
                            />
                          </td>
                        ))}
                        <td>
                          <label className="row small soft">
                            <input
                              type="radio"
                              name={`policy-${t.id}`}
                              aria-label={`${t.id}: by default`}
                              disabled={!can('member')}
                              checked={own === undefined}
                              onChange={() => setPolicy(t.id, '')}
                            />
                            {tierAnswer(t)}
                          </label>
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
      {isAttaching && (
        <AttachDialog
          agent={agent}
          attached={query.data?.tools?.map((t) => t.id) ?? []}
          onClose={() => setAttaching(false)}
        />
      )}
    </Panel>
  );
}

function AttachDialog({
  agent,
  attached,
  onClose,
}: {
  agent: Schemas['Agent'];
  attached: string[];
  onClose: () => void;
}) {
  const tools = useTools();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState('');
  const [config, setConfig] = useState<Record<string, unknown>>({});
  const [error, setError] = useState<unknown>(null);
  const free = useMemo(() => (tools.data?.tools ?? []).filter((t) => !attached.includes(t.id)), [tools.data, attached]);
  const tool = free.find((t) => t.id === chosen);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.POST('/api/agents/{agentId}/tools', {
          params: { path: { agentId: agent.id } },
          body: { tool_id: chosen, config: Object.keys(config).length ? config : undefined },
        }),
      );
      void queries.invalidateQueries({ queryKey: ['agent-tools', agent.id] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="Attach a tool" wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Field label="Tool" name="tool_id">
          {(id) => (
            <select
              id={id}
              className="input"
              autoFocus
              value={chosen}
              onChange={(e) => {
                setChosen(e.target.value);
                setConfig({});
              }}
            >
              <option value="">Choose…</option>
              {free.map((t) => (
                <option key={t.id} value={t.id}>
                  {t.id}
                </option>
              ))}
            </select>
          )}
        </Field>
        {tool && (
          <p className="soft break">
            <Inert text={tool.description} />
          </p>
        )}
        {tool?.config_schema ? (
          <>
            <h3>Settings</h3>
            <SchemaForm schema={tool.config_schema} value={config} onChange={setConfig} />
          </>
        ) : null}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={!tool}>
            Attach
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
