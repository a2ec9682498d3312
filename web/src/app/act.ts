import { useQueryClient } from '@tanstack/react-query';
import { useNotify } from '../ui/toast';

/** useAct returns a function that sends a change, says how it ended, and reads the queries with the given keys again. */
export function useAct(...keys: string[]): (request: Promise<unknown>, text: string) => Promise<boolean> {
  const notify = useNotify();
  const queries = useQueryClient();
  return async (request, text) => {
    let isDone = true;
    try {
      await request;
      notify.done(text);
    } catch (e) {
      notify.failed(e);
      isDone = false;
    }
    void queries.invalidateQueries({ predicate: (q) => keys.includes(String(q.queryKey[0])) });
    return isDone;
  };
}

/** useRefresh returns a function that reads the queries with the given keys again. */
export function useRefresh(...keys: string[]): () => void {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ predicate: (q) => keys.includes(String(q.queryKey[0])) });
}
