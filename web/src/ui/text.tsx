import { Fragment, useEffect, useState } from 'react';
import { splitControls } from '../lib/inert';
import { formatAgo, formatTime, shortId } from '../lib/format';

/** Inert shows text that an agent or a stranger wrote. Hidden and direction-changing characters appear as marks. */
export function Inert({ text }: { text: string }) {
  return (
    <>
      {splitControls(text).map((piece, i) =>
        'text' in piece ? (
          <Fragment key={i}>{piece.text}</Fragment>
        ) : (
          <span key={i} className="ctl" title={`hidden character ${piece.name}`}>
            {piece.name}
          </span>
        ),
      )}
    </>
  );
}

/** Ago shows how long ago a time is, and the exact time as a title. It ticks without asking the server. */
export function Ago({ time }: { time?: string }) {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((n) => n + 1), 15_000);
    return () => clearInterval(timer);
  }, []);
  if (!time) return <>–</>;
  return (
    <time dateTime={time} title={formatTime(time)} className="num">
      {formatAgo(time, Date.now())}
    </time>
  );
}

/** Id shows a short id with the whole id as its title. */
export function Id({ id }: { id: string }) {
  return (
    <code title={id} className="faint">
      {shortId(id)}
    </code>
  );
}
