import { useEffect, useRef, useState } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ok } from '../../api/client';
import { useAgentName, useInbox } from '../../app/data';
import { useKeys } from '../../app/keyboard';
import { useAccess } from '../../app/session';
import { Button, Page, Ready } from '../../ui/kit';
import { Empty } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
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
  const list = useRef<HTMLDivElement>(null);
  const lastAt = useRef(0);

  const foundAt = entries.findIndex((e) => e.key === search.open);
  const isGone = Boolean(search.open) && foundAt < 0;
  const current = foundAt >= 0 ? entries[foundAt] : search.open ? undefined : entries[0];
  useEffect(() => {
    if (foundAt >= 0) lastAt.current = foundAt;
  }, [foundAt]);
  useEffect(() => {
    const keys = new Set(entries.map((e) => e.key));
    setPicked((old) => ([...old].every((k) => keys.has(k)) ? old : new Set([...old].filter((k) => keys.has(k)))));
  }, [entries]);

  const open = (key: string | undefined) => void navigate({ search: key ? { open: key } : {}, replace: true });
  const move = (by: number) => {
    const from = current ? entries.indexOf(current) : lastAt.current - (by > 0 ? 1 : 0);
    const next = entries[Math.max(0, Math.min(entries.length - 1, from + by))];
    if (!next) return;
    open(next.key);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>('[data-current] .entry-open')?.focus());
  };
  const afterDecision = () => {
    const at = current ? entries.indexOf(current) : 0;
    open((entries[at + 1] ?? entries[at - 1] ?? entries[at])?.key); // the last entry stays, with what came of it
  };
  const toggle = (key: string) =>
    setPicked((old) => {
      const next = new Set(old);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const decidable = entries.filter((e) => e.kind === 'approval' || e.kind === 'proposal');
  const decideAll = async (isApproved: boolean, comment?: string) => {
    setDenying(false);
    const results = new Map<string, Outcome>();
    for (const entry of decidable.filter((e) => picked.has(e.key))) {
      try {
        await decideOne(entry, isApproved, comment);
        results.set(entry.key, { isOk: true, text: isApproved ? 'approved' : 'denied' });
      } catch (e) {
        results.set(entry.key, { isOk: false, text: e instanceof Error ? e.message : String(e) });
      }
      setOutcomes(new Map(results));
    }
    setPicked(new Set([...results].filter(([, o]) => !o.isOk).map(([key]) => key)));
    void queries.invalidateQueries({ queryKey: ['inbox'] });
  };
  useKeys('Inbox', [
    { keys: 'j', label: 'Next entry', run: () => move(1) },
    { keys: 'k', label: 'Previous entry', run: () => move(-1) },
    ...(can('member') ? [{ keys: 'x', label: 'Select or unselect', run: () => current && toggle(current.key) }] : []),
  ]);

  if (entries.length === 0 && !isGone) {
    return (
      <div className="panel">
        <Empty title="Nothing waits for you">
          <p>Calls to approve, proposals, unknown outcomes, failed items and questions appear here as they arise.</p>
        </Empty>
      </div>
    );
  }
  return (
    <div className="inbox" data-open={search.open || undefined}>
      <div className="panel inbox-list" ref={list}>
        {picked.size > 0 && (
          <header className="row wrap" role="group" aria-label="Selected entries">
            <span className="grow small">{picked.size} selected</span>
            <Button kind="main" onClick={() => void decideAll(true)}>
              Approve all
            </Button>
            <Button onClick={() => setDenying(true)}>Deny all…</Button>
          </header>
        )}
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
                      onOpen={() => open(entry.key)}
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
        {hasMore && (
          <p className="state small">There is more than the inbox shows at once. Decide on some to see the next.</p>
        )}
      </div>
      <div className="inbox-card stack">
        <div className="narrow-only">
          <Button onClick={() => open(undefined)}>← Inbox</Button>
        </div>
        {current ? (
          <Card entry={current} onDone={afterDecision} onReplaced={open} />
        ) : isGone && search.open ? (
          <Gone
            id={search.open}
            hasNext={entries.length > 0}
            onNext={() => open(entries[lastAt.current]?.key ?? entries[0]?.key)}
          />
        ) : null}
      </div>
      {isDenying && (
        <Reason
          title={`Deny ${picked.size} selected?`}
          verb="Deny all"
          help="Each agent receives this text."
          onClose={() => setDenying(false)}
          onGive={(text) => decideAll(false, text)}
        />
      )}
    </div>
  );
}

function decideOne(entry: Entry, isApproved: boolean, comment?: string): Promise<unknown> {
  const params = { path: { id: entry.key } };
  if (entry.kind === 'approval') {
    return ok(
      api.POST('/api/approvals/{id}/decision', {
        params,
        body: { decision: isApproved ? 'approve' : 'deny', comment: comment || undefined },
      }),
    );
  }
  return isApproved
    ? ok(api.POST('/api/proposals/{id}/accept', { params, body: {} }))
    : ok(api.POST('/api/proposals/{id}/reject', { params, body: { comment: comment || undefined } }));
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
  return (
    <div className="entry" data-current={isCurrent || undefined}>
      {onPick && <input type="checkbox" aria-label={`Select ${entry.title}`} checked={isPicked} onChange={onPick} />}
      <button className="entry-open" onClick={onOpen} aria-current={isCurrent || undefined}>
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
          <Inert text={nameOf(entry.agent)} />
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

function Card({ entry, onDone, onReplaced }: { entry: Entry; onDone: () => void; onReplaced: (id: string) => void }) {
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

// Gone stands for an entry that was answered while it was shown. Its card stays, locked, so that nothing moves under
// the person's hands.
function Gone({ id, hasNext, onNext }: { id: string; hasNext: boolean; onNext: () => void }) {
  return (
    <>
      {id.startsWith('apr_') ? (
        <ApprovalCard id={id} />
      ) : id.startsWith('prop_') ? (
        <ProposalCard id={id} />
      ) : (
        <div className="panel">
          <Empty title="This is answered">
            <p>Go on with the next entry.</p>
          </Empty>
        </div>
      )}
      <div>
        <Button onClick={onNext}>
          {hasNext ? (
            <>
              Next entry <kbd>j</kbd>
            </>
          ) : (
            'Close'
          )}
        </Button>
      </div>
    </>
  );
}
