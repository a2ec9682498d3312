import type { Schemas } from '../../api/client';

/** Entry is one thing that waits for a person. */
export type Entry = { key: string; at: string; title: string; agent: string } & (
  | { kind: 'approval'; data: Schemas['Approval'] }
  | { kind: 'unknown'; data: Schemas['Operation'] }
  | { kind: 'proposal'; data: Schemas['Proposal'] }
  | { kind: 'item'; data: Schemas['WaitingItem'] }
  | { kind: 'question'; data: Schemas['ScriptJob'] }
  | { kind: 'schedule'; data: Schemas['Timer'] }
  | { kind: 'budget'; data: Schemas['Budget'] }
);

export type EntryKind = Entry['kind'];

/** GROUPS are the kinds of entries in the order of the inbox. */
export const GROUPS: [EntryKind, string][] = [
  ['approval', 'Approvals'],
  ['unknown', 'Unknown outcomes'],
  ['proposal', 'Proposals'],
  ['item', 'Items that need attention'],
  ['question', 'Questions'],
  ['schedule', 'Failed schedules'],
  ['budget', 'Spent budgets'],
];

/** listEntries returns what waits, in the order of the page: by kind, oldest first. */
export function listEntries(inbox: Schemas['Inbox']): Entry[] {
  const out: Entry[] = [
    ...(inbox.approvals ?? []).map((data): Entry => ({
      kind: 'approval',
      key: data.id,
      at: data.created_at,
      title: data.tool,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.unknown ?? []).map((data): Entry => ({
      kind: 'unknown',
      key: data.id,
      at: data.updated_at,
      title: data.tool,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.proposals ?? []).map((data): Entry => ({
      kind: 'proposal',
      key: data.id,
      at: data.created_at,
      title: data.tool,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.items ?? []).map((data): Entry => ({
      kind: 'item',
      key: `${data.agent_id}/${data.id}`,
      at: data.updated_at,
      title: data.title || data.id,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.questions ?? []).map((data): Entry => ({
      kind: 'question',
      key: data.id,
      at: data.created_at,
      title: data.question ?? data.request,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.schedules ?? []).map((data): Entry => ({
      kind: 'schedule',
      key: data.id,
      at: data.updated_at,
      title: data.name,
      agent: data.agent_id,
      data,
    })),
    ...(inbox.budgets ?? []).map((data): Entry => ({
      kind: 'budget',
      key: `budget:${data.subject}`,
      at: '',
      title: 'Budget is spent',
      agent: data.subject.replace(/^agent:/, ''),
      data,
    })),
  ];
  const order = new Map(GROUPS.map(([kind], i) => [kind, i]));
  return out.sort(
    (a, b) =>
      (order.get(a.kind) ?? 0) - (order.get(b.kind) ?? 0) || a.at.localeCompare(b.at) || a.key.localeCompare(b.key),
  );
}

/** subtitle returns the argument that tells most about a call: a path, name or title, else the first text. */
export function subtitle(args: string | undefined): string {
  if (!args) return '';
  try {
    const value = JSON.parse(args) as Record<string, unknown>;
    const texts = Object.entries(value).filter((e): e is [string, string] => typeof e[1] === 'string' && e[1] !== '');
    const best = texts.find(([k]) => /path|title|name|command|to$|url|id$/i.test(k)) ?? texts[0];
    return best ? (best[1].split('\n')[0]?.slice(0, 200) ?? '') : '';
  } catch {
    return '';
  }
}
