import { useState } from 'react';
import { api, ok } from '../../api/client';
import { useAccess } from '../../app/session';
import { Button, Panel, Ready, StateTag, useLive } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';

/** Items lists what a script works on one by one, and starts another attempt or skips. */
export function Items({ id }: { id: string }) {
  const { can } = useAccess();
  const notify = useNotify();
  const [status, setStatus] = useState('');
  const query = useLive(
    ['automation-items', id, status],
    (signal) =>
      ok(
        api.GET('/api/automations/{id}/items', {
          params: { path: { id }, query: { limit: 100, status: (status || undefined) as 'failed' | undefined } },
          signal,
        }),
      ),
    { topics: ['items'] },
  );
  const act = async (
    path: '/api/automations/{id}/items/reprocess' | '/api/automations/{id}/items/skip',
    item: string,
  ) => {
    try {
      await ok(api.POST(path, { params: { path: { id } }, body: { item } }));
      notify.done(path.endsWith('skip') ? 'Skipped' : 'A new attempt starts');
    } catch (e) {
      notify.failed(e);
    }
    void query.refetch();
  };
  return (
    <Panel
      title={
        <>
          Items <span className="soft num">{query.data?.total}</span>
        </>
      }
      aside={
        <select
          className="input"
          aria-label="State of items"
          value={status}
          onChange={(e) => setStatus(e.target.value)}
        >
          <option value="">All</option>
          {['processing', 'done', 'failed', 'needs_attention', 'skipped'].map((s) => (
            <option key={s} value={s}>
              {s.replace('_', ' ')}
            </option>
          ))}
        </select>
      }
    >
      <Ready query={query}>
        {(list) =>
          (list.items ?? []).length === 0 ? (
            <Empty title="No items">
              <p>
                {status
                  ? 'No item has this state. Choose another.'
                  : 'A script tracks items with Items.withItem. They appear when it runs.'}
              </p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Items">
              <table className="table">
                <tbody>
                  {(list.items ?? []).map((i) => (
                    <tr key={i.id}>
                      <td>
                        <StateTag state={i.state} />
                      </td>
                      <td className="break">
                        <Inert text={i.title || i.id} />
                        {i.message && (
                          <div className="minus small">
                            <Inert text={i.message} />
                          </div>
                        )}
                      </td>
                      <td className="num">attempt {i.attempt}</td>
                      <td>
                        <Ago time={i.updated_at} />
                      </td>
                      <td>
                        {can('member') && (
                          <span className="row">
                            <Button
                              kind="quiet"
                              onClick={() => void act('/api/automations/{id}/items/reprocess', i.id)}
                            >
                              Reprocess
                            </Button>
                            {i.state !== 'done' && (
                              <Button kind="quiet" onClick={() => void act('/api/automations/{id}/items/skip', i.id)}>
                                Skip
                              </Button>
                            )}
                          </span>
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
    </Panel>
  );
}
