import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../api/client';
import { useAgents } from '../app/data';
import { useAccess } from '../app/session';
import { Button, Page, Ready, useLive } from '../ui/kit';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';

/** SubscriptionsScreen lists the changes that agents watch. */
export function SubscriptionsScreen() {
  const { can } = useAccess();
  const agents = useAgents();
  const notify = useNotify();
  const queries = useQueryClient();
  const ids = agents.data?.agents?.map((a) => a.id) ?? [];
  const query = useLive(
    ['subscriptions', ids],
    async (signal) => {
      const lists = await Promise.all(
        ids.map((agentId) =>
          ok(api.GET('/api/agents/{agentId}/subscriptions', { params: { path: { agentId } }, signal })),
        ),
      );
      return lists.flatMap((l) => l.subscriptions ?? []);
    },
    { topics: ['subscriptions'] },
    { enabled: agents.isSuccess },
  );
  const remove = async (s: Schemas['Subscription']) => {
    try {
      await ok(api.DELETE('/api/subscriptions/{id}', { params: { path: { id: s.id } } }));
      notify.done('Deleted');
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ queryKey: ['subscriptions'] });
  };
  const nameOf = (id: string) => agents.data?.agents?.find((a) => a.id === id)?.name ?? id;
  return (
    <Page title="Subscriptions">
      <Ready query={query}>
        {(list) =>
          list.length === 0 ? (
            <div className="panel">
              <Empty title="No agent watches anything">
                <p>
                  Subscribe an agent to changes with <code>reeve subscriptions create</code>.
                </p>
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Subscriptions">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Agent</th>
                    <th scope="col">Watches</th>
                    <th scope="col">When</th>
                    <th scope="col">Since</th>
                    <th scope="col">
                      <span className="hide">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((s) => (
                    <tr key={s.id}>
                      <td>
                        <Link to="/agents/$id" params={{ id: s.agent_id }}>
                          <Inert text={nameOf(s.agent_id)} />
                        </Link>
                      </td>
                      <td className="mono">
                        {s.token.class} <Inert text={s.token.name} />
                      </td>
                      <td className="mono break">{s.predicate ? <Inert text={s.predicate} /> : 'always'}</td>
                      <td>
                        <Ago time={s.created_at} />
                      </td>
                      <td>
                        {can('member') && (
                          <Button kind="quiet" onClick={() => void remove(s)}>
                            Delete
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
    </Page>
  );
}
