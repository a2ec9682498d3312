import { useState } from 'react';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from '../api/client';
import { useAct, useRefresh } from '../app/act';
import { useAgentName } from '../app/data';
import { useAccess } from '../app/session';
import { changedFields } from '../lib/changes';
import { countBytes, some } from '../lib/format';
import { Dialog } from '../ui/dialog';
import { CompareView } from '../ui/diff';
import { Button, Field, Page, Panel, Ready, Tag, useLive } from '../ui/kit';
import { usePages } from '../ui/paged';
import { Empty, Failure, Loading } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useNotify } from '../ui/toast';
import { useTyped } from '../ui/typed';

const ORIGIN = {
  person: 'written by you',
  agent: 'written by an agent',
  untrusted: 'from an untrusted source',
} as const;

/** MemoryScreen lists and searches the person's notes, and forgets them. */
export function MemoryScreen() {
  const { can } = useAccess();
  const { q: asked = '' } = useSearch({ from: '/memory' });
  const navigate = useNavigate({ from: '/memory' });
  const [search, setSearch] = useTyped(asked, (q) => void navigate({ search: { q: q || undefined }, replace: true }));
  const [isAdding, setAdding] = useState(false);
  const q = search.trim();
  const { query, rows, more } = usePages(
    ['notes'],
    { topics: ['notes'] },
    (cursor, signal) => ok(api.GET('/api/notes', { params: { query: { cursor, limit: 100 } }, signal })),
    (page) => page.notes ?? [],
  );
  const found = useLive(
    ['note-search', q],
    (signal) => ok(api.GET('/api/notes/search', { params: { query: { q, limit: 50 } }, signal })),
    { topics: ['notes'] },
    { enabled: q !== '' },
  );
  const act = useAct('note-sets', 'notes');
  const tidy = () => act(ok(api.POST('/api/notes/consolidate', {})), 'Compared; what it proposes waits below');
  const [isDeletedOpen, setDeletedOpen] = useState(false);
  const [forgetting, setForgetting] = useState<Schemas['Note'] | null>(null); // outlives its card
  const add = can('member') && (
    <Button kind="main" onClick={() => setAdding(true)}>
      New note
    </Button>
  );
  const shown: Schemas['Note'][] | undefined = q ? (found.data?.notes ?? undefined) : rows;
  return (
    <Page
      title="Memory"
      actions={
        <>
          <input
            type="search"
            className="input"
            aria-label="Search notes"
            placeholder="Search by words and meaning"
            value={search}
            onChange={(e) => setSearch(e.target.value)}
          />
          {can('member') && <Button onClick={() => void tidy()}>Find duplicates</Button>}
          {can('member') && <Button onClick={() => setDeletedOpen(true)}>Deleted notes</Button>}
          {add}
        </>
      }
    >
      <Proposed />
      {q && found.isError ? (
        <Failure error={found.error} retry={() => void found.refetch()} />
      ) : query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : !shown ? (
        <Loading />
      ) : shown.length === 0 ? (
        <div className="panel">
          <Empty title={q ? 'No note matches' : 'No notes yet'}>
            <p>{q ? 'Try other words.' : 'Notes are what agents remember of you. They and you can write them.'}</p>
            {!q && add}
          </Empty>
        </div>
      ) : (
        <div className="stack">
          {shown.map((n) => (
            <NoteCard key={n.id} note={n} onForget={() => setForgetting(n)} />
          ))}
          {!q && query.hasNextPage && (
            <div>
              <Button onClick={more}>Show more</Button>
            </div>
          )}
        </div>
      )}
      {isAdding && <NewNote onClose={() => setAdding(false)} />}
      {isDeletedOpen && <DeletedNotes onClose={() => setDeletedOpen(false)} />}
      {forgetting && <ForgetNote note={forgetting} onClose={() => setForgetting(null)} />}
    </Page>
  );
}

// Proposed lists the open merges of notes that a consolidation proposes, one change set each.
function Proposed() {
  const query = useLive(
    ['note-sets'],
    async (signal) => {
      const list = await ok(api.GET('/api/change-sets', { params: { query: { limit: 50 } }, signal }));
      const agents = await ok(api.GET('/api/agents', { params: { query: { limit: 500 } }, signal }));
      const keeper = agents.agents?.find((a) => a.kind === 'memory_keeper')?.id;
      return (list.change_sets ?? []).filter((s) => s.agent_id === keeper && (s.counts.pending ?? 0) > 0);
    },
    { topics: ['proposals', 'notes'] },
  );
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  if (!query.data?.length) return null;
  return (
    <Panel title="Proposed changes of your notes">
      <ul className="body stack tight">
        {query.data.map((s) => (
          <li key={s.id} className="row wrap">
            <Tag tone="wait">{s.counts.pending} to decide</Tag>
            <span className="grow soft">
              found <Ago time={s.created_at} />
            </span>
            <Link className="btn" to="/change-sets/$id" params={{ id: s.id }}>
              Review
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const LISTS = ['notes', 'note-search', 'note-history', 'deleted-notes'];

// useRestore returns a function that takes the deletion of a note back.
function useRestore() {
  const act = useAct(...LISTS);
  return (id: string) => act(ok(api.POST('/api/notes/{id}/restore', { params: { path: { id } } })), 'Restored');
}

function NoteCard({ note, onForget }: { note: Schemas['Note']; onForget: () => void }) {
  const { can } = useAccess();
  const notify = useNotify();
  const refresh = useRefresh(...LISTS);
  const restore = useRestore();
  const act = useAct(...LISTS);
  const [open, setOpen] = useState<'' | 'history' | 'edit'>('');
  const params = { path: { id: note.id } };
  const remove = async () => {
    try {
      await ok(api.DELETE('/api/notes/{id}', { params }));
      notify.done('Deleted', { label: 'Undo', run: () => void restore(note.id) });
    } catch (e) {
      notify.failed(e);
    }
    refresh();
  };
  return (
    <article className="panel">
      <div className="body stack tight">
        <p className="break">
          <Inert text={note.content} />
        </p>
        <div className="row wrap small faint">
          <Tag tone={note.origin === 'untrusted' ? 'wait' : 'none'}>{ORIGIN[note.origin]}</Tag>
          {note.pinned && <Tag>pinned</Tag>}
          {note.tags?.map((t) => (
            <Tag key={t}>
              <Inert text={t} />
            </Tag>
          ))}
          <span className="grow">
            <Ago time={note.updated_at} />
          </span>
          <span className="row small">
            <Button kind="quiet" onClick={() => setOpen('history')}>
              Why
            </Button>
            {can('member') && (
              <>
                <Button kind="quiet" onClick={() => setOpen('edit')}>
                  Edit
                </Button>
                <Button
                  kind="quiet"
                  onClick={() =>
                    void act(
                      ok(api.PATCH('/api/notes/{id}', { params, body: { pinned: !note.pinned } })),
                      note.pinned ? 'Unpinned' : 'Pinned',
                    )
                  }
                >
                  {note.pinned ? 'Unpin' : 'Pin'}
                </Button>
                <Button kind="quiet" onClick={() => void remove()}>
                  Delete
                </Button>
                <Button kind="quiet" onClick={onForget}>
                  Forget…
                </Button>
              </>
            )}
          </span>
        </div>
      </div>
      {open === 'history' && <NoteHistory id={note.id} onClose={() => setOpen('')} />}
      {open === 'edit' && <EditNote note={note} onClose={() => setOpen('')} />}
    </article>
  );
}

// ForgetNote asks before it erases a note, and says afterwards where the text may remain.
function ForgetNote({ note, onClose }: { note: Schemas['Note']; onClose: () => void }) {
  const refresh = useRefresh(...LISTS);
  const [erased, setErased] = useState<Schemas['NoteErasure'] | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const forget = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      setErased(await ok(api.POST('/api/notes/{id}/forget', { params: { path: { id: note.id } } })));
    } catch (e) {
      setError(e);
    }
    setBusy(false);
    refresh();
  };
  const places = Object.values(erased?.erased ?? {}).reduce((sum, n) => sum + n, 0);
  const left = erased?.not_reached ?? [];
  return (
    <Dialog title={erased ? 'The note is forgotten' : 'Forget this note for good?'} onClose={onClose}>
      {erased ? (
        <>
          <p>
            The note and its history are erased
            {places > 0 && `, and its text in ${some(places, 'other place')} that quoted it`}.
          </p>
          {left.length > 0 && (
            <section className="stack tight" aria-label="Where its text may remain">
              <h3>Its text may remain in</h3>
              <ul className="dots">
                {left.map((place) => (
                  <li key={place} className="break">
                    <Inert text={place} />
                  </li>
                ))}
              </ul>
            </section>
          )}
        </>
      ) : (
        <>
          <p className="break strong">
            <Inert text={note.content.length > 500 ? `${note.content.slice(0, 500)}…` : note.content} />
          </p>
          <p>
            This erases the note, its earlier versions, and its text where agents or the server quoted it for its owner:
            in calls, messages, runs, summaries, approvals, notifications, schedules and files of sessions. There it
            becomes <code>[forgotten]</code>. This cannot be undone.
          </p>
          <p>
            It does not reach other notes, tasks, mails, settings of agents, tools and scripts, what other people
            did, the same said in other words, backups, and other systems. What keeps the text is listed afterwards.
          </p>
        </>
      )}
      {error !== null && <Failure error={error} />}
      <div className="actions">
        <Button key={erased ? 'close' : 'cancel'} autoFocus onClick={onClose}>
          {erased ? 'Close' : 'Cancel'}
        </Button>
        {!erased && (
          <Button kind="bad" disabled={isBusy} onClick={() => void forget()}>
            Forget
          </Button>
        )}
      </div>
    </Dialog>
  );
}

// DeletedNotes lists deleted notes, and restores them.
function DeletedNotes({ onClose }: { onClose: () => void }) {
  const restore = useRestore();
  const { query, rows, more } = usePages(
    ['deleted-notes'],
    { topics: ['notes'] },
    (cursor, signal) => ok(api.GET('/api/notes', { params: { query: { cursor, limit: 200, history: true } }, signal })),
    (page) => (page.notes ?? []).filter((n) => n.deleted_at),
  );
  return (
    <Dialog title="Deleted notes" wide onClose={onClose}>
      {query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : !rows ? (
        <Loading />
      ) : rows.length === 0 && !query.hasNextPage ? (
        <p className="soft">No note is deleted. What was forgotten is erased, and is not listed here.</p>
      ) : (
        <ul className="stack">
          {rows.map((n) => (
            <li key={n.id} className="row">
              <span className="grow">
                <span className="break">
                  <Inert text={n.content} />
                </span>{' '}
                <span className="small faint">
                  deleted <Ago time={n.deleted_at} />
                </span>
              </span>
              <Button onClick={() => void restore(n.id)}>Restore</Button>
            </li>
          ))}
        </ul>
      )}
      <div className="actions">
        {query.hasNextPage && <Button onClick={more}>Show more</Button>}
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

/** MAX_NOTE is the most bytes that a note may have. */
const MAX_NOTE = 8000;

function isNote(content: string): boolean {
  return content.trim() !== '' && countBytes(content.trim()) <= MAX_NOTE;
}

// NoteText is the field with the text of a note. It says how much is too much.
function NoteText({ label, value, onChange }: { label: string; value: string; onChange: (text: string) => void }) {
  const over = countBytes(value.trim()) - MAX_NOTE;
  const error =
    over > 0
      ? `The text is ${over.toLocaleString('en')} bytes too long. A note has at most ` +
        `${MAX_NOTE.toLocaleString('en')} bytes; a letter such as ä takes 2, an emoji about 4.`
      : undefined;
  return (
    <Field label={label} name="content" error={error}>
      {(id) => (
        <textarea id={id} className="input" autoFocus value={value} onChange={(e) => onChange(e.target.value)} />
      )}
    </Field>
  );
}

function EditNote({ note, onClose }: { note: Schemas['Note']; onClose: () => void }) {
  const notify = useNotify();
  const nameOf = useAgentName();
  const refresh = useRefresh(...LISTS);
  const [first] = useState(note);
  const [seen, setSeen] = useState(note); // the latest version that the person was shown
  const [content, setContent] = useState(first.content);
  const [tags, setTags] = useState((first.tags ?? []).join(', '));
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    const params = { path: { id: first.id } };
    const typed = tags.split(',').map((t) => t.trim()).filter(Boolean);
    const change = changedFields({ content: first.content, tags: first.tags ?? [] }, { content, tags: typed });
    if (Object.keys(change).length === 0) return onClose();
    try {
      await ok(api.PATCH('/api/notes/{id}', { params, body: { ...change, base_version: seen.version } }));
      notify.done('Changed');
      onClose();
    } catch (e) {
      const isOld = e instanceof ApiError && e.code === 'STALE';
      const latest = isOld ? await ok(api.GET('/api/notes/{id}', { params })).catch(() => null) : null;
      if (latest) setSeen(latest);
      else setError(e);
    }
    refresh();
  };
  const isOld = seen.version !== first.version;
  return (
    <Dialog title="Edit note" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <NoteText label="Text" value={content} onChange={setContent} />
        <Field label="Tags, with commas between" name="tags">
          {(id) => <input id={id} className="input" value={tags} onChange={(e) => setTags(e.target.value)} />}
        </Field>
        {isOld && (
          <section className="stack tight" role="alert">
            <p>
              <strong>This note changed while you edited.</strong>{' '}
              {seen.agent_id ? (
                <>
                  Agent <Inert text={nameOf(seen.agent_id)} /> wrote it
                </>
              ) : (
                'A person wrote it'
              )}
              , <Ago time={seen.updated_at} />. Your text is kept and is not saved.
            </p>
            {content === first.content ? (
              seen.content !== content && <p>You changed only its tags. Its new text stays.</p>
            ) : (
              <CompareView title="What it says now → yours" before={seen.content} after={content} />
            )}
          </section>
        )}
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={!isNote(content)}>
            {isOld ? 'Save yours' : 'Save'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

// versionsOf returns what a note says, and before that what it said, newest first.
function versionsOf({ note, versions }: Schemas['NoteHistory']): Schemas['NoteVersion'][] {
  const past = versions ?? [];
  return [{ ...note, version: past.length + 1, written_at: note.updated_at }, ...[...past].reverse()];
}

function NoteHistory({ id, onClose }: { id: string; onClose: () => void }) {
  const nameOf = useAgentName();
  const query = useLive(
    ['note-history', id],
    (signal) => ok(api.GET('/api/notes/{id}/history', { params: { path: { id } }, signal })),
    { topics: ['notes'], id },
  );
  return (
    <Dialog title="Where this note comes from" wide onClose={onClose}>
      <Ready query={query}>
        {(h) => (
          <ol className="stack">
            {versionsOf(h).map((v) => (
              <li key={v.version}>
                <p className="small faint">
                  Version {v.version},{' '}
                  {v.agent_id ? (
                    <>
                      written by agent <Inert text={nameOf(v.agent_id)} />
                    </>
                  ) : v.origin === 'person' ? (
                    'written by you'
                  ) : (
                    v.origin
                  )}
                  , <Ago time={v.written_at} />
                  {v.operation_id && (
                    <>
                      ,{' '}
                      <Link to="/operations/$id" params={{ id: v.operation_id }}>
                        why
                      </Link>
                    </>
                  )}
                </p>
                <p className="break">
                  <Inert text={v.content} />
                </p>
              </li>
            ))}
            {(h.replaces ?? []).length > 0 && (
              <li>
                <p className="small faint">It replaces</p>
                {(h.replaces ?? []).map((n) => (
                  <p key={n.id} className="break soft">
                    <Inert text={n.content} />
                  </p>
                ))}
              </li>
            )}
          </ol>
        )}
      </Ready>
      <div className="actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function NewNote({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [content, setContent] = useState('');
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    try {
      await ok(api.POST('/api/notes', { body: { content } }));
      void queries.invalidateQueries({ queryKey: ['notes'] });
      onClose();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New note" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <NoteText label="What to remember" value={content} onChange={setContent} />
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={!isNote(content)}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
