import { useEffect, useRef, useState, type ReactNode, type RefObject } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from '../../api/client';
import { useTools } from '../../app/data';
import { useKeys } from '../../app/keyboard';
import { useAccess } from '../../app/session';
import { useSettled } from '../../app/settled';
import { Dialog } from '../../ui/dialog';
import { CompareView } from '../../ui/diff';
import { Button, Field, Ready, Tag, useLive } from '../../ui/kit';
import { SchemaForm } from '../../ui/schema-form';
import { Failure, Loading } from '../../ui/states';
import { prettyJSON } from '../../lib/diff';
import { formatAmount } from '../../lib/format';
import { sentence } from '../../lib/problem';
import { Ago, Id, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { CallBody, CardTitle, HIDDEN } from './call-card';
import { subtitle } from './entries';

/** BASE_TOPICS are the topics of changes after which a waiting call may do something else. */
export const BASE_TOPICS = ['operations', 'tools', 'agents'];

/**
 * ApprovalCard shows a call that waits for a person, and decides on it. The decision names the hash of the shown card,
 * so that the server refuses it if the card is no longer current.
 */
export function ApprovalCard({
  id,
  onDone,
  onReplaced,
}: {
  id: string;
  onDone?: () => void;
  onReplaced?: (id: string) => void;
}) {
  const { can } = useAccess();
  const query = useLive(
    ['approval', id],
    (signal) => ok(api.GET('/api/approvals/{id}/card', { params: { path: { id } }, signal })),
    { topics: ['approvals'], id, also: BASE_TOPICS },
  );
  useReadAt(query.data?.approval.expires_at, query.refetch);
  // The keys belong to the entry, not to its loaded card: the list of keys is complete while the card still loads.
  // A decision needs the card, so keys do nothing before it is shown.
  const actions = useRef<Actions>({});
  const card = query.data;
  useKeys(
    'Approval',
    can('member') && (!card || card.approval.state === 'pending')
      ? [
          ...(card?.stale
            ? []
            : [{ keys: 'a', label: 'Approve', run: () => actions.current.approve?.() }]),
          { keys: 'd', label: 'Deny with a reason', run: () => actions.current.deny?.() },
          ...(card && !card.can_edit
            ? []
            : [{ keys: 'e', label: 'Edit the arguments', run: () => actions.current.edit?.() }]),
        ]
      : [],
  );
  return (
    <section className="panel">
      <Ready query={query}>
        {(c) => <Card card={c} actions={actions} onDone={onDone} onReplaced={onReplaced} />}
      </Ready>
    </section>
  );
}

// useReadAt reads again at a time, such as the end of an approval, if that is within a day.
function useReadAt(time: string | undefined, read: () => unknown) {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const wait = time ? Date.parse(time) - Date.now() : 0;
    if (wait <= 0 || wait > 86_400_000) return;
    const timer = setTimeout(() => latest.current(), wait + 500);
    return () => clearTimeout(timer);
  }, [time]);
}

interface Actions {
  approve?: () => void;
  deny?: () => void;
  edit?: () => void;
}

function Card({
  card,
  actions,
  onDone,
  onReplaced,
}: {
  card: Schemas['ApprovalCard'];
  actions: RefObject<Actions>;
  onDone?: () => void;
  onReplaced?: (id: string) => void;
}) {
  const { approval } = card;
  const { can } = useAccess();
  const navigate = useNavigate();
  const notify = useNotify();
  const queries = useQueryClient();
  const [isDenying, setDenying] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isOpen = approval.state === 'pending';
  const isSettled = useSettled(card.shown_hash);
  const mayDecide = isOpen && can('member') && !isBusy && isSettled;
  const locked = isOpen || isBusy ? undefined : describeLock(approval);

  const decide = async (decision: 'approve' | 'deny', comment = '') => {
    setBusy(true);
    try {
      await ok(
        api.POST('/api/approvals/{id}/decision', {
          params: { path: { id: approval.id } },
          body: { decision, comment: comment || undefined, shown_hash: card.shown_hash },
        }),
      );
      notify.done(decision === 'approve' ? `Approved ${approval.tool}` : `Denied ${approval.tool}`, {
        label: 'See what happened',
        run: () => void navigate({ to: '/operations/$id', params: { id: approval.operation_id } }),
      });
      setDenying(false);
      onDone?.();
    } catch (e) {
      notify.failed(e);
    }
    setBusy(false);
    void queries.invalidateQueries({ predicate: (q) => ['inbox', 'approval'].includes(String(q.queryKey[0])) });
  };
  const previewAgain = async () => {
    setBusy(true);
    try {
      const next = await ok(
        api.POST('/api/approvals/{id}/edit', {
          params: { path: { id: approval.id } },
          body: { shown_hash: card.shown_hash },
        }),
      );
      notify.done('This is what the call would do now');
      if (onReplaced) onReplaced(next.id);
      else await navigate({ to: '/approvals/$id', params: { id: next.id } });
    } catch (e) {
      notify.failed(e);
    }
    setBusy(false);
    void queries.invalidateQueries({ predicate: (q) => ['inbox', 'approval'].includes(String(q.queryKey[0])) });
  };
  useEffect(() => {
    actions.current = mayDecide
      ? {
          approve: () => !card.stale && void decide('approve'),
          deny: () => setDenying(true),
          edit: () => card.can_edit && setEditing(true),
        }
      : {};
    return () => {
      actions.current = {};
    };
  });

  return (
    <>
      <header>
        <CardTitle tool={approval.tool} args={subtitle(approval.args)} state={approval.state} />
      </header>
      {card.stale && (
        <OutOfDate why={card.stale}>
          An approval would run nothing.{!card.can_edit && ' Deny the call, so that it can be made again.'}
        </OutOfDate>
      )}
      {card.proposed && card.proposed.args !== approval.args && (
        <div className="body stack tight">
          <h3>What a person changed</h3>
          <CompareView before={card.proposed.args} after={approval.args} title="Proposed and changed arguments" />
          <p className="small">
            <Link to="/approvals/$id" params={{ id: card.proposed.approval_id }}>
              The call as the agent proposed it
            </Link>
          </p>
        </div>
      )}
      <CallBody
        call={approval}
        isHidden={card.hidden}
        reveal={isOpen ? approval.id : undefined}
        facts={[
          [
            'Undo',
            card.can_undo ? (
              'can be undone afterwards'
            ) : (
              <span key="u" className={card.effect === 'unsafe' ? 'minus' : ''}>
                cannot be undone
              </span>
            ),
          ],
          [
            'Run',
            card.run_id && (
              <Link key="r" to="/runs/$id" params={{ id: card.run_id }}>
                <Id id={card.run_id} />
              </Link>
            ),
          ],
          ['Cost so far', formatAmount(card.spent)],
          ['Expires', isOpen && <Ago key="e" time={approval.expires_at} />],
          [
            'Decided',
            approval.decided_by && (
              <span key="d">
                <Inert text={approval.decided_by} />, <Ago time={approval.decided_at} />
              </span>
            ),
          ],
          ['Comment', approval.comment && <Inert key="c" text={approval.comment} />],
        ]}
      />
      {isOpen ? (
        can('member') && (
          <footer className="sticky-foot">
            {!card.stale ? (
              <Button kind="main" disabled={!mayDecide} onClick={() => void decide('approve')}>
                Approve <kbd>a</kbd>
              </Button>
            ) : (
              card.can_edit && (
                <Button kind="main" disabled={!mayDecide} onClick={() => void previewAgain()}>
                  Preview again
                </Button>
              )
            )}
            <Button disabled={!mayDecide} onClick={() => setDenying(true)}>
              Deny… <kbd>d</kbd>
            </Button>
            {card.can_edit && (
              <Button kind="quiet" disabled={!mayDecide} onClick={() => setEditing(true)}>
                Edit… <kbd>e</kbd>
              </Button>
            )}
          </footer>
        )
      ) : (
        <footer className="sticky-foot">
          <span className="soft">{LOCKED[approval.state] ?? `This call is ${approval.state}.`}</span>
          {card.replaced_by && (
            <Link className="btn main" to="/approvals/$id" params={{ id: card.replaced_by }}>
              {approval.state === 'replaced' ? 'See the new call' : 'See what it would do now'}
            </Link>
          )}
          <Link
            className={card.replaced_by ? 'btn' : 'btn main'}
            to="/operations/$id"
            params={{ id: approval.operation_id }}
          >
            See what happened
          </Link>
        </footer>
      )}
      {isDenying && (
        <Reason
          title={`Deny ${approval.tool}?`}
          verb="Deny"
          help="The agent receives this text."
          locked={locked}
          onClose={() => setDenying(false)}
          onGive={(text) => decide('deny', text)}
        />
      )}
      {isEditing && (
        <EditDialog
          card={card}
          locked={locked}
          onClose={() => setEditing(false)}
          onEdited={(id) => {
            setEditing(false);
            notify.done('The changed call waits for approval; the first one is replaced');
            onReplaced?.(id);
          }}
        />
      )}
    </>
  );
}

/** OutOfDate says why a card shows what can no longer happen. */
export function OutOfDate({ why, children }: { why: string; children: ReactNode }) {
  return (
    <div className="body" role="alert">
      <p>
        <Tag tone="wait">out of date</Tag> <Inert text={sentence(why)} /> {children}
      </p>
    </div>
  );
}

const LOCKED: Record<string, string> = {
  approved: 'This call was approved.',
  denied: 'This call was denied.',
  expired: 'Nobody answered in time. A new call asks again.',
  lapsed: 'This call can no longer run: what it was based on has changed, or its run ended. Nothing ran.',
  replaced: 'A person replaced this call. It did not run; the new one asks instead.',
};

// describeLock says why an open dialog can no longer decide on a call.
function describeLock(approval: Schemas['Approval']): string {
  const state = LOCKED[approval.state] ?? `This call is ${approval.state}.`;
  const by = approval.decided_by ? ` The decision is by ${approval.decided_by}.` : '';
  return `${state}${by}`;
}

// EditDialog changes the arguments of a call. The change becomes a new call, which waits for its own approval.
function EditDialog({
  card,
  locked,
  onClose,
  onEdited,
}: {
  card: Schemas['ApprovalCard'];
  locked?: string; // why the call can no longer be changed
  onClose: () => void;
  onEdited: (id: string) => void;
}) {
  const { approval } = card;
  const { can } = useAccess();
  const tools = useTools();
  const isMasked = approval.args.includes(HIDDEN);
  const secret = useQuery({
    queryKey: ['revealed', approval.id, 'edit'],
    enabled: isMasked && can('owner'),
    gcTime: 0,
    staleTime: Infinity,
    queryFn: ({ signal }) =>
      ok(api.GET('/api/approvals/{id}/revealed', { params: { path: { id: approval.id } }, signal })),
  });
  const title = `Edit ${approval.tool}`;
  if (tools.isPending || secret.isLoading) // another dialog, so that the first field of the form gets the focus
    return (
      <Dialog key="loading" title={title} wide onClose={onClose}>
        <Loading rows={3} />
      </Dialog>
    );
  return (
    <Dialog key="form" title={title} wide onClose={onClose}>
      {secret.isError && <Failure error={secret.error} />}
      {isMasked && !can('owner') && (
        <p>
          A stored secret is part of the arguments. It is shown as <code>{HIDDEN}</code>, which cannot be saved: replace
          the whole text around it, or ask an owner to edit the call.
        </p>
      )}
      <EditForm
        card={card}
        args={secret.data?.args ?? approval.args}
        schema={tools.data?.tools?.find((t) => t.id === approval.tool)?.parameters}
        locked={locked}
        onClose={onClose}
        onEdited={onEdited}
      />
    </Dialog>
  );
}

function EditForm({
  card,
  args,
  schema,
  locked,
  onClose,
  onEdited,
}: {
  card: Schemas['ApprovalCard'];
  args: string;
  schema?: unknown;
  locked?: string;
  onClose: () => void;
  onEdited: (id: string) => void;
}) {
  const queries = useQueryClient();
  // The form keeps what the person saw when it opened.
  const [before] = useState(args);
  const [shown] = useState(card.shown_hash);
  const [value, setValue] = useState<Record<string, unknown>>(() => JSON.parse(before) as Record<string, unknown>);
  const [comment, setComment] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const after = JSON.stringify(value);
  const isSame = prettyJSON(after) === prettyJSON(before);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const next = await ok(
        api.POST('/api/approvals/{id}/edit', {
          params: { path: { id: card.approval.id } },
          body: { args: value, comment: comment || undefined, shown_hash: shown },
        }),
      );
      void queries.invalidateQueries({ predicate: (q) => ['inbox', 'approval'].includes(String(q.queryKey[0])) });
      onEdited(next.id);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        void save();
      }}
    >
      <p className="soft">
        The changed arguments make a new call. It asks again, with a fresh preview; this one does not run.
      </p>
      <SchemaForm schema={schema ?? { additionalProperties: true }} value={value} onChange={setValue} />
      {!isSame && <CompareView before={before} after={after} title="Your changes" />}
      <Field label="Comment (optional)" help="The agent receives it with the changed arguments." name="comment">
        {(id) => <input id={id} className="input" value={comment} onChange={(e) => setComment(e.target.value)} />}
      </Field>
      {error !== null && <Failure error={error} />}
      <Locked why={locked} />
      <div className="actions">
        <Button onClick={onClose}>{locked ? 'Close' : 'Cancel'}</Button>
        <Button kind="main" type="submit" disabled={isBusy || isSame || Boolean(locked)}>
          Replace the call
        </Button>
      </div>
    </form>
  );
}

// Locked says why a dialog can no longer decide.
function Locked({ why }: { why?: string }) {
  return (
    <div role="alert">
      {why && (
        <p className="minus">
          <Inert text={why} /> What you typed here is not sent. You can copy it.
        </p>
      )}
    </div>
  );
}

/** Reason asks for a text and then acts. While locked is set, the dialog stays open and cannot act. */
export function Reason({
  title,
  verb,
  help,
  locked,
  onClose,
  onGive,
}: {
  title: string;
  verb: string;
  help: string;
  locked?: string;
  onClose: () => void;
  onGive: (text: string) => Promise<void>;
}) {
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const give = async () => {
    if (isBusy || locked) return;
    setBusy(true);
    await onGive(text);
    setBusy(false);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void give();
        }}
      >
        <Field label="Reason (optional)" help={`${help} Ctrl+Enter sends it.`}>
          {(id) => (
            <textarea
              id={id}
              className="input"
              autoFocus
              value={text}
              onChange={(e) => setText(e.target.value)}
              onKeyDown={(e) => {
                if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && !e.repeat) void give();
              }}
            />
          )}
        </Field>
        <Locked why={locked} />
        <div className="actions">
          <Button onClick={onClose}>{locked ? 'Close' : 'Cancel'}</Button>
          <Button kind="bad" type="submit" disabled={isBusy || Boolean(locked)}>
            {verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
