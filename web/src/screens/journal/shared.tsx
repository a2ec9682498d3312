import { api, ok, type Schemas } from '../../api/client';
import { formatDuration } from '../../lib/format';
import { Tag } from '../../ui/kit';
import { Inert } from '../../ui/text';

/** STATUSES are the states of a task. */
export const STATUSES = ['open', 'groomed', 'in_progress', 'blocked', 'on_hold', 'done', 'rejected'] as const;

/** readChanges reads who changed what, of one entity or of all. */
export const readChanges = (signal: AbortSignal, entity?: string) =>
  ok(api.GET('/api/changes', { params: { query: { entity, limit: 200 } }, signal }));

/** clock shows the time of day. */
export const clock = (time: string) => new Date(time).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

/** Spent shows a time entry. */
export function Spent({ entry, title }: { entry: Schemas['TimeEntry']; title?: string }) {
  const from = Date.parse(entry.started_at);
  return (
    <span className="row">
      <span className="soft">
        {new Date(from).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })} {clock(entry.started_at)}
      </span>
      <span className="grow break">
        {title && <Inert text={title} />}
        {entry.note && (
          <span className="soft">
            {' '}
            <Inert text={entry.note} />
          </span>
        )}
      </span>
      {entry.ended_at ? (
        <span>{formatDuration(Date.parse(entry.ended_at) - from)}</span>
      ) : (
        <Tag tone="run">running</Tag>
      )}
    </span>
  );
}
