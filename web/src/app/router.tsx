import type { ComponentType } from 'react';
import { createRootRoute, createRoute, createRouter, Link, redirect } from '@tanstack/react-router';
import { InboxScreen } from '../screens/inbox/inbox';
import { Page } from '../ui/kit';
import { lazyPart } from '../ui/lazy';
import { Empty, Failure, Loading } from '../ui/states';
import { Shell } from './shell';

const root = createRootRoute({ component: Shell });

type Loader = () => Promise<Record<string, unknown>>;

// part returns a screen whose code loads when it is first opened.
function part(load: Loader, name: string) {
  return lazyPart(async () => (await load())[name] as ComponentType);
}

// screen makes the route of a part without search parameters.
function screen<P extends string>(path: P, load: Loader, name: string) {
  return createRoute({ getParentRoute: () => root, path, component: part(load, name) });
}

// text reads a search parameter. The router reads ?q=12 as a number.
const text = (value: unknown) => (value === undefined || value === null || value === '' ? undefined : String(value));

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/inbox', replace: true });
  },
});
const signin = createRoute({
  getParentRoute: () => root,
  path: '/signin',
  beforeLoad: () => {
    throw redirect({ to: '/inbox', replace: true });
  },
});
const inbox = createRoute({
  getParentRoute: () => root, path: '/inbox', component: InboxScreen,
  validateSearch: (s: Record<string, unknown>): { open?: string } => ({ open: text(s.open) }),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: '/runs',
  component: part(() => import('../screens/runs/runs'), 'RunsScreen'),
  validateSearch: (s: Record<string, unknown>): { agent?: string; state?: string } => ({
    agent: text(s.agent),
    state: text(s.state),
  }),
});
const memory = createRoute({
  getParentRoute: () => root,
  path: '/memory',
  component: part(() => import('../screens/memory'), 'MemoryScreen'),
  validateSearch: (s: Record<string, unknown>): { q?: string } => ({ q: text(s.q) }),
});
const mail = createRoute({
  getParentRoute: () => root,
  path: '/mail',
  component: part(() => import('../screens/mail'), 'MailScreen'),
  validateSearch: (s: Record<string, unknown>): { q?: string; inbox?: string } => ({
    q: text(s.q),
    inbox: text(s.inbox),
  }),
});

const routes = root.addChildren([
  home, signin, inbox, runs, memory, mail,
  screen('/approvals/$id', () => import('../screens/inbox/pages'), 'ApprovalScreen'),
  screen('/change-sets/$id', () => import('../screens/inbox/pages'), 'ChangeSetScreen'),
  screen('/runs/$id', () => import('../screens/runs/run'), 'RunScreen'),
  screen('/operations/$id', () => import('../screens/operation'), 'OperationScreen'),
  screen('/chat', () => import('../screens/chat/chat'), 'ChatScreen'),
  screen('/chat/$id', () => import('../screens/chat/chat'), 'ChatScreen'),
  screen('/agents', () => import('../screens/agents/agents'), 'AgentsScreen'),
  screen('/agents/$id', () => import('../screens/agents/agent'), 'AgentScreen'),
  screen('/tools', () => import('../screens/tools/tools'), 'ToolsScreen'),
  screen('/tools/$id', () => import('../screens/tools/tools'), 'ToolScreen'),
  screen('/automations', () => import('../screens/automations/automations'), 'AutomationsScreen'),
  screen('/automations/$id', () => import('../screens/automations/automation'), 'AutomationScreen'),
  screen('/schedules', () => import('../screens/schedules/schedules'), 'SchedulesScreen'),
  screen('/subscriptions', () => import('../screens/subscriptions'), 'SubscriptionsScreen'),
  screen('/journal', () => import('../screens/journal/journal'), 'JournalScreen'),
  screen('/branches', () => import('../screens/branches'), 'BranchesScreen'),
  screen('/settings', () => import('../screens/settings/settings'), 'SettingsScreen'),
  screen('/settings/$section', () => import('../screens/settings/settings'), 'SettingsScreen'),
]);

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingComponent: () => <Loading />,
  defaultErrorComponent: ({ error }) => <Failure error={error} retry={() => location.reload()} />,
  defaultNotFoundComponent: () => (
    <Page title="This page does not exist">
      <div className="panel"><Empty title="Check the address"><p>The address is wrong, or the entry was deleted.</p>
        <Link className="btn" to="/inbox">Go to the inbox</Link></Empty></div>
    </Page>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
