import { Link } from '@tanstack/react-router';
import { api, ok } from '../../api/client';
import { useLive } from '../../ui/kit';
import { Inert } from '../../ui/text';

/** WaitingPlans lists the automations whose newest run made a plan that nobody applied, as a group of the inbox. */
export function WaitingPlans() {
  const query = useLive(
    ['waiting-plans'],
    async (signal) => {
      const list = await ok(api.GET('/api/automations', { params: { query: { limit: 100 } }, signal }));
      const active = (list.automations ?? []).filter((a) => a.status !== 'draft').slice(0, 30);
      const newest = await Promise.all(
        active.map((a) =>
          ok(
            api.GET('/api/automations/{id}/runs', {
              params: { path: { id: a.agent_id }, query: { limit: 1 } },
              signal,
            }),
          ),
        ),
      );
      return active.filter((_, i) => {
        const r = newest[i]?.runs?.[0];
        return r?.script.type === 'dry' && r.run?.state === 'completed' && (r.script.progress.planned ?? 0) > 0;
      });
    },
    { topics: ['automations', 'runs'] },
  );
  if (!query.data?.length) return null;
  return (
    <section aria-label="Plans to apply">
      <h2>
        Plans to apply <span className="num">{query.data.length}</span>
      </h2>
      <ul>
        {query.data.map((a) => (
          <li key={a.agent_id} className="entry">
            <Link className="entry-open" to="/automations/$id" params={{ id: a.agent_id }}>
              <span className="strong">
                <Inert text={a.name} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
