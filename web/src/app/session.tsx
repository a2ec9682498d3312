import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { findSession, setWorkspace, type Session } from '../api/client';
import { EventStream, type Live } from '../api/events';
import { ownDrafts } from '../lib/draft';
import { Failure } from '../ui/states';
import { SignIn } from './signin';

const RANK = { viewer: 0, member: 1, owner: 2 } as const;

interface Access {
  session: Session;
  workspace: string;
  live: Live;
  /** can reports whether the person has at least this role. Buttons that need a higher role are not shown. */
  can: (role: keyof typeof RANK) => boolean;
  choose: (workspace: string) => void;
}

const Context = createContext<Access | null>(null);

/** useAccess returns who is signed in, and what they may do. */
export function useAccess(): Access {
  const access = useContext(Context);
  if (!access) throw new Error('useAccess needs a session');
  return access;
}

/** SessionGate shows the sign-in page until a person is signed in, and the console afterwards. */
export function SessionGate({ children }: { children: ReactNode }) {
  const query = useQuery({ queryKey: ['session'], queryFn: findSession, staleTime: Infinity, retry: 1 });
  if (query.data) return <SignedIn key={query.data.user} session={query.data}>{children}</SignedIn>;
  if (query.isError) {
    return <div className="signin"><Failure error={query.error} retry={() => void query.refetch()} /></div>;
  }
  if (query.data === null) return <SignIn />;
  return null;
}

function SignedIn({ session, children }: { session: Session; children: ReactNode }) {
  const queries = useQueryClient();
  const [workspace, choose] = useState(() => {
    ownDrafts(sessionStorage, session.user);
    const last = localStorage.getItem('reeve-workspace');
    return session.workspaces.find((w) => w.id === last)?.id ?? session.workspaces[0]?.id ?? 'default';
  });
  setWorkspace(workspace);
  const [live, setLive] = useState<Live>('connecting');
  useEffect(() => {
    localStorage.setItem('reeve-workspace', workspace);
    const stream = new EventStream(queries, setLive);
    return () => stream.close();
  }, [queries, workspace]);
  const access = useMemo<Access>(() => ({
    session,
    workspace,
    live,
    can: (role) => RANK[session.role] >= RANK[role],
    choose: (id) => {
      setWorkspace(id);
      choose(id);
      void queries.resetQueries({ predicate: (q) => q.queryKey[0] !== 'session' });
    },
  }), [session, workspace, live, queries]);
  return <Context.Provider value={access}>{children}</Context.Provider>;
}
