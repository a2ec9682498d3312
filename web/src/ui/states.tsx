import { Component, type ReactNode } from 'react';
import { ApiError } from '../api/client';
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

/** Failure shows what is wrong, what to do, and the id of the request. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const e = error instanceof ApiError ? error : null;
  return (
    <div className="state error" role="alert">
      <h2>
        <Inert text={sentence(error instanceof Error ? error.message : String(error))} />
      </h2>
      {e?.hint && (
        <p>
          <Inert text={sentence(e.hint)} />
        </p>
      )}
      {e && e.fields.length > 0 && (
        <ul>
          {e.fields.map((f) => (
            <li key={f.path + f.message}>
              <code>{f.path}</code> <Inert text={f.message} />
            </li>
          ))}
        </ul>
      )}
      {e?.requestId && (
        <p className="small soft">
          Request <code>{e.requestId}</code>
        </p>
      )}
      {retry && (
        <button className="btn" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** sentence gives an error text a capital letter and a full stop. */
export function sentence(text: string): string {
  if (text === '') return text;
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
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
