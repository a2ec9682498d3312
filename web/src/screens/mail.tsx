import { api, ok } from '../api/client';
import { Page, Panel, Ready, StateTag, useLive } from '../ui/kit';
import { Empty } from '../ui/states';
import { Ago, Inert } from '../ui/text';

/** MailScreen lists mailboxes and imports. */
export function MailScreen() {
  const boxes = useLive(['mailboxes'], (signal) => ok(api.GET('/api/mail/inboxes', { signal })), { topics: ['mail'] });
  const imports = useLive(['imports'], (signal) => ok(api.GET('/api/mail/imports', { params: { query: { limit: 50 } }, signal })), { topics: ['mail'] });
  return (
    <Page title="Mail">
      <Panel title="Mailboxes">
        <Ready query={boxes}>
          {(list) => (list.mailboxes ?? []).length === 0 ? <Empty title="No mail"><p>Import a mailbox with <code>reeve mail import FILE</code>.</p></Empty> : (
            <table className="table">
              <thead><tr><th scope="col">Mailbox</th><th scope="col">Messages</th></tr></thead>
              <tbody>{(list.mailboxes ?? []).map((b) => <tr key={b.name}><td><Inert text={b.name} /></td><td className="num">{b.messages.toLocaleString('en')}</td></tr>)}</tbody>
            </table>
          )}
        </Ready>
      </Panel>
      <Panel title="Imports">
        <Ready query={imports}>
          {(list) => (list.imports ?? []).length === 0 ? <Empty title="No imports yet" /> : (
            <div className="scroll" tabIndex={0} role="group" aria-label="Imports">
              <table className="table">
                <thead><tr><th scope="col">Source</th><th scope="col">State</th><th scope="col">Added</th><th scope="col">Unreadable</th><th scope="col">Began</th></tr></thead>
                <tbody>{(list.imports ?? []).map((i) => (
                  <tr key={i.id}><td className="break"><Inert text={i.source} /></td><td><StateTag state={i.state} /></td><td className="num">{i.added}</td>
                    <td className="num">{i.unreadable}</td><td><Ago time={i.started_at} /></td></tr>))}</tbody>
              </table>
            </div>
          )}
        </Ready>
      </Panel>
    </Page>
  );
}
