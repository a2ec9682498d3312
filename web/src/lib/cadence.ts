/** Kind is how a schedule repeats. */
export type Kind = 'cron' | 'interval' | 'once';

/** UNITS are the units of an interval, by their name in a cadence. */
export const UNITS = { m: 'minutes', h: 'hours', d: 'days' } as const;

const MINUTES = { m: 1, h: 60, d: 24 * 60 } as const;

/** When is what a person enters about the times of a schedule. */
export interface When {
  kind: Kind;
  cron: string;
  every: string;
  unit: keyof typeof UNITS;
  at: string; // local to the browser, as an input of the type datetime-local has it
}

/** NEVER_SET is what a new schedule starts with. */
export const NEVER_SET: When = { kind: 'cron', cron: '0 7 * * 1-5', every: '2', unit: 'h', at: '' };

/** cadenceOf returns what the server calls the value of a cadence, or an empty text if something is missing. */
export function cadenceOf(w: When): string {
  if (w.kind === 'cron') return w.cron.trim();
  if (w.kind === 'once') return Number.isNaN(Date.parse(w.at)) ? '' : new Date(w.at).toISOString();
  const n = Number(w.every);
  return n > 0 ? `${n}${w.unit}` : '';
}

/** whenOf returns what a person enters for the cadence of a schedule. next is its next firing. */
export function whenOf(kind: Kind, value: string, next?: string): When {
  if (kind === 'cron') return { ...NEVER_SET, kind, cron: value };
  if (kind === 'once') return { ...NEVER_SET, kind, at: localTime(next ?? value) };
  const minutes = minutesOf(value);
  const unit = (['d', 'h', 'm'] as const).find((u) => minutes % MINUTES[u] === 0) ?? 'm';
  return { ...NEVER_SET, kind, every: String(minutes / MINUTES[unit]), unit };
}

/** minutesOf returns the length of an interval such as 1d, 1h30m or 90s. */
function minutesOf(interval: string): number {
  let minutes = 0;
  for (const [, n, unit] of interval.matchAll(/([\d.]+)([dhms])/g)) {
    minutes += Number(n) * (unit === 's' ? 1 / 60 : MINUTES[unit as keyof typeof MINUTES]);
  }
  return minutes;
}

function localTime(time: string): string {
  const t = new Date(time);
  if (Number.isNaN(t.getTime())) return '';
  return new Date(t.getTime() - t.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
