import { useState } from 'react';
import { Link } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useKeys } from '../../app/keyboard';
import { useAccess } from '../../app/session';
import { Dialog } from '../../ui/dialog';
import { Button, Field, Ready, useLive } from '../../ui/kit';
import { formatAmount } from '../../lib/format';
import { Ago, Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { CallBody, CardTitle } from './call-card';
import { subtitle } from './entries';

/**
 * ApprovalCard shows a call that waits for a person, and decides on it. The decision names the hash of the shown card,
 * so that the server refuses it if the card is no longer current.
 */
export function ApprovalCard({ id, onDone }: { id: string; onDone?: () => void }) {
  const query = useLive(['approval', id],
    (signal) => ok(api.GET('/api/approvals/{id}/card', { params: { path: { id } }, signal })), { topics: ['approvals'], id });
  return <section className="panel"><Ready query={query}>{(c) => <Card key={c.shown_hash} card={c} onDone={onDone} />}</Ready></section>;
}

function Card({ card, onDone }: { card: Schemas['ApprovalCard']; onDone?: () => void }) {
  const { approval } = card;
  const { can } = useAccess();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isDenying, setDenying] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isOpen = approval.state === 'pending';
  const mayDecide = isOpen && can('member') && !isBusy;

  const decide = async (decision: 'approve' | 'deny', comment = '') => {
    setBusy(true);
    try {
      await ok(api.POST('/api/approvals/{id}/decision', {
        params: { path: { id: approval.id } }, body: { decision, comment: comment || undefined, shown_hash: card.shown_hash },
      }));
      notify.done(decision === 'approve' ? `Approved ${approval.tool}` : `Denied ${approval.tool}`);
      onDone?.();
    } catch (e) {
      notify.failed(e);
    }
    setBusy(false);
    setDenying(false);
    void queries.invalidateQueries({ predicate: (q) => ['inbox', 'approval'].includes(String(q.queryKey[0])) });
  };
  useKeys('Approval', mayDecide ? [
    { keys: 'a', label: 'Approve', run: () => void decide('approve') },
    { keys: 'd', label: 'Deny with a reason', run: () => setDenying(true) },
  ] : []);

  return (
    <>
      <header><CardTitle tool={approval.tool} args={subtitle(approval.args)} state={approval.state} /></header>
      <CallBody call={approval} isHidden={card.hidden} facts={[
        ['Run', card.run_id && <Link key="r" to="/runs/$id" params={{ id: card.run_id }}><Id id={card.run_id} /></Link>],
        ['Cost so far', formatAmount(card.spent)],
        ['Expires', isOpen && <Ago key="e" time={approval.expires_at} />],
        ['Decided', approval.decided_by && <span key="d"><Inert text={approval.decided_by} />, <Ago time={approval.decided_at} /></span>],
        ['Comment', approval.comment && <Inert key="c" text={approval.comment} />],
      ]} />
      {isOpen ? can('member') && (
        <footer className="sticky-foot">
          <Button kind="main" disabled={isBusy} onClick={() => void decide('approve')}>Approve <kbd>a</kbd></Button>
          <Button disabled={isBusy} onClick={() => setDenying(true)}>Deny… <kbd>d</kbd></Button>
        </footer>
      ) : (
        <footer className="sticky-foot">
          <span className="soft">{LOCKED[approval.state] ?? `This call is ${approval.state}.`}</span>
          {card.replaced_by && <Link className="btn main" to="/approvals/$id" params={{ id: card.replaced_by }}>See what it would do now</Link>}
          <Link className="btn" to="/operations/$id" params={{ id: approval.operation_id }}>See what happened</Link>
        </footer>
      )}
      {isDenying && <Reason title={`Deny ${approval.tool}?`} verb="Deny" help="The agent receives this text."
        onClose={() => setDenying(false)} onGive={(text) => decide('deny', text)} />}
    </>
  );
}

const LOCKED: Record<string, string> = {
  approved: 'This call was approved.',
  denied: 'This call was denied.',
  expired: 'Nobody answered in time. A new call asks again.',
  stale: 'What this call was based on has changed. Nothing ran; a new call asks again.',
  cancelled: 'The run of this call ended. Nothing ran.',
};

/** Reason asks for a text and then acts. */
export function Reason({ title, verb, help, onClose, onGive }: {
  title: string; verb: string; help: string; onClose: () => void; onGive: (text: string) => Promise<void>;
}) {
  const [text, setText] = useState('');
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void onGive(text); }}>
        <Field label="Reason" help={help}>
          {(id) => (
            <textarea id={id} className="input" autoFocus value={text} onChange={(e) => setText(e.target.value)}
              onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void onGive(text); }} />
          )}
        </Field>
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="bad" type="submit">{verb}</Button>
        </div>
      </form>
    </Dialog>
  );
}
