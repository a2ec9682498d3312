import { Link, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../../api/client';
import { useAccess } from '../../app/session';
import { some } from '../../lib/format';
import { Button, Page, Ready, StateTag, Tag, useLive } from '../../ui/kit';
import { Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { Items } from './items';
import { Runs } from './plans';
import { Versions } from './script';

/** AutomationScreen shows an automation: runs, plans, items, script versions. */
export function AutomationScreen() {
  const { id } = useParams({ from: '/automations/$id' });
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const query = useLive(
    ['automation', id],
    (signal) => ok(api.GET('/api/automations/{id}', { params: { path: { id } }, signal })),
    { topics: ['automations', 'runs', 'items'] },
  );
  const a = query.data;
  const act = async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith('automation') });
  };
  const params = { path: { id } };
  return (
    <Page
      up={<Link to="/automations">Automations</Link>}
      title={a ? <Inert text={a.name} /> : 'Automation'}
      tag={
        a && (
          <>
            <StateTag state={a.status} />
            {a.version && <Tag>version {a.version}</Tag>}
          </>
        )
      }
      actions={
        a &&
        can('member') && (
          <>
            <Button
              kind="main"
              onClick={() =>
                void act(
                  ok(api.POST('/api/automations/{id}/runs', { params, body: { type: 'dry' } })),
                  'Planning',
                )
              }
            >
              Plan
            </Button>
            <Button
              onClick={() =>
                void act(
                  ok(api.POST('/api/automations/{id}/runs', { params, body: { type: 'production' } })),
                  'A run started',
                )
              }
            >
              Run
            </Button>
            {a.status === 'active' ? (
              <Button onClick={() => void act(ok(api.POST('/api/automations/{id}/pause', { params })), 'Paused')}>
                Pause
              </Button>
            ) : (
              <Button onClick={() => void act(ok(api.POST('/api/automations/{id}/resume', { params })), 'Resumed')}>
                Resume
              </Button>
            )}
          </>
        )
      }
    >
      <Ready query={query}>
        {(a) => (
          <>
            {a.failure?.message && (
              <div className="state error" role="alert">
                <h2>
                  <Inert text={a.failure.message} />
                </h2>
                <p className="small">
                  {a.failure.class} failure{a.failure.repairs ? `, ${some(a.failure.repairs, 'repair')}` : ''}
                  {a.failure.run_id && (
                    <>
                      {' '}
                      in{' '}
                      <Link to="/runs/$id" params={{ id: a.failure.run_id }}>
                        run <Id id={a.failure.run_id} />
                      </Link>
                    </>
                  )}
                </p>
              </div>
            )}
            <Runs
              id={id}
              onApply={(run) =>
                act(
                  ok(api.POST('/api/plans/{id}/apply', { params: { path: { id: run } } })),
                  'The plan is being applied',
                )
              }
            />
            <Items id={id} />
            <Versions
              id={id}
              onActivate={(version) =>
                act(
                  ok(api.POST('/api/automations/{id}/activate', { params, body: { version } })),
                  `Version ${version} is active`,
                )
              }
            />
          </>
        )}
      </Ready>
    </Page>
  );
}
