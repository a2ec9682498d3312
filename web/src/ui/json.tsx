import { useMemo, type ReactNode } from 'react';
import { prettyJSON } from '../lib/diff';
import { LongText } from './diff';
import { Inert } from './text';

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g;

/** JSONView shows JSON in colours. Other text is shown as it is. */
export function JSONView({ text, label = 'JSON' }: { text: string; label?: string }) {
  const pretty = useMemo(() => prettyJSON(text), [text]);
  const parts = useMemo(() => colour(pretty), [pretty]);
  return (
    <pre className="code json" tabIndex={0} role="group" aria-label={label}>
      {parts}
    </pre>
  );
}

function colour(text: string): ReactNode[] {
  if (text.length > 100_000 || !/^[[{"]/.test(text)) return [<Inert key={0} text={text} />];
  const out: ReactNode[] = [];
  let at = 0;
  for (const m of text.matchAll(TOKEN)) {
    if (m.index > at) out.push(<Inert key={out.length} text={text.slice(at, m.index)} />);
    const kind = m[1] ? (m[2] ? 'k' : 's') : 'n';
    out.push(
      <span key={out.length} className={kind}>
        <Inert text={m[1] ?? m[0]} />
      </span>,
    );
    if (m[2]) out.push(m[2]);
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push(<Inert key={out.length} text={text.slice(at)} />);
  return out;
}

/** ArgsView shows the arguments of a call. Long texts get their own block, so that line ends are visible. */
export function ArgsView({ args }: { args: string }) {
  let value: unknown;
  try {
    value = JSON.parse(args);
  } catch {
    return <JSONView text={args} label="Arguments" />;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return <JSONView text={args} label="Arguments" />;
  const entries = Object.entries(value);
  if (entries.length === 0) return <p className="faint small">No arguments</p>;
  return (
    <dl className="facts">
      {entries.map(([name, v]) => (
        <ArgRow key={name} name={name} value={v} />
      ))}
    </dl>
  );
}

function ArgRow({ name, value }: { name: string; value: unknown }) {
  const long =
    typeof value === 'string'
      ? value.length > 120 || value.includes('\n')
      : typeof value === 'object' && value !== null;
  return (
    <>
      <dt className="mono"><Inert text={name} /></dt>
      <dd>
        {!long ? (
          <span className="mono break"><Inert text={typeof value === 'string' ? value : JSON.stringify(value)} /></span>
        ) : typeof value === 'string' && value.length > 20_000 ? (
          <LongText text={value} />
        ) : typeof value === 'string' ? (
          <pre className="code" tabIndex={0} role="group" aria-label={name}><Inert text={value} /></pre>
        ) : (
          <JSONView text={JSON.stringify(value)} label={name} />
        )}
      </dd>
    </>
  );
}
