// load measures the console with much data, on PostgreSQL:
//   REEVE_PG_FSYNC=off scripts/postgres run scripts/browser run node web/e2e/load.mjs
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from '@playwright/test';
import { api, seed } from './seed.mjs';

const postgres = process.env.REEVE_TEST_POSTGRES ?? '';
const name = `load_${process.pid}`;
const database = postgres.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, `$1${name}`);
const sql = (text, url = database) =>
  execFileSync('psql', [url, '-q', '-v', 'ON_ERROR_STOP=1', '-t', '-A', '-c', text], { encoding: 'utf8' }).trim();
const dir = mkdtempSync(join(tmpdir(), 'reeve-load-'));
const url = `http://127.0.0.1:${7900 + (process.pid % 90)}`;

// start runs the server until it is ready.
async function start() {
  const child = spawn(
    join(import.meta.dirname, '../../bin/reeve'),
    ['serve', '--sample', '--dir', dir, '--database', database, '--listen', url.slice(7)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  for await (const line of createInterface({ input: child.stdout })) if (/console\s+\S+#/.test(line)) return child;
  throw new Error('the server ended before it was ready');
}

// copies repeats the first row of a table that matches, with other values for some columns.
const copies = (table, where, count, changes) =>
  sql(`INSERT INTO ${table} SELECT copy.*
  FROM (SELECT * FROM ${table} WHERE ${where} LIMIT 1) r, generate_series(1, ${count}) i,
  LATERAL jsonb_populate_record(NULL::${table}, to_jsonb(r) || ${changes}) copy`);

sql(`CREATE DATABASE ${name}`, postgres);
let server = await start();
const token = readFileSync(join(dir, 'owner.token'), 'utf8').trim();
const call = api(url, token);
const seeded = await seed(url, token);
await call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'ask' } } });
// A change of 5 MB: a file of 2.4 MB is replaced by another, so each line is removed and added.
const lines = (word) =>
  Array.from({ length: 40_000 }, (_, i) => `${word} ${i} ${'lorem ipsum dolor sit amet '.repeat(2)}`).join('\n');
const write = (content) =>
  call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/big.txt', overwrite: true, content },
  });
await call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'allow' } } });
await write(lines('old'));
await call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'ask' } } });
const big = (await write(lines('new'))).approval_id;
server.kill('SIGKILL');

const run = `run_${'9'.repeat(26)}`;
const thread = `${seeded.writer}:run:${run}`;
copies(
  'runs',
  `state = 'completed' AND parent_id = ''`,
  100_000,
  `jsonb_build_object('id', 'run_' || lpad(i::text, 26, '0'),
  'run_key', 'load' || i, 'started_at', r.started_at - i * 1000, 'finished_at', r.started_at - i * 1000 + i % 90000)`,
);
copies(
  'runs',
  `state = 'completed' AND parent_id = ''`,
  1,
  `jsonb_build_object('id', '${run}', 'run_key', 'steps', 'agent_id', '${seeded.writer}',
  'thread_id', '${thread}', 'finished_at', r.started_at + 500000, 'session_id', '')`,
);
copies(
  'calls',
  `state = 'committed' AND tool = 'file_write' AND length(args) < 1000`,
  5000,
  `jsonb_build_object('id', 'msg_' || '8' || lpad(i::text, 25, '0'), 'thread_id', '${thread}',
  'run_id', '${run}', 'operation_id', 'op_load' || i, 'result_id', 'msg_' || '7' || lpad(i::text, 25, '0'), 'created_at', r.created_at + i * 100, 'updated_at', r.created_at + i * 100 + 80)`,
);
copies(
  'calls',
  `state = 'parked' AND tool = 'users_send'`,
  1000,
  `jsonb_build_object('id', 'msg_' || '6' || lpad(i::text, 25, '0'), 'operation_id', 'op_wait' || i)`,
);
copies(
  'approvals',
  `state = 'pending' AND tool = 'users_send'`,
  1000,
  `jsonb_build_object('id', 'apr_' || '6' || lpad(i::text, 25, '0'), 'operation_id', 'op_wait' || i,
  'call_id', 'msg_' || '6' || lpad(i::text, 25, '0'))`,
);
for (const [at, type] of [
  [1, 'turn_started'],
  [2, 'message_complete'],
  [3, 'turn_complete'],
]) {
  copies(
    'frames',
    `body::text LIKE '%"${type}"%'`,
    5000,
    `jsonb_build_object('n', 100 + i * 3 + ${at}, 'frame_key', 'load${at}:' || i, 'turn_id', 'run_load' || i,
    'body', replace(r.body::text, r.turn_id, 'run_load' || i))`,
  );
}
sql('ANALYZE');
server = await start();

const browser = await chromium.launch({
  executablePath: process.env.REEVE_TEST_CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'],
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.addInitScript(() => {
  window.longTasks = [];
  new PerformanceObserver((list) =>
    window.longTasks.push(...list.getEntries().map((e) => Math.round(e.duration))),
  ).observe({ type: 'longtask', buffered: true });
});
await page.goto(url);
await page.getByLabel('Access token').fill(token);
await page.getByRole('button', { name: 'Sign in' }).click();
await page.getByRole('navigation', { name: 'Main', exact: true }).waitFor();

// measure opens a path in a fresh page and waits until it shows what act returns.
async function measure(title, path, act) {
  await page.goto('about:blank');
  const begin = performance.now();
  await page.goto(url + path, { waitUntil: 'commit' });
  await act(page);
  const ms = Math.round(performance.now() - begin);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const { tasks, heap, nodes } = await page.evaluate(() => ({
    tasks: window.longTasks,
    heap: performance.memory.usedJSHeapSize,
    nodes: document.querySelectorAll('*').length,
  }));
  console.log(
    `${title.padEnd(52)} ${String(ms).padStart(6)} ms  longest task ${String(Math.max(0, ...tasks)).padStart(5)} ms  ${(heap / 1e6).toFixed(0).padStart(4)} MB  ${nodes} elements`,
  );
}
const row = (p) => p.locator('.virtual a').first().waitFor();
for (let round = 1; round <= 2; round++) {
  console.log(`round ${round}`);
  await measure('inbox, small first load', '/inbox', (p) => p.locator('.inbox-card h2').first().waitFor());
  await measure('100,000 runs, first page', '/runs', row);
  await measure('100,000 runs, scrolled through 2,000', '/runs', async (p) => {
    await row(p);
    for (let seen = 0; seen < 2000 * 40;) {
      seen = await p.locator('.virtual').evaluate((el) => {
        el.scrollTop += 4000;
        return el.scrollTop;
      });
      await p.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    }
  });
  await measure('run of 5,000 steps', `/runs/${run}`, (p) => p.locator('.wf-row').first().waitFor());
  await measure('1,000 waiting approvals', '/inbox', (p) => p.locator('.inbox-card h2').first().waitFor());
  await measure('change of 5 MB, its beginning', `/approvals/${big}`, (p) => p.locator('.diff-line').first().waitFor());
  await measure('change of 5 MB, whole', `/approvals/${big}`, async (p) => {
    await p.getByRole('button', { name: 'Show the whole change' }).click();
    await p.getByText('Read the rest before you decide').waitFor({ state: 'detached', timeout: 60_000 });
  });
  await measure('thread of 10,000 messages', `/chat/${seeded.conversation}`, (p) =>
    p.locator('.said:not(.me)').last().waitFor(),
  );
}
await browser.close();
server.kill('SIGKILL');
sql(`DROP DATABASE ${name} WITH (FORCE)`, postgres);
rmSync(dir, { recursive: true, force: true });
