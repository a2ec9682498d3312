import { useState } from 'react';
import { Link, useParams } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { useAgentName } from '../../app/data';
import { useAccess } from '../../app/session';
import { PreviewView } from '../../ui/diff';
import { ArgsView } from '../../ui/json';
import { Button, Page, Panel, Ready, StateTag, useLive } from '../../ui/kit';
import { Ago, Inert } from '../../ui/text';
import { ApprovalCard } from './approval';
import { subtitle } from './entries';
import { useDecision } from './other-cards';

/** ApprovalScreen shows one approval; links in notifications lead here. */
export function ApprovalScreen() {
  const { id } = useParams({ from: '/approvals/$id' });
  return (
    <Page title="Approval" up={<Link to="/inbox">← Inbox</Link>}>
      <ApprovalCard id={id} />
    </Page>
  );
}

/** ChangeSetScreen shows the proposals of one run, and decides on some or all. */
export function ChangeSetScreen() {
  const { id } = useParams({ from: '/change-sets/$id' });
  const { can } = useAccess();
  const nameOf = useAgentName();
  const { isBusy, decide } = useDecision();
  const [left, setLeft] = useState<Set<string>>(new Set());
  const [results, setResults] = useState<Map<string, Schemas['ItemDecision']>>(new Map());
  const query = useLive(
    ['change-set', id],
    (signal) => ok(api.GET('/api/change-sets/{id}', { params: { path: { id } }, signal })),
    { topics: ['proposals'] },
  );
  const pending = query.data?.items?.filter((p) => p.state === 'pending') ?? [];
  const chosen = pending.filter((p) => !left.has(p.id)).map((p) => p.id);
  const act = (path: '/api/change-sets/{id}/accept' | '/api/change-sets/{id}/reject', text: string) =>
    decide(async () => {
      const answer = await ok(api.POST(path, { params: { path: { id } }, body: { items: chosen } }));
      setResults(new Map((answer.items ?? []).map((r) => [r.id, r])));
    }, text);
  return (
    <Page
      title="Change set"
      up={<Link to="/inbox">← Inbox</Link>}
      actions={
        can('member') &&
        pending.length > 0 && (
          <>
            <Button
              kind="main"
              disabled={isBusy || chosen.length === 0}
              onClick={() => void act('/api/change-sets/{id}/accept', 'Accepted')}
            >
              Accept {chosen.length}
            </Button>
            <Button
              disabled={isBusy || chosen.length === 0}
              onClick={() => void act('/api/change-sets/{id}/reject', 'Rejected')}
            >
              Reject {chosen.length}
            </Button>
          </>
        )
      }
    >
      <Ready query={query}>
        {(set) => (
          <>
            <p className="soft">
              Proposed by <Inert text={nameOf(set.agent_id)} />, <Ago time={set.created_at} />
            </p>
            {(set.items ?? []).map((p) => (
              <Panel
                key={p.id}
                title={
                  <>
                    {p.tool}{' '}
                    <span className="soft">
                      <Inert text={subtitle(p.args)} />
                    </span>
                  </>
                }
                aside={
                  <>
                    {p.state === 'pending' && can('member') && (
                      <label className="row small">
                        <input
                          type="checkbox"
                          checked={!left.has(p.id)}
                          onChange={() =>
                            setLeft((old) => {
                              const next = new Set(old);
                              if (!next.delete(p.id)) next.add(p.id);
                              return next;
                            })
                          }
                        />{' '}
                        include
                      </label>
                    )}
                    <StateTag state={p.state} />
                  </>
                }
              >
                <div className="body stack">
                  {p.reason && (
                    <p>
                      <Inert text={p.reason} />
                    </p>
                  )}
                  {(results.get(p.id)?.message ?? p.message) && (
                    <p className="minus">
                      <Inert text={results.get(p.id)?.message ?? p.message ?? ''} />
                    </p>
                  )}
                  {p.preview ? <PreviewView preview={p.preview} /> : <ArgsView args={p.args} />}
                </div>
              </Panel>
            ))}
          </>
        )}
      </Ready>
    </Page>
  );
}
