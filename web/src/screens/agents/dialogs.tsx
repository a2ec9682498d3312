import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { some } from '../../lib/format';
import { Confirm } from '../../ui/confirm';
import { Ready, useLive } from '../../ui/kit';

// useOpenWork reads what an agent has open.
function useOpenWork(id: string) {
  return useLive(
    ['open-work-of', id],
    async (signal) => {
      const path = { agentId: id };
      const [runtime, schedules, subscriptions, approvals] = await Promise.all([
        ok(api.GET('/api/agents/{agentId}/runtime', { params: { path }, signal })),
        ok(api.GET('/api/schedules', { params: { query: { agent: id, limit: 100 } }, signal })),
        ok(api.GET('/api/agents/{agentId}/subscriptions', { params: { path }, signal })),
        ok(api.GET('/api/approvals', { params: { query: { state: 'pending', limit: 500 } }, signal })),
      ]);
      const waiting = approvals.approvals?.filter((x) => x.agent_id === id).length ?? 0;
      const counts: [number, string][] = [
        [runtime.open_runs, some(runtime.open_runs, 'open run')],
        [runtime.queued_wakes, some(runtime.queued_wakes, 'waiting wake')],
        [schedules.total, some(schedules.total, 'schedule')],
        [subscriptions.subscriptions?.length ?? 0, some(subscriptions.subscriptions?.length ?? 0, 'subscription')],
        [waiting, some(waiting, 'call that waits for approval', 'calls that wait for approval')],
      ];
      return counts.filter(([n]) => n > 0).map(([, text]) => text);
    },
    { topics: ['runs', 'approvals', 'schedules', 'subscriptions'] },
  );
}

function OpenWork({ id, verb }: { id: string; verb: string }) {
  const query = useOpenWork(id);
  return (
    <Ready query={query}>
      {(list) =>
        list.length === 0 ? (
          <p className="soft">Nothing of it is open.</p>
        ) : (
          <div className="md">
            <p>This {verb}:</p>
            <ul>
              {list.map((what) => (
                <li key={what}>{what}</li>
              ))}
            </ul>
          </div>
        )
      }
    </Ready>
  );
}

interface Props {
  agent: Schemas['Agent'];
  onClose: () => void;
}

/** PauseDialog asks before an agent is paused, and says what that holds. */
export function PauseDialog({ agent, onClose }: Props) {
  const refresh = useRefresh('agent', 'agents', 'runtime');
  return (
    <Confirm
      title={`Pause ${agent.name}?`}
      action="Pause"
      tone="main"
      done={`Paused ${agent.name}`}
      run={() => ok(api.POST('/api/stop', { body: { agent: agent.id } })).finally(refresh)}
      onClose={onClose}
    >
      <p>The agent does nothing until you resume it. Calls that were already sent cannot be recalled.</p>
      <OpenWork id={agent.id} verb="holds" />
    </Confirm>
  );
}

/** DestroyDialog asks before an agent is destroyed, and says what that stops. */
export function DestroyDialog({ agent, onClose }: Props) {
  const refresh = useRefresh('agent', 'agents', 'runtime');
  return (
    <Confirm
      title={`Destroy ${agent.name}?`}
      action="Destroy"
      done={`Destroyed ${agent.name}`}
      run={() =>
        ok(
          api.PATCH('/api/agents/{agentId}', {
            params: { path: { agentId: agent.id } },
            body: { lifecycle: 'destroyed' },
          }),
        ).finally(refresh)
      }
      onClose={onClose}
    >
      <p>The agent never acts again. Its history stays, and can still be explained.</p>
      <OpenWork id={agent.id} verb="stops" />
    </Confirm>
  );
}
