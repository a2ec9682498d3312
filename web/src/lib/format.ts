/** formatDuration shows a number of milliseconds, such as 340 ms, 2.4 s or 3 min 12 s. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** some shows a number of things: 1 run, 2 runs. From the limit of a list on it says or more. */
export function some(n: number, one: string, many = `${one}s`, limit = Infinity): string {
  return `${n >= limit ? `${limit} or more` : n.toLocaleString('en')} ${n === 1 ? one : many}`;
}

/** formatAgo shows how long ago, or in how long, a time is. */
export function formatAgo(time: string | number | Date, now: number): string {
  const diff = now - new Date(time).getTime();
  const abs = Math.abs(diff);
  const [n, unit] = abs < 5000 ? [0, ''] : abs < 60_000 ? [Math.round(abs / 1000), 's']
    : abs < 3_600_000 ? [Math.round(abs / 60_000), 'min']
    : abs < 86_400_000 ? [Math.round(abs / 3_600_000), 'h'] : [Math.round(abs / 86_400_000), 'd'];
  if (unit === '') return 'now';
  return diff >= 0 ? `${n} ${unit} ago` : `in ${n} ${unit}`;
}

/** formatFiring shows the time of a firing, with its weekday. */
export function formatFiring(time: string): string {
  return new Date(time).toLocaleString(undefined, {
    weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit',
  });
}

/** formatMicros shows an amount of micro-dollars. */
export function formatMicros(micros: number): string {
  const dollars = micros / 1e6;
  return `$${dollars.toFixed(dollars !== 0 && Math.abs(dollars) < 0.01 ? 4 : 2)}`;
}

/** formatAmount shows what a call or run spent, in few words. Empty if nothing was spent. */
export function formatAmount(
  a: { calls?: number; micros?: number; millis?: number; tokens?: number } | undefined,
): string {
  if (!a) return '';
  const parts: string[] = [];
  if (a.micros) parts.push(formatMicros(a.micros));
  if (a.tokens) parts.push(`${compact(a.tokens)} tokens`);
  if (a.calls) parts.push(some(a.calls, 'call'));
  return parts.join(' · ');
}

/** compact shows a large number with k or M. */
export function compact(n: number): string {
  if (n < 10_000) return n.toLocaleString('en');
  return n < 1e6 ? `${(n / 1000).toFixed(0)} k` : `${(n / 1e6).toFixed(1)} M`;
}

/** shortId shows the end of an id, which differs most. */
export function shortId(id: string): string {
  const bar = id.indexOf('_');
  return bar < 0 || id.length <= bar + 9 ? id : `${id.slice(0, bar + 1)}…${id.slice(-6)}`;
}

/** formatTime shows a time in the person's zone, to the second. */
export function formatTime(time: string): string {
  return new Date(time).toLocaleString(undefined, {
    year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
  });
}

/** countBytes returns the length of text in bytes, as the server counts it. */
export function countBytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
