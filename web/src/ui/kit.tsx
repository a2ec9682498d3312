import { useId, useLayoutEffect, type ButtonHTMLAttributes, type MouseEvent, type ReactNode } from 'react';
import { useQuery, type QueryKey, type UseQueryResult } from '@tanstack/react-query';
import type { QueryMeta } from '../api/events';
import { useFieldError } from './field-errors';
import { Failure, Loading } from './states';
import { stateTone, stateLabel, type Tone } from './tone';

/**
 * Button is a button of one of four kinds. A disabled one ignores clicks but keeps the focus, which a browser takes from
 * a control with the disabled attribute.
 */
export function Button({ kind = '', className = '', disabled, onClick, ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & {
  kind?: '' | 'main' | 'bad' | 'quiet' | 'icon' | 'quiet icon';
}) {
  const click = (e: MouseEvent<HTMLButtonElement>) => {
    if (disabled) e.preventDefault(); // nor does Enter send the form
    else onClick?.(e);
  };
  return (
    <button type="button" className={`btn ${kind} ${className}`} aria-disabled={disabled || undefined} onClick={click}
      {...rest} />
  );
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

/** Page is a screen with a title, actions and content. up is a link to the list that the page belongs to. */
export function Page({ title, tag, up, actions, children }: {
  title: ReactNode; tag?: ReactNode; up?: ReactNode; actions?: ReactNode; children: ReactNode;
}) {
  return (
    <div className="page">
      <div className="page-head">
        {up && <nav className="up small" aria-label="Back">{up}</nav>}
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

/**
 * Field is a labelled control. The control gets its id from the function. In a dialog, a field with the name of a field of
 * the request shows what the server says about it.
 */
export function Field({ label, help, error, name, children }: {
  label: string; help?: string; error?: string; name?: string; children: (id: string) => ReactNode;
}) {
  const id = useId();
  const refused = useFieldError(name);
  const wrong = error || (refused && `${label.replace(/ \(.*\)$/, '')} ${refused}.`);
  useLayoutEffect(() => {
    const control = document.getElementById(id);
    const notes = [help && `${id}help`, wrong && `${id}error`].filter(Boolean).join(' ');
    if (notes) control?.setAttribute('aria-describedby', notes);
    else control?.removeAttribute('aria-describedby');
    if (wrong) control?.setAttribute('aria-invalid', 'true');
    else control?.removeAttribute('aria-invalid');
  });
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {help && <span className="small faint" id={`${id}help`}>{help}</span>}
      {wrong && <span className="error" role="alert" id={`${id}error`}>{wrong}</span>}
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
