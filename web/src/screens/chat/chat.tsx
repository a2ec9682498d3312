import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { api, ApiError, currentWorkspace, ok } from '../../api/client';
import { useAgentName, useAgents } from '../../app/data';
import { useAccess } from '../../app/session';
import type { Line } from '../../lib/chat';
import { keepDraft, readDraft } from '../../lib/draft';
import { some } from '../../lib/format';
import { Dialog } from '../../ui/dialog';
import { PreviewView } from '../../ui/diff';
import { ArgsView, JSONView } from '../../ui/json';
import { Button, Field, Page, StateTag } from '../../ui/kit';
import { Markdown } from '../../ui/markdown';
import { usePages } from '../../ui/paged';
import { Empty, Failure, Loading } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';
import { Reason } from '../inbox/approval';
import { useConversation } from './socket';

/** ChatScreen shows the person's conversations, and the open one. */
export function ChatScreen() {
  const { id } = useParams({ strict: false }) as { id?: string };
  const { can } = useAccess();
  const nameOf = useAgentName();
  const [isStarting, setStarting] = useState(false);
  const { query, rows, more } = usePages(
    ['conversations'],
    { topics: ['conversations'] },
    (cursor, signal) => ok(api.GET('/api/conversations', { params: { query: { cursor, limit: 50 } }, signal })),
    (page) => page.conversations ?? [],
  );
  const open = rows?.find((c) => c.id === id);
  return (
    <Page
      title={open?.title ? <Inert text={open.title} /> : 'Chat'}
      actions={can('member') && <Button onClick={() => setStarting(true)}>New conversation</Button>}
    >
      <div className="chat" data-open={id || undefined}>
        <nav className="panel chat-list" aria-label="Conversations">
          {rows?.length === 0 ? (
            <Empty title="No conversations">
              <p>{can('member') ? 'Start one to talk to an agent.' : 'A member can start one.'}</p>
            </Empty>
          ) : rows ? (
            rows.map((c) => (
              <Link key={c.id} to="/chat/$id" params={{ id: c.id }} activeProps={{ 'aria-current': 'page' }}>
                <span className="title-line">
                  <span className="strong cut grow">
                    <Inert text={c.title || nameOf(c.agent_id)} />
                  </span>
                  <span className="small faint">
                    <Ago time={c.updated_at} />
                  </span>
                </span>
                <span className="small soft cut">
                  <Inert text={nameOf(c.agent_id)} /> · {some(c.turns, 'turn')}
                  {c.state === 'completed' && ' · completed'}
                </span>
              </Link>
            ))
          ) : query.isError ? (
            <Failure error={query.error} retry={() => void query.refetch()} />
          ) : (
            <Loading />
          )}
          {query.hasNextPage && (
            <div className="state">
              <Button onClick={more}>Show more</Button>
            </div>
          )}
        </nav>
        {id ? (
          <Room key={id} id={id} isCompleted={open?.state === 'completed'} />
        ) : (
          <div className="panel chat-room">
            <Empty title={rows?.length === 0 ? 'No conversation yet' : 'Choose a conversation'}>
              {can('member') && (
                <Button kind="main" onClick={() => setStarting(true)}>
                  New conversation
                </Button>
              )}
            </Empty>
          </div>
        )}
      </div>
      {isStarting && <StartDialog onClose={() => setStarting(false)} />}
    </Page>
  );
}

function StartDialog({ onClose }: { onClose: () => void }) {
  const agents = useAgents();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [agent, setAgent] = useState('');
  const [title, setTitle] = useState('');
  const [error, setError] = useState<unknown>(null);
  const list = agents.data?.agents ?? [];
  const start = async () => {
    try {
      const c = await ok(
        api.POST('/api/conversations', { body: { agent: agent || list[0]?.name || '', title: title || undefined } }),
      );
      void queries.invalidateQueries({ queryKey: ['conversations'] });
      onClose();
      void navigate({ to: '/chat/$id', params: { id: c.id } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New conversation" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void start();
        }}
      >
        <Field label="Agent" name="agent">
          {(id) => (
            <select id={id} className="input" value={agent} onChange={(e) => setAgent(e.target.value)}>
              {list.map((a) => (
                <option key={a.id} value={a.name}>
                  {a.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Title (optional)" name="title">
          {(id) => <input id={id} className="input" value={title} onChange={(e) => setTitle(e.target.value)} />}
        </Field>
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={list.length === 0}>
            Start
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** PAGE is how many entries of a conversation are shown at first, and how many more at a time. */
const PAGE = 200;

interface Upload {
  name: string;
  media_type: string;
  data: string;
}

async function toUpload(file: File): Promise<Upload> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error('the file cannot be read'));
    reader.readAsDataURL(file);
  });
  return { name: file.name, media_type: file.type || 'text/plain', data: url.slice(url.indexOf(',') + 1) };
}

function Room({ id, isCompleted }: { id: string; isCompleted: boolean }) {
  const { can } = useAccess();
  const notify = useNotify();
  const { log, state, error, refused, send } = useConversation(id);
  const [text, setTyped] = useState(() => readDraft(sessionStorage, id));
  const setText = (next: string) => {
    setTyped(next);
    keepDraft(sessionStorage, id, next);
  };
  const [files, setFiles] = useState<Upload[]>([]);
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [shown, setShown] = useState(PAGE);
  const box = useRef<HTMLTextAreaElement>(null);
  const room = useRef<HTMLElement>(null);
  // toBox moves the focus to the message, so that a person goes on with the keyboard. A touch screen would cover the
  // conversation with its keyboard, so the conversation gets the focus there.
  const toBox = () => (matchMedia('(pointer: coarse)').matches ? room.current : (box.current ?? room.current))?.focus();
  useEffect(() => toBox(), []);
  const fromEnd = useRef(0); // keeps what is read in place when earlier messages appear above it
  useLayoutEffect(() => {
    if (scroller.current && fromEnd.current > 0)
      scroller.current.scrollTop = scroller.current.scrollHeight - fromEnd.current;
    fromEnd.current = 0;
  }, [shown]);
  useLayoutEffect(() => {
    if (isAtEnd.current && scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [log]);
  useEffect(() => {
    if (refused) notify.failed(new Error(refused));
  }, [refused, notify]);

  const submit = () => {
    const content = text.trim();
    if (!content && files.length === 0) return;
    isAtEnd.current = true;
    if (send({ type: 'message', content, id: crypto.randomUUID(), attachments: files.length ? files : undefined })) {
      setText('');
      setFiles([]);
    } else notify.failed(new Error('the conversation is not connected; the message was not sent'));
  };
  const answer = (frame: Record<string, unknown>) => {
    const isSent = send(frame);
    if (isSent) toBox(); // the button of the answer disappears
    else notify.failed(new Error('the conversation is not connected; nothing was decided'));
    return isSent;
  };
  const attach = async (list: FileList | null) => {
    try {
      const uploads = await Promise.all([...(list ?? [])].map(toUpload));
      setFiles((old) => [...old, ...uploads]);
    } catch (e) {
      notify.failed(e);
    }
  };
  const open = log.openTurns.at(-1);
  const isWaiting = log.lines.some((l) => l.kind === 'tool' && l.turn === open && l.approval && l.result === undefined);
  const isMissing = error instanceof ApiError && error.status === 404;
  const hidden = Math.max(0, log.lines.length - shown);
  const showEarlier = () => {
    const el = scroller.current;
    fromEnd.current = el ? el.scrollHeight - el.scrollTop : 0;
    setShown(shown + PAGE);
  };
  return (
    <section className="panel chat-room" aria-label="Conversation" ref={room} tabIndex={-1} data-focused-area>
      <div className="narrow-only" style={{ padding: '0.5rem' }}>
        <Link className="btn" to="/chat">
          ← Conversations
        </Link>
      </div>
      {error !== null && <Failure error={error} />}
      <div
        className="chat-log"
        ref={scroller}
        role="log"
        aria-live="polite"
        aria-label="Messages"
        tabIndex={0}
        onScroll={(e) => {
          const el = e.currentTarget;
          isAtEnd.current = el.scrollHeight - el.scrollTop - el.clientHeight < 60;
        }}
      >
        {log.lines.length === 0 && state === 'open' && (
          <Empty title="Nothing said yet">
            <p>Write a message below.</p>
          </Empty>
        )}
        {hidden > 0 && (
          <div className="state">
            <Button onClick={showEarlier}>
              Show {Math.min(hidden, PAGE)} earlier of {hidden}
            </Button>
          </div>
        )}
        {log.lines.slice(hidden).map((line) => (
          <LineView key={`${line.turn} ${line.key}`} line={line} conversation={id} onSend={answer} />
        ))}
        {open && log.lines.at(-1)?.kind !== 'answer' && (
          <p className="small soft" role="status">
            {isWaiting ? 'Waits for your answer above.' : 'Working…'}
          </p>
        )}
      </div>
      {state === 'closed' && !isMissing && (
        <p className="small soft" role="status" style={{ padding: '0 1rem' }}>
          Connection lost. Reconnecting…
        </p>
      )}
      {files.length > 0 && (
        <ul className="row wrap small" style={{ padding: '0.5rem 0.7rem 0' }} aria-label="Attachments">
          {files.map((f, i) => (
            <li key={i} className="tag">
              {f.name}{' '}
              <button
                className="btn quiet icon"
                aria-label={`Remove ${f.name}`}
                onClick={() => setFiles(files.filter((x) => x !== f))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {can('member') && !isCompleted && !isMissing && (
        <form
          className="chat-form"
          onSubmit={(e) => {
            e.preventDefault();
            submit();
          }}
        >
          <label className="btn icon" title="Attach files">
            <span aria-hidden>+</span>
            <input
              className="hide"
              type="file"
              multiple
              aria-label="Attach files"
              onChange={(e) => {
                void attach(e.target.files);
                e.target.value = '';
              }}
            />
          </label>
          <textarea
            ref={box}
            className="input grow"
            rows={1}
            aria-label="Message"
            placeholder="Message"
            value={text}
            onChange={(e) => setText(e.target.value)}
            onKeyDown={(e) => {
              if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) {
                e.preventDefault();
                submit();
              }
            }}
          />
          {open && <Button onClick={() => answer({ type: 'cancel', turn_id: open })}>Cancel</Button>}
          <Button kind="main" type="submit" disabled={state !== 'open' || (text.trim() === '' && files.length === 0)}>
            Send
          </Button>
        </form>
      )}
    </section>
  );
}

function LineView({
  line,
  conversation,
  onSend,
}: {
  line: Line;
  conversation: string;
  onSend: (frame: Record<string, unknown>) => boolean;
}) {
  switch (line.kind) {
    case 'person':
      return (
        <div className="said me">
          <p className="break">
            <Inert text={line.text} />
          </p>
          {line.attachments?.map((a, i) => (
            <p key={i} className="small soft">
              {a.name ?? a.media_type}
            </p>
          ))}
        </div>
      );
    case 'answer':
      return line.text === '' ? null : (
        <div className="said">
          <Markdown text={line.text} />
          {line.cut && (
            <p className="small faint">
              {line.cut === 'length' ? 'The answer was cut because it is too long.' : 'The model refused to go on.'}
            </p>
          )}
        </div>
      );
    case 'tool':
      return <ToolLine line={line} onSend={onSend} />;
    case 'media':
      return (
        <div className="said">
          {line.text && (
            <p>
              <Inert text={line.text} />
            </p>
          )}
          {line.attachments.map((a) => {
            const url = `/api/conversations/${conversation}/media/${a.hash}?workspace=${encodeURIComponent(currentWorkspace())}`;
            return (
              <p key={a.hash}>
                <MediaLink conversation={conversation} hash={a.hash ?? ''} name={a.name ?? a.media_type} url={url} />
              </p>
            );
          })}
        </div>
      );
    case 'end':
      return (
        <p className={line.state === 'failed' ? 'minus' : 'soft'} role="status">
          The turn {line.state === 'failed' ? 'failed' : 'was cancelled'}
          {line.message && (
            <>
              : <Inert text={line.message} />
            </>
          )}
          .
        </p>
      );
  }
}

// MediaLink saves a file that an agent sent. It is never opened in the page, since its content is not trusted.
function MediaLink({ conversation, hash, name }: { conversation: string; hash: string; name: string; url: string }) {
  const notify = useNotify();
  const save = async () => {
    const answer = await fetch(`/api/conversations/${conversation}/media/${hash}`, {
      headers: { 'X-Workspace-Id': currentWorkspace() },
    });
    if (!answer.ok) return notify.failed(new Error(`the file cannot be read (${answer.status})`));
    const url = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <Button onClick={() => void save()}>
      Save <Inert text={name} />
    </Button>
  );
}

function ToolLine({
  line,
  onSend,
}: {
  line: Line & { kind: 'tool' };
  onSend: (frame: Record<string, unknown>) => boolean;
}) {
  const { can } = useAccess();
  const [isDenying, setDenying] = useState(false);
  const ended = line.isCancelled ? 'cancelled' : line.isFailed ? 'failed' : 'done';
  const state = line.result !== undefined || line.isCancelled ? ended : line.approval ? 'parked' : 'running';
  const waits = state === 'parked';
  return (
    <details className="tool-line" open={waits || undefined}>
      <summary>
        <span className="mono strong">{line.tool}</span>
        <span className="grow" />
        <StateTag state={state} />
      </summary>
      <div className="body">
        {line.preview && <PreviewView preview={line.preview} />}
        <ArgsView args={JSON.stringify(line.args ?? {})} />
        {line.result !== undefined && <JSONView text={line.result} label="Result" />}
        {line.operation && (
          <Link to="/operations/$id" params={{ id: line.operation }}>
            {state === 'done' ? 'Explain, undo' : 'Explain'}
          </Link>
        )}
        {waits && can('member') && (
          <div className="row">
            <Button kind="main" onClick={() => onSend({ type: 'approve', approval_id: line.approval })}>
              Approve
            </Button>
            <Button onClick={() => setDenying(true)}>Deny…</Button>
          </div>
        )}
      </div>
      {isDenying && (
        <Reason
          title={`Deny ${line.tool}?`}
          verb="Deny"
          help="The agent receives this text."
          onClose={() => setDenying(false)}
          locked={waits ? undefined : 'This call was decided.'}
          onGive={async (comment) => {
            if (onSend({ type: 'deny', approval_id: line.approval, comment })) setDenying(false);
          }}
        />
      )}
    </details>
  );
}
