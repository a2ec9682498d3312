import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ApiError, ok } from '../../api/client';
import { useAgentName, useInbox } from '../../app/data';
import { useKeys } from '../../app/keyboard';
import { useAccess } from '../../app/session';
import { useSettled } from '../../app/settled';
import { some } from '../../lib/format';
import { explainRefusal, sentence } from '../../lib/problem';
import { Button, Page, Ready, Tag } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { WaitingPlans } from '../automations/waiting';
import { ApprovalCard, Reason } from './approval';
import { GROUPS, listEntries, subtitle, type Entry } from './entries';
import { BudgetCard, ItemCard, ProposalCard, QuestionCard, ScheduleCard, UnknownCard } from './other-cards';

/** InboxScreen shows everything that waits for a person, and the card of one entry. */
export function InboxScreen() {
  const inbox = useInbox();
  return (
    <Page title="Inbox">
      <Ready query={inbox}>{(data) => <Entries entries={listEntries(data)} hasMore={Boolean(data.more)} />}</Ready>
    </Page>
  );
}

type Outcome = { isOk: boolean; text: string };

function Entries({ entries, hasMore }: { entries: Entry[]; hasMore: boolean }) {
  const { can } = useAccess();
  const navigate = useNavigate({ from: '/inbox' });
  const search = useSearch({ from: '/inbox' });
  const queries = useQueryClient();
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const [outcomes, setOutcomes] = useState<Map<string, Outcome>>(new Map());
  const [isDenying, setDenying] = useState(false);
  const [isDeciding, setDeciding] = useState(false);
  const notify = useNotify();
  const list = useRef<HTMLDivElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const lastAt = useRef(0);

  // Without an entry in the address the first one is shown. It stays when others arrive or it is answered elsewhere.
  const [first, setFirst] = useState(entries[0]?.key);
  if (first === undefined && entries[0]) setFirst(entries[0].key);
  const shownKey = search.open ?? first;
  const foundAt = entries.findIndex((e) => e.key === shownKey);
  const current = entries[foundAt];
  const last = useRef<Entry>(undefined);
  useEffect(() => {
    if (foundAt < 0) return;
    lastAt.current = foundAt;
    last.current = entries[foundAt];
  }, [entries, foundAt]);
  const isGone = shownKey !== undefined && !current;
  const remembered = last.current?.key === shownKey ? last.current : undefined;
  const shown = current ?? remembered ?? (isGone ? describeGone(shownKey) : undefined);
  const isSettled = useSettled(shown?.key ?? '');
  const locksItself = shown?.kind === 'approval' || shown?.kind === 'proposal';
  useEffect(() => {
    const keys = new Set(entries.map((e) => e.key));
    setPicked((old) => ([...old].every((k) => keys.has(k)) ? old : new Set([...old].filter((k) => keys.has(k)))));
  }, [entries]);

  const open = (key: string | undefined) => void navigate({ search: key ? { open: key } : {}, replace: true });
  // go opens an entry and moves the focus with it: to its row or, where the list is hidden, to its card.
  const focusFor = useRef('');
  const moveFocus = () => {
    const row = document.getElementById(`entry-${focusFor.current}`);
    if (focusFor.current) (row?.getClientRects().length ? row : card.current)?.focus();
    focusFor.current = '';
  };
  useLayoutEffect(moveFocus, [search.open]);
  const go = (key: string) => {
    focusFor.current = key;
    if (key === search.open) moveFocus();
    else open(key);
  };
  const close = () => {
    focusFor.current = current?.key ?? '';
    setFirst(search.open);
    open(undefined);
  };
  const nearest = entries[lastAt.current] ?? entries[0];
  const forget = () => {
    setFirst(undefined);
    open(undefined);
  };
  const move = (by: number) => {
    const from = current ? entries.indexOf(current) : lastAt.current - (by > 0 ? 1 : 0);
    const next = entries[Math.max(0, Math.min(entries.length - 1, from + by))];
    if (next) go(next.key);
  };
  const afterDecision = () => {
    const at = current ? entries.indexOf(current) : 0;
    const next = entries[at + 1] ?? entries[at - 1];
    if (next) return go(next.key);
    open(current?.key); // the last entry stays, with what came of it
    card.current?.focus();
  };
  const toggle = (key: string) =>
    setPicked((old) => {
      const next = new Set(old);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const decidable = entries.filter((e) => e.kind === 'approval' || e.kind === 'proposal');
  const chosen = decidable.filter((e) => picked.has(e.key));
  const verbs = chosen.every((e) => e.kind === 'proposal')
    ? { yes: 'Accept', no: 'Reject', accepted: 'Accepted', rejected: 'Rejected', what: 'proposal' }
    : { yes: 'Approve', no: 'Deny', accepted: 'Approved', rejected: 'Denied', what: 'call' };
  const decideAll = async (isApproved: boolean, comment?: string) => {
    setDenying(false);
    setDeciding(true);
    const results = new Map<string, Outcome>();
    for (const entry of chosen) {
      try {
        const state = await decideOne(entry, isApproved, comment);
        const isOk = DECIDED.has(state);
        results.set(entry.key, { isOk, text: isOk ? state : `It is ${state}; nothing ran.` });
      } catch (e) {
        results.set(entry.key, { isOk: false, text: textOf(e) });
      }
      setOutcomes(new Map(results));
    }
    const failed = [...results].filter(([, o]) => !o.isOk).map(([key]) => key);
    setPicked(new Set(failed));
    setDeciding(false);
    if (failed.length < results.size)
      notify.done(`${isApproved ? verbs.accepted : verbs.rejected} ${results.size - failed.length}`);
    const failure = results.get(failed[0] ?? '')?.text;
    if (failure) notify.failed(new Error(failed.length === 1 ? failure : `${failed.length} failed. ${failure}`));
    void queries.invalidateQueries({ queryKey: ['inbox'] });
  };
  useKeys('Inbox', [
    { keys: 'j', label: 'Next entry', run: () => move(1), repeats: true },
    { keys: 'k', label: 'Previous entry', run: () => move(-1), repeats: true },
    ...(can('member') ? [{ keys: 'x', label: 'Select or unselect', run: () => current && toggle(current.key) }] : []),
  ]);

  if (entries.length === 0 && !isGone) {
    return (
      <div className="panel inbox-list">
        <Empty title="Nothing waits for you">
          <p>Calls to approve, proposals, unknown outcomes, failed items and questions appear here as they arise.</p>
        </Empty>
        <WaitingPlans />
      </div>
    );
  }
  return (
    <div className="inbox" data-open={search.open || undefined}>
      <div className="panel inbox-list" ref={list}>
        {can('member') && decidable.length > 0 && (
          <header role="group" aria-label="Selected entries">
            {chosen.length === 0 ? (
              <>
                <span className="grow small faint">Nothing selected</span>
                <Button kind="quiet" onClick={() => setPicked(new Set(decidable.map((e) => e.key)))}>
                  Select all
                </Button>
              </>
            ) : (
              <>
                <Button kind="main" disabled={isDeciding} onClick={() => void decideAll(true)}>
                  {verbs.yes} {chosen.length}
                </Button>
                <Button disabled={isDeciding} onClick={() => setDenying(true)}>
                  {verbs.no} {chosen.length}…
                </Button>
                <span className="grow" />
                <Button kind="quiet" disabled={isDeciding} onClick={() => setPicked(new Set())}>
                  Clear
                </Button>
              </>
            )}
          </header>
        )}
        {entries.length === 0 && <p className="state small">Nothing else waits.</p>}
        {GROUPS.map(([kind, label]) => {
          const rows = entries.filter((e) => e.kind === kind);
          if (rows.length === 0) return null;
          return (
            <section key={kind} aria-label={label}>
              <h2>
                {label} <span className="num">{rows.length}</span>
              </h2>
              <ul>
                {rows.map((entry) => (
                  <li key={entry.key}>
                    <Row
                      entry={entry}
                      isCurrent={entry === current}
                      isPicked={picked.has(entry.key)}
                      outcome={outcomes.get(entry.key)}
                      onOpen={() => go(entry.key)}
                      onPick={
                        can('member') && (kind === 'approval' || kind === 'proposal')
                          ? () => toggle(entry.key)
                          : undefined
                      }
                    />
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
        <WaitingPlans />
        {hasMore && (
          <p className="state small">There is more than the inbox shows at once. Decide on some to see the next.</p>
        )}
      </div>
      <div className="inbox-card stack" ref={card} tabIndex={-1} role="region" aria-label="Entry" data-focused-area>
        <div className="narrow-only">
          <Button onClick={close}>← Inbox</Button>
        </div>
        {isGone && !locksItself && (
          <p role="status">
            <Tag>answered</Tag> This no longer waits. Go on with the next entry.
          </p>
        )}
        {shown && (
          <fieldset className="plain" disabled={!locksItself && (isGone || !isSettled)}>
            <Card entry={shown} onDone={afterDecision} onReplaced={go} />
          </fieldset>
        )}
        {isGone && (
          <div>
            <Button onClick={() => (nearest ? go(nearest.key) : forget())}>
              {nearest ? (
                <>
                  Next entry <kbd>j</kbd>
                </>
              ) : (
                'Close'
              )}
            </Button>
          </div>
        )}
      </div>
      {isDenying && (
        <Reason
          title={`${verbs.no} ${some(chosen.length, verbs.what)}?`}
          verb={`${verbs.no} ${chosen.length}`}
          help={verbs.what === 'call' ? 'Each agent receives this text.' : 'Kept with each proposal.'}
          onClose={() => setDenying(false)}
          onGive={(text) => decideAll(false, text)}
        />
      )}
    </div>
  );
}

// textOf says in one line why a decision failed, and what to do.
function textOf(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  const said = explainRefusal(error);
  return [said.title, said.hint].filter(Boolean).join(' ');
}

// DECIDED are the states in which a decision took effect.
const DECIDED = new Set(['approved', 'denied', 'accepted', 'applied', 'rejected']);

// decideOne decides on one entry and returns the state that it led to. An approval names what its card shows now, so
// that a call whose base has changed is refused.
async function decideOne(entry: Entry, isApproved: boolean, comment?: string): Promise<string> {
  const params = { path: { id: entry.key } };
  if (entry.kind === 'approval') {
    const shown_hash = isApproved
      ? (await ok(api.GET('/api/approvals/{id}/card', { params }))).shown_hash
      : undefined;
    const a = await ok(
      api.POST('/api/approvals/{id}/decision', {
        params,
        body: { decision: isApproved ? 'approve' : 'deny', comment: comment || undefined, shown_hash },
      }),
    );
    return a.state;
  }
  const stale = isApproved && (await ok(api.GET('/api/proposals/{id}', { params }))).stale;
  if (stale) throw new Error(`${sentence(stale)} Nothing was applied.`);
  const p = isApproved
    ? await ok(api.POST('/api/proposals/{id}/accept', { params, body: {} }))
    : await ok(api.POST('/api/proposals/{id}/reject', { params, body: { comment: comment || undefined } }));
  return p.state;
}

function Row({
  entry,
  isCurrent,
  isPicked,
  outcome,
  onOpen,
  onPick,
}: {
  entry: Entry;
  isCurrent: boolean;
  isPicked: boolean;
  outcome?: Outcome;
  onOpen: () => void;
  onPick?: () => void;
}) {
  const nameOf = useAgentName();
  const sub = 'args' in entry.data ? subtitle(entry.data.args) : '';
  const of = entry.agent === 'workspace' ? 'this workspace' : nameOf(entry.agent);
  return (
    <div className="entry" data-current={isCurrent || undefined}>
      {onPick && <input type="checkbox" aria-label={`Select ${entry.title}`} checked={isPicked} onChange={onPick} />}
      <button className="entry-open" id={`entry-${entry.key}`} onClick={onOpen} aria-current={isCurrent || undefined}>
        <span className="title-line">
          <span className="strong cut grow">
            <Inert text={entry.title} />
          </span>
          {entry.at && (
            <span className="small faint">
              <Ago time={entry.at} />
            </span>
          )}
        </span>
        <span className="small soft cut" style={{ display: 'block' }}>
          <Inert text={of} />
          {sub && (
            <>
              {' '}
              · <Inert text={sub} />
            </>
          )}
        </span>
        {outcome && !outcome.isOk && (
          <span className="small minus">
            <Inert text={outcome.text} />
          </span>
        )}
      </button>
    </div>
  );
}

function Card({
  entry,
  onDone,
  onReplaced,
}: {
  entry: Entry | Gone;
  onDone: () => void;
  onReplaced: (id: string) => void;
}) {
  switch (entry.kind) {
    case 'approval':
      return <ApprovalCard key={entry.key} id={entry.key} onDone={onDone} onReplaced={onReplaced} />;
    case 'proposal':
      return <ProposalCard key={entry.key} id={entry.key} onDone={onDone} />;
    case 'unknown':
      return <UnknownCard key={entry.key} operation={entry.data} onDone={onDone} />;
    case 'item':
      return <ItemCard key={entry.key} item={entry.data} onDone={onDone} />;
    case 'question':
      return <QuestionCard key={entry.key} job={entry.data} onDone={onDone} />;
    case 'schedule':
      return <ScheduleCard key={entry.key} schedule={entry.data} onDone={onDone} />;
    case 'budget':
      return <BudgetCard key={entry.key} budget={entry.data} />;
  }
}

// describeGone returns what is known of an entry that no longer waits. The card of an approval or a proposal reads the
// rest; it stays, locked, so that nothing moves under the person's hands.
function describeGone(key: string): Gone | undefined {
  if (key.startsWith('apr_')) return { kind: 'approval', key };
  return key.startsWith('prop_') ? { kind: 'proposal', key } : undefined;
}

interface Gone {
  kind: 'approval' | 'proposal';
  key: string;
}
