import { once } from 'node:events';
import { createServer, type AddressInfo, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, pressOnCard, signIn, test } from './fixtures';

type Row = { id: string; tool: string; state: string; operation_id: string };

test('C02 on a fresh server three clicks approve, explain and undo an action', async ({ page, server }) => {
  await page.goto(server.link);
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('The week at Fernhill Nursery');
  await expect(card.locator('.diff-line.add').first()).toBeVisible();
  await expect.poll(async () => (await server.call('GET', 'runs')).runs[0]?.state).toBe('completed'); // the plan to apply
  await card.getByRole('button', { name: /^Approve/ }).click();
  await card.getByRole('link', { name: 'See what happened' }).click();
  await expect(page.locator('.ladder')).toContainText('approved by owner');
  await expect(page.getByRole('heading', { level: 1, name: 'file_write' })).toBeVisible();
  const undo = page.getByRole('region', { name: 'Undo' });
  await expect(undo).toContainText('delete /shared/week.md');
  await undo.getByRole('button', { name: 'Undo' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'file_delete' })).toBeVisible();
  const ops = (await server.call('GET', 'operations')).operations as Row[];
  expect(ops.map((o) => `${o.tool} ${o.state}`)).toEqual(
    expect.arrayContaining(['file_write committed', 'file_delete committed']),
  );
});

test('C05 the list of keys is complete while the card loads, and the page works offline', async ({
  signedIn: page,
}) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/api/approvals/*/card', async (route) => {
    await held;
    await route.continue().catch(() => {}); // the page may have aborted it
  });
  await page.reload();
  const current = page.locator('[data-current]');
  const keys = page.getByRole('dialog', { name: 'Keyboard' });
  await expect(current).toContainText('file_write');
  await page.keyboard.press('?');
  for (const label of ['Approve', 'Deny with a reason', 'Edit the arguments', 'Next entry', 'Select or unselect'])
    await expect(keys).toContainText(label);
  await page.keyboard.press('Escape');
  await expect(keys).toHaveCount(0);
  await page.keyboard.press('a'); // nothing is shown yet, so nothing is approved
  await page.evaluate(() => window.dispatchEvent(new Event('offline'))); // a browser without a network still reaches the server
  await page.keyboard.press('j');
  await expect(current).toContainText('users_send');
  await page.keyboard.press('k');
  await expect(current).toContainText('file_write');
  release();
  await expect(page.locator('.inbox-card')).toContainText('New figures arrived');
  await page.keyboard.press('?');
  await expect(keys).toContainText('Approve');
  await expect(keys).toContainText('Edit the arguments');
});

test('C05 C06 arguments are edited by keyboard, shown as a diff, and the original is replaced', async ({
  signedIn: page,
  server,
}) => {
  const before = (await server.call('GET', 'approvals?state=pending')).approvals as Row[];
  const first = before.find((a) => a.tool === 'file_write');
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('New figures arrived');
  await pressOnCard(page, 'e');
  const dialog = page.getByRole('dialog', { name: 'Edit file_write' });
  await dialog.getByLabel(/^content/).fill('# Weekly report\n\nOrders are up by 5 %.\n');
  await expect(dialog.locator('.diff')).toContainText('Orders are up by 5 %.');
  await dialog.getByRole('button', { name: 'Replace the call' }).focus();
  await page.keyboard.press('Enter');
  await expect(dialog).toHaveCount(0);
  await expect(card).toContainText('What a person changed');
  await expect(card.locator('.diff').first()).toContainText('5 %');
  await expect(card.locator('.diff').first()).toContainText('6 %');
  await expect(card.locator('.diff').first().locator('.diff-line.add')).toHaveCount(1); // lines, not one long text
  const replaced = await server.call('GET', `approvals/${first?.id}/card`);
  expect(replaced.approval).toMatchObject({ state: 'replaced', decided_by: 'owner' });
  await expect(server.call('POST', `approvals/${first?.id}/decision`, { decision: 'approve' })).rejects.toThrow(/409/);
  await pressOnCard(page, 'a');
  await expect.poll(async () => (await server.call('GET', `approvals/${replaced.replaced_by}`)).state).toBe('approved');
  const op = (await server.call('GET', `approvals/${replaced.replaced_by}`)).operation_id;
  await expect.poll(async () => (await server.call('GET', `operations/${op}`)).state).toBe('committed');
  expect((await server.call('GET', `operations/${first?.operation_id}`)).state).toBe('denied');
  await page.goto(`${server.url}/approvals/${first?.id}`);
  await expect(page.getByText('A person replaced this call.')).toBeVisible();
  await page.getByRole('link', { name: 'See the new call' }).click();
  await expect(page).toHaveURL(new RegExp(`${replaced.replaced_by}$`));
});

test('C05 a held key and a second click decide once', async ({ signedIn: page, server }) => {
  const count = async () => (await server.call('GET', 'approvals?state=pending')).approvals.length as number;
  const before = await count();
  const card = page.locator('.inbox-card');
  await pressOnCard(page, 'a');
  await page.keyboard.down('a'); // it arrives while the next card comes
  for (let i = 0; i < 20; i++) await page.keyboard.down('a'); // a held key repeats
  await page.keyboard.up('a');
  await expect(card).toContainText('Delivery');
  expect(await count()).toBe(before - 1);
  await card.getByRole('button', { name: /^Approve/ }).click();
  await expect.poll(count).toBe(before - 2);
});

test('C07 a dialog stays when somebody else decides, and typing on decides nothing', async ({
  signedIn: page,
  server,
}) => {
  const pending = (await server.call('GET', 'approvals?state=pending')).approvals as Row[];
  const of = (tool: string) => pending.find((a) => a.tool === tool)?.id;
  const deny = (tool: string) => server.call('POST', `approvals/${of(tool)}/decision`, { decision: 'deny' });
  await expect(page.locator('.inbox-card')).toContainText('New figures arrived');
  await pressOnCard(page, 'd');
  const dialog = page.getByRole('dialog', { name: 'Deny file_write?' });
  await dialog.getByLabel('Reason').pressSequentially('Wait until');
  await deny('file_write');
  await expect(dialog.getByRole('alert')).toContainText('This call was denied. The decision is by owner.');
  await page.keyboard.type(' a delay', { delay: 20 });
  await expect(dialog.getByLabel('Reason')).toHaveValue('Wait until a delay');
  await expect(dialog.getByRole('button', { name: 'Deny' })).toBeDisabled();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: /Next entry/ }).click();
  await expect(page.locator('.inbox-card')).toContainText('Delivery');
  await pressOnCard(page, 'e');
  const edit = page.getByRole('dialog', { name: 'Edit users_send' });
  await edit.getByLabel(/^title/).fill('Late');
  await deny('users_send');
  await expect(edit.getByRole('alert')).toContainText('This call was denied.');
  await expect(edit.getByLabel(/^title/)).toHaveValue('Late');
  await expect(edit.getByRole('button', { name: 'Replace the call' })).toBeDisabled();
});

test('C07 C08 a card whose base changed locks and is previewed again', async ({ signedIn: page, server, seeded }) => {
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('New figures arrived');
  await server.call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'allow' } } });
  await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/report.md', overwrite: true, content: 'Somebody else wrote this.\n' },
  });
  await expect(card.getByRole('alert')).toContainText('The target has changed since the agent asked');
  await expect(card.getByRole('button', { name: /^Approve/ })).toHaveCount(0);
  await page.getByRole('checkbox', { name: 'Select file_write' }).check();
  await page.getByRole('checkbox', { name: 'Select users_send' }).check();
  await page.getByRole('button', { name: 'Approve 2' }).click();
  await expect(page.locator('.toasts')).toContainText('Approved 1');
  await expect(page.locator('.entry', { hasText: 'file_write' })).toContainText('nothing was decided');
  await card.getByRole('button', { name: 'Preview again' }).click();
  await expect(card.locator('.diff-line.del').first()).toContainText('Somebody else wrote this.');
  await pressOnCard(page, 'a');
  await expect
    .poll(async () => (await server.call('GET', 'approvals?state=approved')).approvals.map((a: Row) => a.tool).sort())
    .toEqual(['file_write', 'users_send']);
});

test('C07 a card shows that a call or a proposal can no longer run', async ({ signedIn: page, server, seeded }) => {
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('New figures arrived');
  await server.call('DELETE', `agents/${seeded.writer}/tools/file_write`);
  await expect(card.getByRole('alert')).toContainText('An approval would run nothing');
  await expect(card.getByRole('button', { name: /^Approve/ })).toHaveCount(0);
  await page.locator('.entry', { hasText: 'file_delete' }).locator('.entry-open').click();
  await expect(card.getByRole('button', { name: /^Accept/ })).toBeEnabled();
  await server.call('POST', `agents/${seeded.writer}/tools`, { tool_id: 'file_write' });
  await server.call('PATCH', `agents/${seeded.writer}`, {
    policy: { tools: { file_write: 'allow', file_delete: 'propose' } },
  });
  await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/old.txt', overwrite: true, content: 'needed after all\n' },
  });
  await expect(card.getByRole('alert')).toContainText('Accepting it would apply nothing');
  await expect(card.getByRole('button', { name: /^Accept/ })).toHaveCount(0);
  await expect(card.getByRole('button', { name: /^Reject/ })).toBeEnabled();
});

test('C07 the dialog of a call in a chat locks when somebody else decides', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  await page.goto(`${server.url}/chat/${seeded.conversation}`);
  await page.getByLabel('Message', { exact: true }).fill('memory_save {"content":"Ferns like shade."}');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('log').getByRole('button', { name: 'Deny' }).click();
  const dialog = page.getByRole('dialog', { name: 'Deny memory_save?' });
  await dialog.getByLabel('Reason').fill('They like sun');
  const waiting = (await server.call('GET', 'approvals?state=pending')).approvals as Row[];
  await server.call('POST', `approvals/${waiting.find((a) => a.tool === 'memory_save')?.id}/decision`, {
    decision: 'approve',
  });
  await expect(dialog.getByRole('alert')).toContainText('This call was decided.');
  await expect(dialog.getByRole('button', { name: 'Deny' })).toBeDisabled();
  await expect(dialog.getByLabel('Reason')).toHaveValue('They like sun');
});

test('C04 what is hidden is marked, and an owner can reveal it', async ({
  signedIn: page,
  server,
  seeded,
  browser,
}) => {
  const secret = 'hunter2-is-a-long-secret';
  await server.call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'allow' } } });
  await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/keys.txt', content: `key=${secret}\n` },
  });
  await server.call('PUT', 'secrets/DOOR', { value: secret });
  await server.call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'ask' } } });
  await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/keys.txt', overwrite: true, content: 'key=none\n' },
  });
  const pending = (await server.call('GET', 'approvals?state=pending')).approvals as Row[];
  await page.goto(`${server.url}/approvals/${pending[0]?.id}`);
  const main = page.locator('main');
  await expect(main).toContainText('key=[REDACTED]');
  await expect(main.getByText('hidden', { exact: true })).toBeVisible();
  await main.getByRole('button', { name: 'Show what is hidden' }).click();
  await expect(main).toContainText(`key=${secret}`);
  await main.getByRole('button', { name: 'Hide' }).click();
  await expect(main).not.toContainText(secret);
  const member = await server.call('POST', 'tokens', { name: 'worker', role: 'member' });
  await expect(server.call('GET', `approvals/${pending[0]?.id}/revealed`, undefined, member.token)).rejects.toThrow(
    /403/,
  );
  const other = await (await browser.newContext()).newPage();
  await signIn(other, server, member.token);
  await other.goto(`${server.url}/approvals/${pending[0]?.id}`);
  await expect(other.locator('main')).toContainText('An owner can show it.');
  await expect(other.getByRole('button', { name: 'Show what is hidden' })).toHaveCount(0);
  const named = await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/door.txt', content: `door=${secret}\n` },
  });
  await other.goto(`${server.url}/inbox?open=${named.approval_id}`);
  await pressOnCard(other, 'e');
  await expect(other.getByRole('dialog')).toContainText('ask an owner to edit the call');
  await other.context().close();
  await page.goto(`${server.url}/inbox?open=${named.approval_id}`);
  await pressOnCard(page, 'e');
  await expect(page.getByRole('dialog').getByLabel(/^content/)).toHaveValue(new RegExp(secret));
});

test('C09 an unknown outcome shows its evidence, and a person says what happened', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  let sent = 0;
  let knows = false; // whether the other side answers at all
  const remote = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') return void response.writeHead(knows ? 200 : 503).end();
    sent++;
    if (!knows) return void request.socket.destroy();
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  }).listen(0, '127.0.0.1');
  await once(remote, 'listening');
  const base = `http://127.0.0.1:${(remote.address() as AddressInfo).port}`;
  const parameters = {
    type: 'object',
    properties: { item: { type: 'string' } },
    required: ['item'],
    additionalProperties: false,
  };
  await server.call('POST', 'tools', {
    id: 'parcel_order',
    description: 'Order a parcel',
    effect: 'verifiable',
    tier: 'side_effecting',
    timeout_ms: 1000,
    parameters,
    spec: {
      method: 'POST',
      url: `${base}/orders`,
      verify: { method: 'GET', url: `${base}/orders/{operation_id}`, applied: [200], not_applied: [404] },
    },
  });
  await server.call('POST', `agents/${seeded.clerk}/tools`, { tool_id: 'parcel_order' });
  await server.call('PATCH', `agents/${seeded.clerk}`, { policy: { tools: { parcel_order: 'allow' } } });
  const unknown = async () => ((await server.call('GET', 'inbox')).unknown ?? []) as Row[];
  for (const item of ['fern', 'moss', 'ivy']) {
    await server.call('POST', `agents/${seeded.clerk}/calls`, { tool: 'parcel_order', args: { item } });
  }
  await expect.poll(async () => (await unknown()).length, { timeout: 20_000 }).toBe(3);
  const ids = (await unknown()).map((o) => o.id);
  const card = page.locator('.inbox-card');
  const open = async (id: string | undefined) => {
    await page.goto(`${server.url}/inbox?open=${id}`);
    await expect(card).toContainText('no answer proves what happened');
    await expect(card.getByRole('group', { name: 'Arguments' })).toContainText('item');
  };
  await open(ids[0]);
  await page.route('**/lookup', (route) => route.fulfill({
    status: 503,
    contentType: 'application/problem+json',
    body: JSON.stringify({ detail: 'the endpoint could not be reached; nothing was sent', code: 'UNAVAILABLE' }),
  }), { times: 1 });
  await card.getByRole('button', { name: 'Ask the tool again' }).click();
  await expect(card.getByRole('alert')).toContainText('this says nothing about the call');
  await expect(card).not.toContainText('nothing was sent');
  await card.getByRole('button', { name: 'Ask the tool again' }).click();
  await expect(card.getByRole('status')).toContainText('cannot tell');
  knows = true;
  await card.getByRole('button', { name: 'Ask the tool again' }).click();
  await expect(card.getByRole('status')).toContainText('it happened');
  expect(sent).toBe(3); // looking up sends nothing
  await card.getByRole('button', { name: 'It happened' }).click();
  await expect.poll(async () => (await server.call('GET', `operations/${ids[0]}`)).state).toBe('committed');
  await open(ids[1]);
  await card.getByRole('button', { name: 'It did not, run it again' }).click();
  await expect.poll(async () => (await server.call('GET', `operations/${ids[1]}`)).state).toBe('committed');
  expect(sent).toBe(4);
  await open(ids[2]);
  await card.getByRole('button', { name: 'Skip' }).click();
  await expect.poll(async () => (await server.call('GET', `operations/${ids[2]}`)).resolution).toBe('skip');
  expect((await server.call('GET', `operations/${ids[2]}`)).state).toBe('unknown');
  await expect.poll(async () => (await unknown()).length).toBe(0);
  remote.close();
});
