import { Component, useEffect, useRef, type ReactNode } from 'react';
import { Link } from '@tanstack/react-router';
import { ApiError } from '../api/client';
import { explainRefusal, fieldName, sentence } from '../lib/problem';
import { useInDialog, useUnshown } from './field-errors';
import { Inert } from './text';

/** Loading stands for content that has not arrived. */
export function Loading({ rows = 5 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className="skel" style={{ width: `${90 - ((i * 17) % 50)}%` }} />
      ))}
    </div>
  );
}

/** Empty says that a list is empty, and how to fill it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** LISTS are the lists that lead on from an entry which does not exist. */
const LISTS: Record<string, [string, string]> = {
  runs: ['/runs', 'All runs'], operations: ['/runs', 'All runs'],
  approvals: ['/inbox', 'Inbox'], 'change-sets': ['/inbox', 'Inbox'],
  agents: ['/agents', 'All agents'], tools: ['/tools', 'All tools'], automations: ['/automations', 'All automations'],
  chat: ['/chat', 'All conversations'],
};

/** Failure shows what is wrong, what to do, and the id of the request. In a dialog it scrolls into view. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const e = error instanceof ApiError ? error : null;
  const isInDialog = useInDialog();
  const box = useRef<HTMLDivElement>(null);
  const said = e ? explainRefusal(e)
    : { title: sentence(error instanceof Error ? error.message : String(error)), hint: '', fields: [] };
  const fields = useUnshown(said.fields);
  useEffect(() => {
    if (isInDialog) box.current?.scrollIntoView({ block: 'nearest' });
  }, [isInDialog, error]);
  const isMissing = e?.status === 404;
  const list = isMissing && !isInDialog ? LISTS[location.pathname.split('/')[1] ?? ''] : undefined;
  return (
    <div className="state error" role="alert" ref={box}>
      <h2><Inert text={said.title} /></h2>
      {said.hint && <p><Inert text={said.hint} /></p>}
      {fields.length > 0 && (
        <ul>
          {fields.map((f) => (
            <li key={f.path + f.message}>
              <code>{fieldName(f.path)}</code> <Inert text={f.message} />
            </li>
          ))}
        </ul>
      )}
      {e?.requestId && (
        <p className="small soft">
          Request <code>{e.requestId}</code>
        </p>
      )}
      {list && <Link className="btn" to={list[0]}>{list[1]}</Link>}
      {retry && !isMissing && (
        <button className="btn" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Boundary shows a failure instead of a blank page when a screen breaks. */
export class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown };
  static getDerivedStateFromError(error: unknown) {
    return { error };
  }
  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failure error={this.state.error} retry={() => this.setState({ error: null })} />;
  }
}
