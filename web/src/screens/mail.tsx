import { useEffect, useState } from 'react';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { api, ok, type Schemas } from '../api/client';
import { formatTime } from '../lib/format';
import { Button, Facts, Page, Panel, Ready, StateTag, useLive } from '../ui/kit';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';
import { useTyped } from '../ui/typed';

interface Search {
  query: string;
  inbox: string;
  cursors: string[];
}

/** MailScreen searches imported mail, shows a mail as text, and lists imports. */
export function MailScreen() {
  const { q = '', inbox = '' } = useSearch({ from: '/mail' });
  const navigate = useNavigate({ from: '/mail' });
  const [typed, setTyped] = useTyped(q);
  const [cursors, setCursors] = useState<string[]>([]);
  const search: Search = { query: q, inbox, cursors };
  const [open, setOpen] = useState<Schemas['MailHit'] | null>(null);
  const boxes = useLive(['mailboxes'], (signal) => ok(api.GET('/api/mail/inboxes', { signal })), { topics: ['mail'] });
  useEffect(() => {
    setOpen(null);
    setCursors([]);
  }, [q, inbox]);
  const begin = (change: { q?: string; inbox?: string }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  return (
    <Page title="Mail">
      <Ready query={boxes}>
        {(list) =>
          (list.mailboxes ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No mail">
                <p>
                  Import a mailbox with <code>reeve import mail FILE</code>.
                </p>
              </Empty>
            </div>
          ) : (
            <>
              <form
                className="row wrap"
                role="search"
                onSubmit={(e) => {
                  e.preventDefault();
                  begin({ q: typed || undefined });
                }}
              >
                <input
                  type="search"
                  className="input mail-query"
                  aria-label="Search mail"
                  placeholder={'budget OR forecast  "a phrase"  -draft  from:jane  subject:invoice'}
                  value={typed}
                  onChange={(e) => setTyped(e.target.value)}
                />
                <select
                  className="input"
                  aria-label="Mailbox"
                  value={search.inbox}
                  onChange={(e) => begin({ inbox: e.target.value || undefined })}
                >
                  <option value="">All mailboxes</option>
                  {(list.mailboxes ?? []).map((b) => (
                    <option key={b.name} value={b.name}>
                      {b.name} ({b.messages.toLocaleString('en')})
                    </option>
                  ))}
                </select>
                <Button kind="main" type="submit">
                  Search
                </Button>
              </form>
              <div className="mail" data-open={open ? '' : undefined}>
                <Hits
                  search={search}
                  open={open}
                  onOpen={setOpen}
                  onMore={(next) => setCursors((old) => [...old, next])}
                />
                <div className="mail-message">
                  {open ? (
                    <Message hit={open} onClose={() => setOpen(null)} />
                  ) : (
                    <div className="panel">
                      <Empty title="No mail is open">
                        <p>Choose a mail from the list.</p>
                      </Empty>
                    </div>
                  )}
                </div>
              </div>
            </>
          )
        }
      </Ready>
      <Imports />
    </Page>
  );
}

function Hits({
  search,
  open,
  onOpen,
  onMore,
}: {
  search: Search;
  open: Schemas['MailHit'] | null;
  onOpen: (hit: Schemas['MailHit']) => void;
  onMore: (cursor: string) => void;
}) {
  const query = useLive(
    ['mail-search', search],
    async (signal) => {
      const read = (cursor?: string) =>
        ok(
          api.GET('/api/mail/search', {
            params: {
              query: { query: search.query || undefined, inbox: search.inbox || undefined, cursor, limit: 20 },
            },
            signal,
          }),
        );
      const pages = [await read()];
      for (const cursor of search.cursors) pages.push(await read(cursor));
      return {
        hits: pages.flatMap((p) => p.emails ?? []),
        next: pages.at(-1)?.next_cursor,
        note: pages.map((p) => p.note).find(Boolean),
      };
    },
    { topics: ['mail'] },
  );
  return (
    <div className="panel mail-list">
      <Ready query={query}>
        {(page) => (
          <>
            {page.note && (
              <p className="small soft mail-note">
                <Inert text={page.note} />
              </p>
            )}
            {page.hits.length === 0 ? (
              <Empty title="No mail matches">
                <p>Try fewer words, or another mailbox.</p>
              </Empty>
            ) : (
              <ul aria-label="Mails">
                {page.hits.map((hit) => (
                  <li key={`${hit.inbox} ${hit.message_id}`} className="entry" data-current={hit === open || undefined}>
                    <button className="entry-open" onClick={() => onOpen(hit)}>
                      <span className="row">
                        <span className="strong cut grow">
                          <Inert text={hit.subject || '(no subject)'} />
                        </span>
                        {hit.date && (
                          <span className="small faint">
                            <Ago time={hit.date} />
                          </span>
                        )}
                      </span>
                      <span className="small soft cut mail-line">
                        <Inert text={hit.sender} />
                      </span>
                      <span className="small faint mail-snippet">
                        <Snippet text={hit.snippet} />
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
            )}
            {page.next && (
              <footer className="mail-note">
                <Button onClick={() => onMore(page.next ?? '')}>Show more</Button>
              </footer>
            )}
          </>
        )}
      </Ready>
    </div>
  );
}

const ENTITIES: Record<string, string> = {
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
  '&#34;': '"',
  '&#39;': "'",
  '&quot;': '"',
};

// Snippet shows the excerpt of a search result. The server marks matches, escapes everything
// else, and names the parts. A subject without a match is left out, because it stands above.
function Snippet({ text }: { text: string }) {
  const short = text
    .replace(/^Subject: [^<]*? \| Body: /, '')
    .replace(/^Subject: /, '')
    .replace(' | Body: ', ' · ');
  return short.split(/(<mark>[\s\S]*?<\/mark>)/).map((piece, i) => {
    const plain = piece.replace(/<\/?mark>/g, '').replace(/&(?:lt|gt|amp|quot|#3[49]);/g, (e) => ENTITIES[e] ?? e);
    return piece.startsWith('<mark>') ? (
      <mark key={i}>
        <Inert text={plain} />
      </mark>
    ) : (
      <Inert key={i} text={plain} />
    );
  });
}

function Message({ hit, onClose }: { hit: Schemas['MailHit']; onClose: () => void }) {
  const query = useLive(
    ['mail-message', hit.inbox, hit.message_id],
    (signal) =>
      ok(
        api.GET('/api/mail/message', {
          params: { query: { message_id: hit.message_id, inbox: hit.inbox } },
          signal,
        }),
      ),
    { topics: ['mail'] },
  );
  return (
    <article className="panel" aria-label="Mail">
      <header>
        <h2 className="grow break">
          <Inert text={hit.subject || '(no subject)'} />
        </h2>
        <Button kind="quiet" onClick={onClose}>
          Close
        </Button>
      </header>
      <div className="body stack">
        <Ready query={query}>
          {(m) => (
            <>
              <Facts
                facts={[
                  ['From', <Inert key="f" text={m.sender_name ? `${m.sender_name} <${m.sender}>` : m.sender} />],
                  ['To', <Inert key="t" text={(m.to ?? m.recipients ?? []).join(', ')} />],
                  ['Cc', m.cc?.length && <Inert key="c" text={m.cc.join(', ')} />],
                  ['Date', m.date && formatTime(m.date)],
                  ['Mailbox', <Inert key="m" text={`${m.inbox}${m.folder ? ` / ${m.folder}` : ''}`} />],
                ]}
              />
              <p className="break mail-body">
                <Inert text={m.body} />
              </p>
              {m.truncated_bytes ? (
                <p className="small soft">
                  {m.truncated_bytes.toLocaleString('en')} bytes of the text were not imported.
                </p>
              ) : null}
              {m.attachments?.length ? (
                <section className="stack tight">
                  <h3>Attachments</h3>
                  <ul className="small">
                    {m.attachments.map((a, i) => (
                      <li key={i}>
                        <Inert text={a.name} />{' '}
                        <span className="faint">
                          <Inert text={a.type} />, {a.size.toLocaleString('en')} bytes
                        </span>
                      </li>
                    ))}
                  </ul>
                  <p className="small faint">Their content is not imported.</p>
                </section>
              ) : null}
              <p className="small faint">Other people wrote this. It is shown as text: nothing in it runs or loads.</p>
            </>
          )}
        </Ready>
      </div>
    </article>
  );
}

function Imports() {
  const imports = useLive(
    ['imports'],
    (signal) => ok(api.GET('/api/mail/imports', { params: { query: { limit: 50 } }, signal })),
    { topics: ['mail'] },
  );
  return (
    <Panel title="Imports">
      <Ready query={imports}>
        {(list) =>
          (list.imports ?? []).length === 0 ? (
            <Empty title="No imports yet">
              <p>
                Start one with <code>reeve import mail FILE</code>.
              </p>
            </Empty>
          ) : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Imports">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Source</th>
                    <th scope="col">State</th>
                    <th scope="col">Added</th>
                    <th scope="col">Unreadable</th>
                    <th scope="col">Began</th>
                  </tr>
                </thead>
                <tbody>
                  {(list.imports ?? []).map((i) => (
                    <tr key={i.id}>
                      <td className="break">
                        <Inert text={i.source} />
                      </td>
                      <td>
                        <StateTag state={i.state} />
                      </td>
                      <td className="num">{i.added}</td>
                      <td className="num">{i.unreadable}</td>
                      <td>
                        <Ago time={i.started_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
    </Panel>
  );
}
