import { useState, type ReactNode } from 'react';
import { Dialog } from './dialog';
import { Button } from './kit';
import { Failure } from './states';
import { useNotify } from './toast';

/** Question is what a person is asked before something is done that is hard to take back. */
export interface Question {
  title: string;
  /** action is the word on the button that does it. */
  action: string;
  tone?: 'bad' | 'main';
  /** done is the notice afterwards, if one is needed. */
  done?: string;
  /** run does it. If it fails, the dialog stays open and says why. */
  run: () => Promise<unknown>;
}

/** Confirm asks a question. Cancel has the focus, so that a hasty Enter changes nothing. */
export function Confirm({ title, action, tone = 'bad', done, run, onClose, children }: Question & {
  onClose: () => void;
  children?: ReactNode;
}) {
  const notify = useNotify();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const confirm = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await run();
      if (done) notify.done(done);
      onClose();
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error !== null && <Failure error={error} />}
      <div className="actions">
        <Button autoFocus onClick={onClose}>
          Cancel
        </Button>
        <Button kind={tone} disabled={isBusy} onClick={() => void confirm()}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}

/** ConfirmButton is a button that asks before it acts. Its label ends in an ellipsis. The children say what it means. */
export function ConfirmButton({ label, kind = 'quiet', children, ...question }: Omit<Question, 'action'> & {
  label: string;
  kind?: 'quiet' | 'bad' | 'main' | '';
  action?: string;
  children?: ReactNode;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind={kind} onClick={() => setOpen(true)}>
        {label}…
      </Button>
      {isOpen && (
        <Confirm action={label} {...question} onClose={() => setOpen(false)}>
          {children}
        </Confirm>
      )}
    </>
  );
}
