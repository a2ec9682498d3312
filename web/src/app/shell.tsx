import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { useQueryClient } from '@tanstack/react-query';
import { Button as AriaButton, Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import { signOut } from '../api/client';
import { Confirm } from '../ui/confirm';
import { Boundary } from '../ui/states';
import { useNotify } from '../ui/toast';
import { isUnsaved } from '../ui/unsaved';
import { countInbox, useInbox } from './data';
import { useKeepFocus } from './focus';
import { useKeyHelp, useKeys } from './keyboard';
import { useAccess } from './session';
import { StopBanner, StopButton } from './stop';
import { applyTheme, readTheme, type Theme } from './theme';

interface NavLink {
  to: '/inbox' | '/runs' | '/chat' | '/agents' | '/automations' | '/tools' | '/schedules' | '/subscriptions' | '/memory'
    | '/journal' | '/mail' | '/branches' | '/settings';
  label: string;
  key: string;
}

const MAIN: NavLink[] = [
  { to: '/inbox', label: 'Inbox', key: 'i' }, { to: '/runs', label: 'Runs', key: 'r' },
  { to: '/chat', label: 'Chat', key: 'c' }, { to: '/agents', label: 'Agents', key: 'a' },
];
const NAV: { group: string; links: NavLink[] }[] = [
  { group: '', links: MAIN },
  { group: 'Work', links: [
    { to: '/automations', label: 'Automations', key: 'u' }, { to: '/tools', label: 'Tools', key: 't' },
    { to: '/schedules', label: 'Schedules', key: 's' }, { to: '/subscriptions', label: 'Subscriptions', key: 'b' }] },
  { group: 'Data', links: [
    { to: '/memory', label: 'Memory', key: 'm' }, { to: '/journal', label: 'Journal', key: 'j' },
    { to: '/mail', label: 'Mail', key: 'e' }, { to: '/branches', label: 'Branches', key: 'g' }] },
  { group: 'Server', links: [{ to: '/settings', label: 'Settings', key: ',' }] },
];
const LINKS = NAV.flatMap((g) => g.links);
// PAGES are the pages of single entries that no link leads to, with the list that they belong to.
const PAGES: Record<string, { name: string; list: NavLink['to'] }> = {
  approvals: { name: 'Approval', list: '/inbox' },
  'change-sets': { name: 'Change set', list: '/inbox' },
  operations: { name: 'Operation', list: '/runs' },
};

/** Shell is the frame of every screen: navigation, workspace, stop switch, person. */
export function Shell() {
  const { workspace } = useAccess();
  const navigate = useNavigate();
  const path = useLocation({ select: (l) => l.pathname });
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const help = useKeyHelp();
  const inbox = useInbox();
  const waiting = countInbox(inbox.data);
  const more = inbox.data?.more ? '+' : '';

  const entry = PAGES[path.split('/')[1] ?? ''];
  useEffect(() => {
    const name = LINKS.find((l) => path.startsWith(l.to))?.label ?? entry?.name;
    document.title = `${waiting > 0 ? `(${waiting}${more}) ` : ''}${name ? `${name} · ` : ''}Reeve`;
  }, [path, entry, waiting, more]);

  const isFirst = useRef(true);
  useEffect(() => {
    setDrawerOpen(false);
    if (isFirst.current) isFirst.current = false;
    else if (!main.current?.contains(document.activeElement)) main.current?.focus();
  }, [path]);
  useKeepFocus(main);

  const side = useRef<HTMLElement>(null);
  const moreButton = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isDrawerOpen) side.current?.querySelector('a')?.focus();
  }, [isDrawerOpen]);
  const onDrawerKey = (e: KeyboardEvent<HTMLElement>) => {
    if (e.key !== 'Escape' || !isDrawerOpen) return;
    setDrawerOpen(false);
    moreButton.current?.focus();
  };

  useKeys('Go to', LINKS.map(({ to, label, key }) => ({
    keys: `g ${key}`, label, run: () => void navigate({ to }),
  })));
  useKeys('Page', [{
    keys: '/', label: 'Search', run: () => {
      document.querySelector<HTMLInputElement>('main input[type=search], main [data-search]')?.focus();
    },
  }]);

  const link = ({ to, label }: NavLink) => (
    <Link
      key={to}
      to={to}
      activeOptions={{ exact: false }}
      activeProps={{ 'aria-current': 'page' }}
      inactiveProps={entry?.list === to ? { 'aria-current': 'page' } : {}}
    >
      {label}
      {to === '/inbox' && waiting > 0 && <span className="count">{waiting}{more}</span>}
    </Link>
  );
  return (
    <div className="app">
      <header className="top">
        <a
          className="skip"
          href="#main"
          onClick={(e) => {
            e.preventDefault();
            main.current?.focus();
          }}
        >
          Skip to content
        </a>
        <Link to="/inbox" className="brand">
          Reeve
        </Link>
        <WorkspaceMenu />
        <span className="grow" />
        <LiveMark />
        <StopButton />
        <button
          className="btn quiet icon wide"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={help}
        >
          ?
        </button>
        <PersonMenu />
      </header>
      <nav id="side" className={isDrawerOpen ? 'side open' : 'side'} aria-label="Main" ref={side} onKeyDown={onDrawerKey}>
        {NAV.map((g) => (
          <div key={g.group}>
            {g.group && <h2>{g.group}</h2>}
            {g.links.map(link)}
          </div>
        ))}
      </nav>
      <main id="main" className="content" ref={main} tabIndex={-1} data-focused-area>
        <StopBanner />
        <Boundary key={`${workspace} ${path}`}>
          <Outlet />
        </Boundary>
      </main>
      <nav className="bottom" aria-label="Main, short">
        {MAIN.map(link)}
        <button
          ref={moreButton}
          aria-expanded={isDrawerOpen}
          aria-controls="side"
          onClick={() => setDrawerOpen(!isDrawerOpen)}
          onKeyDown={onDrawerKey}
        >
          More
        </button>
      </nav>
    </div>
  );
}

function LiveMark() {
  const { live } = useAccess();
  const text = { live: 'Live', connecting: 'Connecting', offline: 'Reconnecting' }[live];
  return (
    <span
      className="row small soft"
      role="status"
      title={live === 'live' ? 'Changes appear as they happen' : 'The connection for live changes is broken'}
    >
      <span className={`dot ${live === 'live' ? 'ok' : 'wait'}`} />
      <span className="wide">{text}</span>
      {live !== 'live' && <span className="hide">{text}</span>}
    </span>
  );
}

function WorkspaceMenu() {
  const { session, workspace, choose } = useAccess();
  const name = session.workspaces.find((w) => w.id === workspace)?.name ?? workspace;
  if (session.workspaces.length < 2) return <span className="small soft cut">{name}</span>;
  return (
    <MenuTrigger>
      <AriaButton className="btn quiet" aria-label={`Workspace ${name}`}>
        <span className="cut">{name}</span> ▾
      </AriaButton>
      <Popover className="menu-pop">
        <Menu className="menu" onAction={(key) => choose(String(key))}>
          {session.workspaces.map((w) => (
            <MenuItem key={w.id} id={w.id} className="menu-item" textValue={w.name}>
              <span className="grow">{w.name}</span>{w.id === workspace && '✓'}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

function PersonMenu() {
  const { session } = useAccess();
  const queries = useQueryClient();
  const notify = useNotify();
  const help = useKeyHelp();
  const [theme, setTheme] = useState<Theme>(readTheme);
  const [isLeaving, setLeaving] = useState(false);
  const act = async (key: string) => {
    if (key === 'system' || key === 'light' || key === 'dark') {
      applyTheme(key);
      setTheme(key);
    } else if (key === 'keys') help();
    else if (isUnsaved()) setLeaving(true);
    else await leave().catch(notify.failed);
  };
  const leave = async () => {
    await signOut();
    sessionStorage.clear(); // what the person typed is for nobody else
    queries.setQueryData(['session'], null); // closes every page, so that none asks again
    setTimeout(() => location.assign('/signin'));
  };
  const themes: [Theme, string][] = [
    ['system', 'Theme of the device'],
    ['light', 'Light theme'],
    ['dark', 'Dark theme'],
  ];
  return (
    <>
      <MenuTrigger>
        <AriaButton className="btn quiet" aria-label={`Account of ${session.user}`}>
          <span className="cut">{session.user}</span> ▾
        </AriaButton>
        <Popover className="menu-pop" placement="bottom end">
          <Menu className="menu" onAction={(key) => void act(String(key))}>
            {themes.map(([id, label]) => (
              <MenuItem key={id} id={id} className="menu-item" textValue={label}>
                <span className="grow">{label}</span>{theme === id && '✓'}
              </MenuItem>
            ))}
            <MenuItem id="keys" className="menu-item">Keyboard shortcuts</MenuItem>
            <MenuItem id="out" className="menu-item" textValue="Sign out">Sign out</MenuItem>
          </Menu>
        </Popover>
      </MenuTrigger>
      {isLeaving && (
        <Confirm
          title="Sign out and lose what you typed?"
          action="Sign out"
          run={leave}
          onClose={() => setLeaving(false)}
        >
          <p>It is not saved.</p>
        </Confirm>
      )}
    </>
  );
}
