import { useEffect, useState } from 'react';
import { formatDuration } from '../../lib/format';

/** Elapsed shows how long something took, or takes so far. It ticks without asking the server. */
export function Elapsed({ from, to }: { from: string; to?: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (to) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [to]);
  return <span className="num">{formatDuration((to ? Date.parse(to) : now) - Date.parse(from))}</span>;
}
