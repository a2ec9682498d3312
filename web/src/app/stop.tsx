import { useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../api/client';
import { Button, Field } from '../ui/kit';
import { Dialog } from '../ui/dialog';
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

const some = (n: number, one: string, many: string) => `${n >= 100 ? '100 or more' : n} ${n === 1 ? one : many}`;

/** StopButton stops all agents of the workspace. It is visible on every screen. */
export function StopButton() {
  const { can } = useAccess();
  const status = useStatus();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [reason, setReason] = useState('');
  const work = useOpenWork(isOpen);
  if (status.data?.workspace.stopped_at || !can('member')) return null;
  const stop = async () => {
    try {
      await ok(api.POST('/api/stop', { body: { reason } }));
      setOpen(false);
      notify.done('All agents are stopped');
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ queryKey: ['status'] });
  };
  return (
    <>
      <Button kind="bad" onClick={() => setOpen(true)} title="Stop all agents of this workspace">Stop all</Button>
      {isOpen && (
        <Dialog title="Stop all agents?" onClose={() => setOpen(false)}>
          <p>No agent of this workspace acts until you resume. Calls that were already sent cannot be recalled.</p>
          {work.data && (
            <p className="soft">
              This holds {some(work.data.running, 'running run', 'running runs')},{' '}
              {some(work.data.parked, 'run that waits', 'runs that wait')} and{' '}
              {some(work.data.waiting, 'approved call', 'approved calls')} that did not start yet.
            </p>
          )}
          <Field label="Reason (shown to everyone)">
            {(id) => (
              <input id={id} className="input" autoFocus value={reason} onChange={(e) => setReason(e.target.value)} />
            )}
          </Field>
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
        {work.data &&
          !hold &&
          'Held: ' +
            some(work.data.running + work.data.parked, 'run', 'runs') +
            ', ' +
            some(work.data.waiting, 'approved call', 'approved calls') +
            '.'}
      </div>
      {can(hold ? 'owner' : 'member') && <Button kind="main" onClick={() => void resume()}>Resume</Button>}
    </div>
  );
}
