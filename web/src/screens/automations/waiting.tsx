import type { ReactNode } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok } from '../../api/client';
import { useLive } from '../../ui/kit';
import { Inert } from '../../ui/text';

/**
 * WaitingPlans leads to the automations whose newest run made a plan that nobody applied, below its children. A plan that
 * arrives later moves nothing under the pointer.
 */
export function WaitingPlans({ children }: { children: ReactNode }) {
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
  return (
    <>
      {children}
      {query.data?.length ? (
        <section className="panel" aria-label="Plans to apply">
          <ul className="body stack tight">
            {query.data.map((a) => (
              <li key={a.agent_id}>
                <Link to="/automations/$id" params={{ id: a.agent_id }}>
                  <Inert text={a.name} /> has a plan to apply
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}
