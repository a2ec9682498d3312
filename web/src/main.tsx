import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { ApiError, onForbidden } from './api/client';
import { KeyboardProvider } from './app/keyboard';
import { router } from './app/router';
import { SessionGate } from './app/session';
import { followDevice } from './app/theme';
import { Toasts } from './ui/toast';
import './app/style.css';

followDevice();

// React Aria adds a style element unless one with this id exists. The content security policy forbids such elements.
const styles = document.createElement('meta');
styles.id = 'react-aria-pressable-style';
document.head.append(styles);

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Infinity, // the event stream says when data is stale
      gcTime: 5 * 60_000,
      retry: (failures, error) =>
        failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 502),
      refetchOnWindowFocus: false,
      networkMode: 'always', // the server may be on this machine, so being offline says nothing
    },
  },
});
queries.getQueryCache().subscribe((e) => {
  const error = e.type === 'updated' && e.action.type === 'error' ? e.action.error : null;
  if (error instanceof ApiError && error.status === 401) void queries.invalidateQueries({ queryKey: ['session'] });
});
// The person's role may have been lowered: what they can no longer do disappears.
onForbidden(() => void queries.invalidateQueries({ queryKey: ['session'] }));

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Toasts>
          <KeyboardProvider>
            <SessionGate>
              <RouterProvider router={router} />
            </SessionGate>
          </KeyboardProvider>
        </Toasts>
      </QueryClientProvider>
    </StrictMode>,
  );
}
