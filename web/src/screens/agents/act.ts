import { useQueryClient } from '@tanstack/react-query';
import { useNotify } from '../../ui/toast';

/** useAgentAct returns a function that changes an agent, says how it ended, and reads the agent again. */
export function useAgentAct(id: string) {
  const notify = useNotify();
  const queries = useQueryClient();
  return async (request: Promise<unknown>, text: string) => {
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
    }
    void queries.invalidateQueries({ predicate: (q) => q.queryKey.includes(id) || q.queryKey[0] === 'agents' });
  };
}
