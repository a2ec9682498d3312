import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { useRefresh } from '../app/act';
import { useAgentName } from '../app/data';
import { useAccess } from '../app/session';
import { some } from '../lib/format';
import { ConfirmButton } from '../ui/confirm';
import { Button, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { SplitDiff } from '../ui/split-diff';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';

/** BranchesScreen lists the git branches of conversations and runs, with their changes. */
export function BranchesScreen() {
  const query = useLive(
    ['branches'],
    (signal) => ok(api.GET('/api/branches', { params: { query: { limit: 100 } }, signal })),
    { topics: ['branches'] },
  );
  return (
    <Page title="Branches">
      <Ready query={query}>
        {(list) =>
          (list.branches ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No branches">
                <p>
                  An agent that works on a project gets its own git branch. Add a project with{' '}
                  <code>reeve projects create</code>.
                </p>
              </Empty>
            </div>
          ) : (
            <>
              {(list.branches ?? []).map((b) => (
                <BranchCard key={b.id} branch={b} />
              ))}
            </>
          )
        }
      </Ready>
    </Page>
  );
}

// Subject links to the conversation or run that a branch belongs to.
function Subject({ branch }: { branch: Schemas['Branch'] }) {
  const id = branch.subject;
  const isChat = id.startsWith('conv_');
  const chat = useLive(
    ['conversation-title', id],
    (signal) => ok(api.GET('/api/conversations/{id}', { params: { path: { id } }, signal })),
    { topics: ['conversations'], id },
    { enabled: isChat },
  );
  const nameOf = useAgentName();
  if (isChat)
    return (
      <>
        Conversation{' '}
        <Link to="/chat/$id" params={{ id }}>
          <Inert text={chat.data?.title || 'without a title'} />
        </Link>
      </>
    );
  if (id.startsWith('run_'))
    return (
      <Link to="/runs/$id" params={{ id }}>
        Run
      </Link>
    );
  if (id.startsWith('agt_'))
    return (
      <>
        {branch.kind === 'automation' ? 'Automation' : 'Agent'}{' '}
        <Link to={branch.kind === 'automation' ? '/automations/$id' : '/agents/$id'} params={{ id }}>
          <Inert text={nameOf(id)} />
        </Link>
      </>
    );
  return <Inert text={id} />;
}

function useDiff(id: string, enabled = true) {
  return useLive(
    ['branch-diff', id],
    (signal) => ok(api.GET('/api/branches/{id}/diff', { params: { path: { id } }, signal })),
    { topics: ['branches'], id },
    { enabled },
  );
}

// Changed says how much a branch changes.
function Changed({ id }: { id: string }) {
  const query = useDiff(id);
  return (
    <Ready query={query}>
      {(d) => {
        const files = d.files ?? [];
        const sum = (of: (f: Schemas['FileChange']) => number) => files.reduce((n, f) => n + of(f), 0);
        if (files.length === 0) return <p>The branch changes nothing.</p>;
        return (
          <p>
            {some(files.length, 'file')}, <span className="plus">+{sum((f) => f.added)}</span>{' '}
            <span className="minus">−{sum((f) => f.removed)}</span>
          </p>
        );
      }}
    </Ready>
  );
}

function BranchCard({ branch }: { branch: Schemas['Branch'] }) {
  const { can } = useAccess();
  const refresh = useRefresh('branches', 'branch-diff');
  const [isOpen, setOpen] = useState(false);
  const params = { path: { id: branch.id } };
  const isMerged = branch.state === 'ready' && Boolean(branch.merged_head) && branch.merged_head === branch.head;
  const diff = useDiff(branch.id, isOpen);
  const projects = useLive(['projects'], (signal) => ok(api.GET('/api/projects', { signal })), {});
  const into = projects.data?.projects?.find((p) => p.id === branch.project_id)?.default_branch ?? 'the default branch';
  return (
    <Panel
      title={
        <>
          <Inert text={branch.project} />{' '}
          <span className="mono soft">
            <Inert text={branch.name} />
          </span>
        </>
      }
      aside={
        isMerged ? (
          <Tag tone="ok">merged</Tag>
        ) : branch.state === 'ready' ? (
          <Tag tone="wait">not merged</Tag>
        ) : (
          <StateTag state={branch.state} />
        )
      }
      footer={
        <>
          <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide changes' : 'Show changes'}
          </Button>
          {branch.state === 'ready' && can('member') && (
            <>
              {!isMerged && (
                <ConfirmButton
                  label="Merge"
                  kind="main"
                  tone="main"
                  title={`Merge into ${into} of ${branch.project}?`}
                  done={`Merged into ${into} of ${branch.project}`}
                  run={() => ok(api.POST('/api/branches/{id}/merge', { params, body: {} })).finally(refresh)}
                >
                  <Changed id={branch.id} />
                </ConfirmButton>
              )}
              <ConfirmButton
                label="Discard"
                title="Discard this branch?"
                done="Discarded"
                run={() => ok(api.POST('/api/branches/{id}/discard', { params })).finally(refresh)}
              >
                <p>
                  {isMerged
                    ? 'What was merged stays. The agent starts a new branch when it works again.'
                    : "The agent's changes are lost."}
                </p>
              </ConfirmButton>
            </>
          )}
        </>
      }
    >
      <div className="body stack">
        <p className="soft">
          <Subject branch={branch} /> · <Ago time={branch.updated_at} />
        </p>
        {isMerged && branch.merged_at && (
          <p className="soft">
            Merged into {into} by <Inert text={branch.merged_by || 'a person'} />, <Ago time={branch.merged_at} />
          </p>
        )}
        {isOpen && (
          <Ready query={diff}>
            {(d) => (
              <>
                {d.patch ? (
                  <SplitDiff patch={d.patch} />
                ) : (
                  <p className="faint">{isMerged ? 'Everything is merged.' : 'No changes.'}</p>
                )}
                {d.truncated && <p className="soft">The rest is too long to show. Use git on the branch.</p>}
              </>
            )}
          </Ready>
        )}
      </div>
    </Panel>
  );
}
