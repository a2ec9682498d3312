import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../../api/client';
import { some } from '../../lib/format';
import { Dialog } from '../../ui/dialog';
import { Button, Ready, useLive } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { Inert } from '../../ui/text';
import { subtitle } from '../inbox/entries';

/** UndoButton undoes a run after it has shown what that does. It is absent if the run changed nothing. */
export function UndoButton({ id }: { id: string }) {
  const [isOpen, setOpen] = useState(false);
  const calls = useLive(
    ['run-calls', id],
    (signal) => ok(api.GET('/api/operations', { params: { query: { run: id, limit: 100 } }, signal })),
    {},
  );
  const changed = (calls.data?.operations ?? []).some((o) => o.effect !== 'read' && o.state !== 'denied');
  if (calls.data && !changed && !calls.data.next_cursor) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>Undo run…</Button>
      {isOpen && <UndoDialog id={id} onClose={() => setOpen(false)} />}
    </>
  );
}

// UndoDialog lists what an undo of the run does, in its order, and what cannot be undone; then it undoes.
function UndoDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [done, setDone] = useState<Schemas['UndoPlan'][] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const plan = useLive(
    ['run-undo', id],
    (signal) => ok(api.GET('/api/runs/{id}/undo', { params: { path: { id } }, signal })),
    {},
  );
  const steps = plan.data?.steps ?? [];
  const possible = steps.filter((s) => s.can_undo);
  const rest = steps.filter((s) => !s.can_undo);
  const undo = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      setDone((await ok(api.POST('/api/runs/{id}/undo', { params: { path: { id } } }))).steps ?? []);
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  const title = done ? 'What was undone' : !plan.data || possible.length > 0 ? 'Undo this run?' : 'Nothing to undo';
  return (
    <Dialog title={title} wide onClose={onClose}>
      {done ? (
        <UndoList label="What came of it" steps={done} />
      ) : (
        <Ready query={plan}>
          {() => (
            <>
              {steps.length === 0 && <p>This run changed nothing.</p>}
              {possible.length > 0 && (
                <>
                  <p className="soft">The latest change is undone first. Each undo is checked like any other call.</p>
                  <UndoList label="Will be undone, in this order" steps={possible} />
                </>
              )}
              {rest.length > 0 && <UndoList label="Cannot be undone" steps={rest} />}
            </>
          )}
        </Ready>
      )}
      {error !== null && <Failure error={error} />}
      <div className="actions">
        <Button key={done ? 'close' : 'cancel'} autoFocus={done !== null} onClick={onClose}>
          {done || possible.length === 0 ? 'Close' : 'Cancel'}
        </Button>
        {!done && possible.length > 0 && (
          <Button kind="main" disabled={isBusy} onClick={() => void undo()}>
            Undo {some(possible.length, 'change')}
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function UndoList({ label, steps }: { label: string; steps: Schemas['UndoPlan'][] }) {
  return (
    <section aria-label={label}>
      <h3>{label}</h3>
      <ol className="undo-steps">
        {steps.slice(0, 500).map((s) => (
          <li key={s.operation_id}>
            <Link className="mono" to="/operations/$id" params={{ id: s.undone_by ?? s.operation_id }}>
              {s.tool}
            </Link>
            <span className="soft break">
              <Inert text={subtitle(s.undo ? JSON.stringify(s.undo.args) : undefined)} />
            </span>
            {s.why && (
              <span className="soft break">
                <Inert text={s.why} />
              </span>
            )}
          </li>
        ))}
      </ol>
      {steps.length > 500 && <p className="small soft">and {steps.length - 500} more</p>}
    </section>
  );
}
