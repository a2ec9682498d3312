import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';
import { ApiError } from '../api/client';
import { explainRefusal, fieldName, sentence } from '../lib/problem';
import { Inert } from './text';

/** ToastAction is what a person can do about a notice, such as Undo. */
export interface ToastAction {
  label: string;
  run: () => void;
}

interface Toast {
  id: number;
  text: string;
  isError: boolean;
  detail?: string;
  action?: ToastAction;
}

interface Notify {
  done: (text: string, action?: ToastAction) => void;
  failed: (error: unknown) => void;
}

const Context = createContext<Notify>({ done: () => {}, failed: () => {} });

/** useNotify returns functions that tell the person that something is done or failed. */
export function useNotify(): Notify {
  return useContext(Context);
}

/**
 * Toasts shows notices at the corner of the page. Errors stay until they are dismissed. React Aria hides what is outside
 * of a dialog; the attribute says that notices stay in reach.
 */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((old) => old.filter((t) => t.id !== id)), []);
  const notify = useMemo<Notify>(() => {
    let next = 1;
    const add = (toast: Omit<Toast, 'id'>) => {
      const id = next++;
      setToasts((old) => [...old.filter((t, i) => t.isError || i >= old.length - 3), { ...toast, id }]);
      if (!toast.isError) setTimeout(() => drop(id), toast.action ? 10_000 : 5000);
    };
    return {
      done: (text, action) => add({ text, isError: false, action }),
      failed: (error) => {
        const e = error instanceof ApiError ? error : null;
        const said = e && explainRefusal(e);
        add({
          text: said ? said.title : sentence(error instanceof Error ? error.message : String(error)),
          detail: [
            ...(said?.fields.map((f) => sentence(`${fieldName(f.path)} ${f.message}`)) ?? []),
            said?.hint,
            e?.requestId && `Request ${e.requestId}`,
          ].filter(Boolean).join(' '),
          isError: true,
        });
      },
    };
  }, [drop]);
  return (
    <Context.Provider value={notify}>
      {children}
      <div className="toasts" role="status" aria-live="polite" data-react-aria-top-layer="true">
        {toasts.map((t) => (
          <div key={t.id} className={t.isError ? 'toast bad' : 'toast'}>
            <div className="grow">
              <Inert text={t.text} />
              {t.detail && <div className="small soft"><Inert text={t.detail} /></div>}
            </div>
            {t.action && (
              <button className="btn" onClick={() => { t.action?.run(); drop(t.id); }}>{t.action.label}</button>
            )}
            <button className="btn quiet icon" aria-label="Dismiss" onClick={() => drop(t.id)}>×</button>
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}
