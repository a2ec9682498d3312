import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../api/client';
import { useAccess } from '../app/session';
import { Dialog } from '../ui/dialog';
import { Button, Page, Panel, Ready, StateTag, Tag, useLive } from '../ui/kit';
import { SplitDiff } from '../ui/split-diff';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';

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
function Subject({ id }: { id: string }) {
  if (id.startsWith('conv_'))
    return (
      <Link to="/chat/$id" params={{ id }}>
        of a conversation
      </Link>
    );
  if (id.startsWith('run_'))
    return (
      <Link to="/runs/$id" params={{ id }}>
        of a run
      </Link>
    );
  return <Inert text={id} />;
}

function BranchCard({ branch }: { branch: Schemas['Branch'] }) {
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [isDiscarding, setDiscarding] = useState(false);
  const params = { path: { id: branch.id } };
  const isMerged = branch.state === 'ready' && Boolean(branch.merged) && branch.merged === branch.head;
  const diff = useLive(
    ['branch-diff', branch.id],
    (signal) => ok(api.GET('/api/branches/{id}/diff', { params, signal })),
    { topics: ['branches'], id: branch.id },
    { enabled: isOpen },
  );
  const act = async (request: Promise<unknown>, text: string) => {
    setDiscarding(false);
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ queryKey: ['branches'] });
  };
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
      aside={isMerged ? <Tag tone="ok">merged</Tag> : <StateTag state={branch.state} />}
      footer={
        <>
          <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide changes' : 'Show changes'}
          </Button>
          {branch.state === 'ready' && can('member') && (
            <>
              {!isMerged && (
                <Button
                  kind="main"
                  onClick={() => void act(ok(api.POST('/api/branches/{id}/merge', { params, body: {} })), 'Merged')}
                >
                  Merge
                </Button>
              )}
              <Button kind="quiet" onClick={() => setDiscarding(true)}>
                Discard…
              </Button>
            </>
          )}
        </>
      }
    >
      <div className="body stack">
        <p className="soft">
          <Subject id={branch.subject} /> · <Ago time={branch.updated_at} />
        </p>
        {isOpen && (
          <Ready query={diff}>
            {(d) => (
              <>
                {d.patch ? <SplitDiff patch={d.patch} /> : <p className="faint">No changes.</p>}
                {d.truncated && <p className="soft">The rest is too long to show. Use git on the branch.</p>}
              </>
            )}
          </Ready>
        )}
      </div>
      {isDiscarding && (
        <Dialog title="Discard this branch?" onClose={() => setDiscarding(false)}>
          <p>Its commits are no longer reachable from any branch.</p>
          <div className="actions">
            <Button onClick={() => setDiscarding(false)}>Cancel</Button>
            <Button
              kind="bad"
              onClick={() => void act(ok(api.POST('/api/branches/{id}/discard', { params })), 'Discarded')}
            >
              Discard
            </Button>
          </div>
        </Dialog>
      )}
    </Panel>
  );
}
