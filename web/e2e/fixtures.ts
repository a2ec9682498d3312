import { spawn, execFileSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test as base, expect, type Locator, type Page } from '@playwright/test';
// @ts-expect-error the helper is plain JavaScript, so that it also runs without Playwright
import { api, seed } from './seed.mjs';

/** Seeded has the ids of what seed created. */
export interface Seeded {
  writer: string;
  clerk: string;
  conversation: string;
  triage: string;
}

/** Server is a running bin/reeve with its own data directory and database. */
export class Server {
  private process: ChildProcess | undefined;
  private constructor(
    readonly url: string,
    readonly dir: string,
    private args: string[],
  ) {}
  link = '';

  /** start runs a server with sample data on a free port. */
  static async start(database: 'sqlite' | 'postgres'): Promise<Server> {
    const dir = mkdtempSync(join(tmpdir(), 'reeve-e2e-'));
    const args = ['serve', '--sample', '--dir', dir];
    if (database === 'postgres') args.push('--database', createDatabase());
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const port = (probe.address() as AddressInfo).port;
    await new Promise((resolve) => probe.close(resolve));
    args.push('--listen', `127.0.0.1:${port}`);
    const server = new Server(`http://127.0.0.1:${port}`, dir, args);
    await server.run();
    return server;
  }

  /** run starts the process and waits until it is ready. */
  async run(): Promise<void> {
    // HTTP tools may reach the servers of the tests, and what is unknown is looked up without long waits.
    const env = { ...process.env, REEVE_HTTP_ALLOW: '127.0.0.1', REEVE_RETRY_FIRST: '50ms', REEVE_RETRY_ATTEMPTS: '2' };
    const child = spawn(join(import.meta.dirname, '../../bin/reeve'), this.args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    this.process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const link = /console\s+(\S+#\S+)/.exec(line);
      if (link) {
        this.link = link[1] ?? '';
        return;
      }
    }
    throw new Error('the server ended before it was ready');
  }

  /** kill ends the process without warning. */
  async kill(): Promise<void> {
    if (!this.process || this.process.exitCode !== null) return;
    const exit = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await exit;
  }

  /** token returns the owner's token. */
  get token(): string {
    return readFileSync(join(this.dir, 'owner.token'), 'utf8').trim();
  }

  /** call sends an API request as the owner, or with another token. */
  call(method: string, path: string, body?: unknown, token = this.token): Promise<any> {
    return api(this.url, token)(method, path, body);
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function createDatabase(): string {
  const server = process.env.REEVE_TEST_POSTGRES;
  if (!server) throw new Error('REEVE_TEST_POSTGRES is not set; run the tests with scripts/postgres run');
  const name = `e2e_${process.pid}_${Date.now()}`;
  execFileSync('psql', [server, '-q', '-c', `CREATE DATABASE ${name}`]);
  return server.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${name}`); // URL cannot parse an empty host
}

/** signIn signs a page in with a token. */
export async function signIn(page: Page, server: Server, token = server.token): Promise<void> {
  await page.goto(server.url);
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('navigation', { name: 'Main', exact: true })).toBeAttached();
}

/** write replaces the text of an editor as a person does. Locator.fill would make the browser restyle removed lines. */
export async function write(editor: Locator, line: string): Promise<void> {
  await editor.focus();
  await editor.press('Control+a');
  await editor.press('Delete');
  await editor.page().keyboard.insertText(line);
}

/** pressOnCard presses a key once the card of the inbox accepts decisions. */
export async function pressOnCard(page: Page, key: string): Promise<void> {
  await expect(page.locator('.inbox-card .sticky-foot button').first()).toBeEnabled();
  await page.keyboard.press(key);
}

/** furnish adds what seed leaves out because it takes time: mail, a branch, a subscription, and notes to merge. */
export async function furnish(server: Server, seeded: Seeded): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'reeve-mail-'));
  writeFileSync(
    join(dir, 'mara.mbox'),
    `From x Mon Sep  7 07:00:00 2026
Message-ID: <1@x>
From: Jane <jane@example.org>
To: mara@example.org
Subject: The budget draft
Date: Mon, 7 Sep 2026 07:00:00 +0000

A first draft of the budget.
`,
  );
  execFileSync(
    join(import.meta.dirname, '../../bin/reeve'),
    ['import', 'mail', join(dir, 'mara.mbox'), '--inbox', 'mara'],
    {
      env: { ...process.env, REEVE_URL: server.url, REEVE_TOKEN: server.token },
    },
  );
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', dir, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args]);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(dir, 'plan.md'), 'one\ntwo\n');
  git('add', 'plan.md');
  git('commit', '-q', '-m', 'first');
  await server.call('POST', 'projects', { name: 'plans', path: dir });
  const policy = { tiers: { side_effecting: 'allow', privileged: 'allow' } };
  const agent = await server.call('POST', 'agents', { name: 'editor', kind: 'engineer', lifecycle: 'active', policy });
  await server.call('POST', `agents/${agent.id}/tools`, { tool_id: 'file_write', config: { project: 'plans' } });
  const chat = await server.call('POST', 'conversations', { agent: 'editor', title: 'Second thoughts' });
  const args = { path: '/project/plan.md', content: 'one\n2\n', overwrite: true };
  await server.call('POST', `conversations/${chat.id}/turns`, { content: `file_write ${JSON.stringify(args)}` });
  await server.call('POST', `agents/${seeded.clerk}/subscriptions`, {
    class: 'key',
    name: 'TASK',
    predicate: 'entity.status == "done"',
  });
  await server.call('POST', 'notes', { content: 'The gate code of the garden is 4711' });
  await server.call('POST', 'notes', { content: 'Gate code of the garden: 4711.' });
  await server.call('POST', 'notes/consolidate', {});
  await expect.poll(async () => (await server.call('GET', 'branches')).branches[0]?.state).toBe('ready');
  rmSync(dir, { recursive: true, force: true });
}

export const test = base.extend<
  { server: Server; seeded: Seeded; signedIn: Page },
  { database: 'sqlite' | 'postgres' }
>({
  database: ['sqlite', { option: true, scope: 'worker' }],
  server: async ({ database }, use) => {
    const server = await Server.start(database);
    await use(server);
    await server.close();
  },
  seeded: async ({ server }, use) => use(await seed(server.url, server.token)),
  signedIn: async ({ page, server, seeded }, use) => {
    void seeded;
    const faults: string[] = [];
    page.on('pageerror', (e) => faults.push(e.message));
    page.on('console', (m) => {
      if (/Content Security Policy/i.test(m.text())) faults.push(m.text());
    });
    page.on('request', (r) => {
      if (!r.url().startsWith(server.url) && !/^(data|blob):/.test(r.url())) faults.push(`foreign request ${r.url()}`);
    });
    await signIn(page, server);
    await use(page);
    expect(faults).toEqual([]);
  },
});

export { expect };
