import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../api/client';
import { some } from '../lib/format';
import { Button, Field } from '../ui/kit';
import { Dialog } from '../ui/dialog';
import { Failure } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';
import { useLive } from '../ui/kit';
import { useStatus } from './data';
import { useAccess } from './session';

function useOpenWork(enabled: boolean) {
  const count = (state: 'running' | 'parked') =>
    ok(api.GET('/api/runs', { params: { query: { state, limit: 100 } } })).then((list) => list.runs?.length ?? 0);
  const prepared = () => ok(api.GET('/api/operations', { params: { query: { state: 'prepared', limit: 100 } } }))
    .then((list) => list.operations?.length ?? 0);
  return useLive(['open-work'], async () => {
    const [running, parked, waiting] = await Promise.all([count('running'), count('parked'), prepared()]);
    return { running, parked, waiting };
  }, { topics: ['runs', 'operations', 'control'] }, { enabled });
}

type Work = { running: number; parked: number; waiting: number };

// holds says what a stop holds, without what is not there.
function holds(work: Work): string {
  const parts = [
    work.running > 0 && some(work.running, 'running run', 'running runs', 100),
    work.parked > 0 && some(work.parked, 'run that waits', 'runs that wait', 100),
    work.waiting > 0 && some(work.waiting, 'approved call that did not start yet', 'approved calls that did not start yet', 100),
  ].filter((part) => part !== false);
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

/** StopButton stops all agents of the workspace. It is visible on every screen. */
export function StopButton() {
  const { can } = useAccess();
  const status = useStatus();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const [error, setError] = useState<unknown>(null);
  const work = useOpenWork(isOpen);
  if (status.data?.workspace.stopped_at || !can('member')) return null;
  const stop = async () => {
    try {
      await ok(api.POST('/api/stop', { body: { reason } }));
      setOpen(false);
      notify.done('All agents are stopped');
    } catch (e) {
      setError(e);
    }
    void queries.invalidateQueries({ queryKey: ['status'] });
  };
  return (
    <>
      <Button kind="bad" onClick={() => { setError(null); setOpen(true); }} title="Stop all agents of this workspace">Stop all</Button>
      {isOpen && (
        <Dialog title="Stop all agents?" onClose={() => setOpen(false)}>
          <p>No agent of this workspace acts until you resume. Calls that were already sent cannot be recalled.</p>
          {work.data && (
            <p className="soft">{holds(work.data) ? `This holds ${holds(work.data)}.` : 'This holds nothing: no agent works right now.'}</p>
          )}
          <Field label="Reason (shown to everyone)" name="reason">
            {(id) => (
              <input id={id} className="input" autoFocus value={reason} onChange={(e) => setReason(e.target.value)} />
            )}
          </Field>
          {error !== null && <Failure error={error} />}
          <div className="actions">
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button kind="bad" onClick={() => void stop()}>Stop all agents</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** StopBanner says that agents are stopped or the server is held, what that holds, and resumes. */
export function StopBanner() {
  const { can } = useAccess();
  const status = useStatus();
  const notify = useNotify();
  const queries = useQueryClient();
  const stoppedAt = status.data?.workspace.stopped_at;
  const hold = status.data?.hold;
  const work = useOpenWork(Boolean(stoppedAt));
  if (!stoppedAt && !hold) return null;
  const resume = async () => {
    try {
      await ok(api.POST('/api/resume', { body: {} }));
      notify.done('Agents may act again');
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries();
  };
  const reason = status.data?.workspace.stop_reason;
  return (
    <div className="banner panel" role="alert">
      <div className="grow">
        {hold ? (
          <>
            <strong>The server is held:</strong> <Inert text={hold.reason} />. Nothing runs or changes until an owner
            resumes.
          </>
        ) : (
          <>
            <strong>All agents are stopped</strong> since <Ago time={stoppedAt} />
            {reason && (
              <>
                : <Inert text={reason} />
              </>
            )}
            .
          </>
        )}{' '}
        {work.data && !hold && holds(work.data) && `Held: ${holds(work.data)}.`}
      </div>
      {can(hold ? 'owner' : 'member') && <Button kind="main" onClick={() => void resume()}>Resume</Button>}
    </div>
  );
}
