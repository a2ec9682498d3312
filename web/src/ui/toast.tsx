import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';
import { ApiError } from '../api/client';
import { sentence } from './states';
import { Inert } from './text';

interface Toast {
  id: number;
  text: string;
  isError: boolean;
  detail?: string;
}

interface Notify {
  done: (text: string) => void;
  failed: (error: unknown) => void;
}

const Context = createContext<Notify>({ done: () => {}, failed: () => {} });

/** useNotify returns functions that tell the person that something is done or failed. */
export function useNotify(): Notify {
  return useContext(Context);
}

/** Toasts shows notices at the corner of the page. Errors stay until they are dismissed. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((old) => old.filter((t) => t.id !== id)), []);
  const notify = useMemo<Notify>(() => {
    let next = 1;
    const add = (toast: Omit<Toast, 'id'>) => {
      const id = next++;
      setToasts((old) => [...old.slice(-3), { ...toast, id }]);
      if (!toast.isError) setTimeout(() => drop(id), 5000);
    };
    return {
      done: (text) => add({ text, isError: false }),
      failed: (error) => {
        const e = error instanceof ApiError ? error : null;
        add({
          text: sentence(error instanceof Error ? error.message : String(error)),
          detail: [e?.hint && sentence(e.hint), e?.requestId && `Request ${e.requestId}`].filter(Boolean).join(' '),
          isError: true,
        });
      },
    };
  }, [drop]);
  return (
    <Context.Provider value={notify}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((t) => (
          <div key={t.id} className={t.isError ? 'toast bad' : 'toast'}>
            <div className="grow">
              <Inert text={t.text} />
              {t.detail && <div className="small soft"><Inert text={t.detail} /></div>}
            </div>
            <button className="btn quiet icon" aria-label="Dismiss" onClick={() => drop(t.id)}>×</button>
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}
