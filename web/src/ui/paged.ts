import { useInfiniteQuery, type QueryKey } from '@tanstack/react-query';
import type { QueryMeta } from '../api/events';

/** usePages reads a list page by page with its cursor. pick returns the rows of a page. */
export function usePages<P extends { next_cursor?: string }, T>(key: QueryKey, meta: QueryMeta,
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<P>, pick: (page: P) => T[]) {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor || undefined,
    meta,
  });
  const rows = query.data?.pages.flatMap(pick);
  const more = () => {
    if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
  };
  return { query, rows, more };
}
