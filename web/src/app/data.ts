import { api, ok, type Schemas } from '../api/client';
import { useLive } from '../ui/kit';

export const INBOX_TOPICS = [
  'inbox',
  'approvals',
  'proposals',
  'operations',
  'items',
  'script_jobs',
  'schedules',
  'budgets',
  'control',
];

/** useInbox reads everything that waits for a person. */
export function useInbox() {
  return useLive(['inbox'], (signal) => ok(api.GET('/api/inbox', { signal })), { topics: INBOX_TOPICS });
}

/** countInbox returns how many entries wait. */
export function countInbox(inbox: Schemas['Inbox'] | undefined): number {
  return inbox?.count.total ?? 0;
}

/** useStatus reads the server's status: version, stop, hold. */
export function useStatus() {
  return useLive(['status'], (signal) => ok(api.GET('/api/status', { signal })), { topics: ['control'] });
}

/** useAgents reads all agents. */
export function useAgents() {
  return useLive(['agents'], (signal) => ok(api.GET('/api/agents', { params: { query: { limit: 500 } }, signal })),
    { topics: ['agents', 'control'] });
}

/** useAgentName returns a function from an agent's id to its name. */
export function useAgentName(): (id: string) => string {
  const agents = useAgents();
  return (id) => agents.data?.agents?.find((a) => a.id === id)?.name ?? id;
}

/** useTools reads the catalogue. */
export function useTools() {
  return useLive(['tools'], (signal) => ok(api.GET('/api/tools', { signal })), { topics: ['tools'] });
}
