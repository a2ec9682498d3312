import { useId, type ButtonHTMLAttributes, type ReactNode } from 'react';
import { useQuery, type QueryKey, type UseQueryResult } from '@tanstack/react-query';
import type { QueryMeta } from '../api/events';
import { Failure, Loading } from './states';
import { stateTone, stateLabel, type Tone } from './tone';

/** Button is a button of one of four kinds. */
export function Button({ kind = '', className = '', ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: '' | 'main' | 'bad' | 'quiet' | 'icon' | 'quiet icon';
}) {
  return <button type="button" className={`btn ${kind} ${className}`} {...rest} />;
}

/** Tag is a short word with the colour of a state. */
export function Tag({ tone = 'none', children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`tag ${tone}`}>{children}</span>;
}

/** StateTag shows the state of a run, call, approval, item or agent. */
export function StateTag({ state }: { state: string }) {
  return <Tag tone={stateTone(state)}>{stateLabel(state)}</Tag>;
}

/** Panel is a box with a heading. */
export function Panel({ title, aside, children, footer }: {
  title?: ReactNode; aside?: ReactNode; children: ReactNode; footer?: ReactNode;
}) {
  return (
    <section className="panel">
      {title && (
        <header>
          <h2 className="grow">{title}</h2>
          {aside}
        </header>
      )}
      {children}
      {footer && <footer>{footer}</footer>}
    </section>
  );
}

/** Page is a screen with a title, actions and content. */
export function Page({ title, tag, actions, children }: {
  title: ReactNode; tag?: ReactNode; actions?: ReactNode; children: ReactNode;
}) {
  return (
    <div className="page">
      <div className="page-head">
        <h1>{title}</h1>
        {tag}
        {actions && <div className="actions">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

/** Facts is a list of names and values. Empty values are left out. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {facts.filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false).map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

/** Field is a labelled control. The control gets its id from the function. */
export function Field({ label, help, error, children }: {
  label: string; help?: string; error?: string; children: (id: string) => ReactNode;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {help && <span className="small faint">{help}</span>}
      {error && <span className="error" role="alert">{error}</span>}
    </div>
  );
}

/** useLive reads data and reads it again when a change of one of the topics (and of id, if given) arrives. */
export function useLive<T>(key: QueryKey, read: (signal: AbortSignal) => Promise<T>, meta: QueryMeta,
  options: { enabled?: boolean } = {}): UseQueryResult<T> {
  return useQuery<T>({ queryKey: key, queryFn: ({ signal }) => read(signal), meta, ...options });
}

/** Ready shows content when data is there, and the loading or error state otherwise. */
export function Ready<T>({ query, early, children }: {
  query: UseQueryResult<T>; early?: T; children: (data: T) => ReactNode; // early is shown until all data is there
}) {
  const data = query.data ?? (query.isError ? undefined : early);
  if (data !== undefined) return <>{children(data)}</>;
  if (query.isError) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return <Loading />;
}
