import { useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAccess } from '../../app/session';
import { JSONView } from '../../ui/json';
import { Button, Facts, Page, Panel, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Id, Inert } from '../../ui/text';
import { BudgetDialog, BudgetFacts } from '../budget';
import { useAgentAct } from './act';
import { DestroyDialog, PauseDialog } from './dialogs';
import { EditDialog } from './edit';
import { Knows } from './knows';
import { ToolsPanel } from './tools';

/** AgentScreen shows an agent: state, tools with their policy, settings, and what destroying it would stop. */
export function AgentScreen() {
  const { id } = useParams({ from: '/agents/$id' });
  const { can } = useAccess();
  const act = useAgentAct(id);
  const [isPausing, setPausing] = useState(false);
  const [isDestroying, setDestroying] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const query = useLive(
    ['agent', id],
    (signal) => ok(api.GET('/api/agents/{agentId}', { params: { path: { agentId: id } }, signal })),
    { topics: ['agents', 'control'] },
  );
  const a = query.data;
  const isPaused = Boolean(a?.stopped_at);
  return (
    <Page
      up={<Link to="/agents">Agents</Link>}
      title={a ? <Inert text={a.name} /> : 'Agent'}
      tag={a && (isPaused ? <Tag tone="wait">paused</Tag> : <StateTag state={a.lifecycle} />)}
      actions={
        a &&
        can('member') &&
        a.lifecycle !== 'destroyed' && (
          <>
            {isPaused ? (
              <Button
                kind="main"
                onClick={() =>
                  void act(ok(api.POST('/api/resume', { body: { agent: id } })), 'Resumed')
                }
              >
                Resume
              </Button>
            ) : (
              <Button onClick={() => setPausing(true)}>Pause…</Button>
            )}
            <Button kind="bad" onClick={() => setDestroying(true)}>
              Destroy…
            </Button>
          </>
        )
      }
    >
      <Ready query={query}>
        {(a) => (
          <div className="cols">
            <div className="stack">
              <ToolsPanel agent={a} />
              <LastRuns id={a.id} />
            </div>
            <div className="stack">
              <AgentFacts agent={a} />
              <Knows id={a.id} />
              <BudgetPanel agent={a} />
              <Panel
                title="Settings"
                aside={
                  can('member') && a.lifecycle !== 'destroyed' && <Button onClick={() => setEditing(true)}>Edit</Button>
                }
              >
                <Settings agent={a} />
              </Panel>
            </div>
          </div>
        )}
      </Ready>
      {isEditing && a && <EditDialog agent={a} onClose={() => setEditing(false)} />}
      {isPausing && a && <PauseDialog agent={a} onClose={() => setPausing(false)} />}
      {isDestroying && a && <DestroyDialog agent={a} onClose={() => setDestroying(false)} />}
    </Page>
  );
}

// Settings shows the model and the instructions in words, and the other settings as JSON.
function Settings({ agent }: { agent: Schemas['Agent'] }) {
  const { model, instructions, ...rest } = (agent.config ?? {}) as Record<string, unknown>;
  return (
    <div className="body stack">
      <Facts
        facts={[
          ['Model', typeof model === 'string' ? <Inert key="m" text={model} /> : "the server's default"],
          [
            'Instructions',
            typeof instructions === 'string' ? (
              <span key="i" className="break">
                <Inert text={instructions} />
              </span>
            ) : (
              'none'
            ),
          ],
        ]}
      />
      {Object.keys(rest).length > 0 && <JSONView text={JSON.stringify(rest)} label="Other settings" />}
    </div>
  );
}

function LastRuns({ id }: { id: string }) {
  const query = useLive(
    ['agent-runs', id],
    (signal) => ok(api.GET('/api/runs', { params: { query: { agent: id, limit: 8 } }, signal })),
    { topics: ['runs'] },
  );
  return (
    <Panel
      title="Last runs"
      aside={
        <Link to="/runs" search={{ agent: id }}>
          all
        </Link>
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.runs ?? []).length === 0 ? (
            <Empty title="No runs to show">
              <p>Talk to it in a chat, or give it a schedule or a subscription.</p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Last runs">
              <table className="table">
                <tbody>
                  {(list.runs ?? []).map((r) => (
                    <tr key={r.id}>
                      <td>
                        <StateTag state={r.state} />
                      </td>
                      <td className="break">
                        <Link to="/runs/$id" params={{ id: r.id }}>
                          <Inert
                            text={(r.output || r.message || r.input || r.reason.replaceAll('_', ' ')).slice(0, 200)}
                          />
                        </Link>
                      </td>
                      <td>
                        <Ago time={r.started_at} />
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
  );
}

function BudgetPanel({ agent }: { agent: Schemas['Agent'] }) {
  const { can } = useAccess();
  const [isEditing, setEditing] = useState(false);
  const subject = `agent:${agent.id}`;
  const query = useLive(['budgets'], (signal) => ok(api.GET('/api/budgets', { signal })), {
    topics: ['budgets', 'operations', 'runs'],
  });
  const own = query.data?.budgets?.find((b) => b.subject === subject);
  return (
    <Panel
      title="Budget"
      aside={can('owner') && <Button onClick={() => setEditing(true)}>{own ? 'Change' : 'Set'}</Button>}
    >
      <div className="body">
        <Ready query={query}>
          {() =>
            own ? (
              <BudgetFacts budget={own} />
            ) : (
              <p className="faint small">No limit of its own. The workspace&apos;s budget applies.</p>
            )
          }
        </Ready>
      </div>
      {isEditing && <BudgetDialog subject={subject} name={agent.name} budget={own} onClose={() => setEditing(false)} />}
    </Panel>
  );
}

function AgentFacts({ agent }: { agent: Schemas['Agent'] }) {
  const runtime = useLive(
    ['runtime', agent.id],
    (signal) => ok(api.GET('/api/agents/{agentId}/runtime', { params: { path: { agentId: agent.id } }, signal })),
    { topics: ['runs', 'agents'] },
  );
  const r = runtime.data;
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  return (
    <Panel title="Facts">
      <div className="body">
        <Facts
          facts={[
            ['Now', r && <StateTag key="n" state={r.run_status} />],
            [
              'Run',
              r?.active_run && (
                <Link key="r" to="/runs/$id" params={{ id: r.active_run }}>
                  <Id id={r.active_run} />
                </Link>
              ),
            ],
            ['Waiting wakes', r && r.queued_wakes > 0 && String(r.queued_wakes)],
            ['Failures in a row', r && r.failure_streak > 0 && String(r.failure_streak)],
            ['Last run', r?.last_run_at && <Ago key="l" time={r.last_run_at} />],
            [
              'History',
              <Link key="h" to="/runs" search={{ agent: agent.id }}>
                all runs
              </Link>,
            ],
            ['Kind', agent.kind],
            ['Mode', agent.mode],
            [
              'Categories',
              agent.categories?.length
                ? agent.categories
                    .map((c) => categories.data?.categories?.find((x) => x.id === c)?.name ?? c)
                    .join(', ')
                : 'none',
            ],
            ['Created', <Ago key="c" time={agent.created_at} />],
            [
              'Id',
              <code key="i" className="break">
                {agent.id}
              </code>,
            ],
          ]}
        />
      </div>
    </Panel>
  );
}

