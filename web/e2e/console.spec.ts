import { expect, pressOnCard, signIn, test } from './fixtures';

test('C01 the printed link signs in once, and signing out ends the session', async ({ page, server, context }) => {
  await page.goto(server.link);
  await expect(page).toHaveURL(/\/inbox$/);
  await expect(page.getByRole('heading', { name: 'Inbox', level: 1 })).toBeVisible();
  const cookie = (await context.cookies()).find((c) => c.name === 'reeve_session');
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await expect(page).toHaveURL(/\/signin$/);
  await expect(page.getByLabel('Access token')).toBeVisible();
  const answer = await fetch(`${server.url}/api/session`, { headers: { cookie: `reeve_session=${cookie?.value}` } });
  expect(answer.status).toBe(401);
  await page.goto('about:blank');
  await page.goto(server.link);
  await expect(page.getByRole('alert')).toBeVisible();
  await expect(page.getByLabel('Access token')).toBeVisible();
});

test('C03 C05 the inbox counts what waits, and the keyboard decides', async ({ signedIn: page, server }) => {
  await expect(page).toHaveTitle(/^\(\d+\) Inbox/);
  const before = (await server.call('GET', 'approvals?state=pending')).approvals.length;
  await expect(page.getByRole('heading', { level: 2, name: /file_write/ })).toBeVisible();
  await pressOnCard(page, 'a');
  await expect
    .poll(async () => (await server.call('GET', 'approvals?state=pending')).approvals.length)
    .toBe(before - 1);
  const [approved] = (await server.call('GET', 'approvals?state=approved')).approvals;
  expect(approved.tool).toBe('file_write');
  await page.goto(`${server.url}/inbox`);
  await expect(page.getByRole('heading', { level: 2, name: /users_send/ })).toBeVisible();
  await pressOnCard(page, 'd');
  await page.getByLabel('Reason').fill('Ada decides on Monday');
  await page.getByRole('button', { name: 'Deny', exact: true }).click();
  await expect
    .poll(async () => (await server.call('GET', 'approvals?state=denied')).approvals[0]?.comment)
    .toBe('Ada decides on Monday');
});

test('C05 j and k move, g goes, ? shows the keys', async ({ signedIn: page }) => {
  const current = page.locator('[data-current]');
  await expect(current).toContainText('file_write');
  await page.keyboard.press('j');
  await expect(current).toContainText('users_send');
  await page.keyboard.press('k');
  await expect(current).toContainText('file_write');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard' })).toContainText('Approve');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await expect(page).toHaveURL(/\/runs$/);
});

test('C04 C24 a card shows what would change, and hostile text as text', async ({ signedIn: page }) => {
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('New figures arrived from the warehouse');
  await expect(card.locator('.diff-line.add').first()).toContainText('Orders are up by 6 %.');
  await expect(card).toContainText('verifiable');
  await expect(card).toContainText('can be undone afterwards');
  await page.keyboard.press('j');
  await expect(card).toContainText('Delivery <b>late</b>');
  await expect(card).toContainText('cannot be undone');
  await expect(card.locator('.ctl', { hasText: 'RLO' })).toBeVisible();
});

test('C07 a card whose call was answered elsewhere locks', async ({ signedIn: page, server }) => {
  const card = page.locator('.inbox-card');
  await page.locator('.entry', { hasText: 'file_write' }).locator('.entry-open').click();
  await expect(card.getByRole('button', { name: /^Approve/ })).toBeVisible();
  const pending = (await server.call('GET', 'approvals?state=pending')).approvals;
  const shown = pending.find((a: { tool: string }) => a.tool === 'file_write');
  await server.call('POST', `approvals/${shown.id}/decision`, { decision: 'deny' });
  await expect(card.getByText('This call was denied.')).toBeVisible();
  await expect(card.getByRole('button', { name: /^Approve/ })).toHaveCount(0);
});

test('C08 several calls are decided at once, one decision each', async ({ signedIn: page, server }) => {
  const first = page.locator('.entry').first();
  await expect(page.locator('.inbox-card h2').first()).toBeVisible();
  await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
  const top = (await first.boundingBox())?.y;
  await page.getByRole('checkbox', { name: 'Select file_write' }).check();
  expect((await first.boundingBox())?.y).toBe(top); // nothing moves under the pointer
  await page.getByRole('checkbox', { name: 'Select users_send' }).check();
  await page.getByRole('checkbox', { name: 'Select file_delete' }).check();
  await page.getByRole('button', { name: 'Approve 3' }).click();
  await expect(page.locator('.toasts')).toContainText('Approved 3');
  await expect
    .poll(async () => (await server.call('GET', 'approvals?state=approved')).approvals.length)
    .toBeGreaterThanOrEqual(2);
  await expect
    .poll(
      async () =>
        (await server.call('GET', 'proposals')).proposals.find((p: { tool: string }) => p.tool === 'file_delete').state,
    )
    .toBe('applied');
});

test('C02 C12 an operation is explained and undone', async ({ signedIn: page, server }) => {
  const ops = (await server.call('GET', 'operations?state=committed')).operations;
  const op = ops.find((o: { undo?: unknown }) => o.undo);
  await page.goto(`${server.url}/operations/${op.id}`);
  await expect(page.locator('.ladder li')).not.toHaveCount(0);
  await expect(page.locator('.ladder')).toContainText('approval');
  await expect(page.locator('.panel', { has: page.getByRole('heading', { name: 'Undo' }) })).toContainText(
    op.undo.tool,
  );
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(page.getByText(/^(Undone|The undo is a proposal)/).first()).toBeVisible();
});

test('C10 C11 runs are listed and filtered, and a run shows its steps', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/runs`);
  await expect(page.locator('.virtual a')).not.toHaveCount(0);
  await page.getByLabel('State').selectOption('completed');
  await expect(page).toHaveURL(/state=completed/);
  await page.locator('.virtual a', { hasText: 'clerk' }).first().click();
  await page.getByRole('button', { name: /^memory_search/ }).click();
  await expect(page.getByRole('dialog')).toContainText('query');
});

test('C13 a chat streams, and loses and repeats nothing when the server is killed', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  await page.goto(`${server.url}/chat/${seeded.conversation}`);
  const log = page.getByRole('log');
  await expect(log).toContainText('memory_search says');
  await page.getByLabel('Message', { exact: true }).fill('hello <img src=x onerror=alert(1)>');
  await page.keyboard.press('Enter');
  await expect(log.locator('.said.me')).toHaveCount(2);
  await expect(log.locator('.said.me').last()).toContainText('<img src=x');
  await expect(log.locator('.said:not(.me)')).toHaveCount(2);
  await expect(log).toContainText('You said: hello <img src=x onerror=alert(1)>');
  const before = await log.innerText();
  await server.kill();
  await expect(page.getByText('Connection lost')).toBeVisible();
  await server.run();
  await expect(page.getByText('Connection lost')).toHaveCount(0);
  expect(await log.innerText()).toBe(before);
  await page.getByLabel('Message', { exact: true }).fill('again');
  await page.keyboard.press('Enter');
  await expect(log.locator('.said.me')).toHaveCount(3);
});

test('C14 an agent is created, gets a tool and a policy, and is destroyed', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/agents`);
  await page.getByRole('button', { name: 'New agent' }).click();
  await page.getByLabel('Name').fill('helper');
  await page.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'helper' })).toBeVisible();
  await page.getByRole('button', { name: 'Attach a tool' }).click();
  await page.getByRole('dialog').getByLabel('Tool').selectOption('file_read');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await page.getByRole('radio', { name: 'file_read: deny' }).click();
  await expect
    .poll(
      async () =>
        (await server.call('GET', 'agents')).agents.find((a: { name: string }) => a.name === 'helper').policy.tools
          ?.file_read,
    )
    .toBe('deny');
  await page.getByRole('button', { name: 'Destroy…' }).click();
  await page.getByRole('button', { name: 'Destroy', exact: true }).click();
  await expect(page.getByText('destroyed', { exact: true })).toBeVisible();
});

test('C21 the stop switch says what it holds, and stays visible until resumed', async ({ signedIn: page }) => {
  await page.getByRole('button', { name: 'Stop all' }).click();
  await expect(page.getByRole('dialog')).toContainText('This holds');
  await page.getByLabel(/^Reason/).fill('fire drill');
  await page.getByRole('button', { name: 'Stop all agents' }).click();
  await expect(page.getByRole('alert')).toContainText('fire drill');
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('All agents are stopped since')).toHaveCount(0);
});

test('C24 a viewer sees no button that would be refused', async ({ page, server, seeded }) => {
  const viewer = await server.call('POST', 'tokens', { name: 'reader', role: 'viewer' });
  await signIn(page, server, viewer.token);
  await expect(page.getByRole('heading', { level: 2, name: /file_write/ })).toBeVisible();
  for (const path of [
    '/inbox',
    `/agents/${seeded.writer}`,
    '/schedules',
    '/memory',
    `/automations/${seeded.triage}`,
    '/settings',
  ]) {
    await page.goto(server.url + path);
    await expect(page.locator('h1')).toBeVisible();
    await expect(
      page.getByRole('button', {
        name: /^(Approve|Deny|Accept|Reject|Stop|Destroy|Attach|Delete|Forget|New|Run|Plan|Pause)/,
      }),
    ).toHaveCount(0);
  }
});

test('C24 buttons disappear when a role is lowered', async ({ page, server, seeded }) => {
  void seeded;
  const { token, ...made } = await server.call('POST', 'tokens', { name: 'helper', role: 'member' });
  await signIn(page, server, token);
  await page.goto(`${server.url}/memory`);
  const add = page.getByRole('button', { name: 'New note' }).first();
  await add.click();
  const form = page.getByRole('dialog');
  await form.getByRole('textbox', { name: 'What to remember' }).fill('A note');
  await server.call('PATCH', `tokens/${made.id}`, { role: 'viewer' });
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByRole('alert')).toBeVisible();
  await expect(form.getByRole('textbox', { name: 'What to remember' })).toHaveValue('A note'); // to be copied
  await form.getByRole('button', { name: 'Cancel' }).click();
  await expect(add).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Stop' })).toHaveCount(0);

  await server.call('PATCH', `tokens/${made.id}`, { role: 'member' });
  await page.goto(`${server.url}/inbox`);
  await expect(page.getByRole('button', { name: /^Approve/ })).toBeVisible();
  await expect(page.getByText('Live', { exact: true }).first()).toBeVisible();
  await server.call('PATCH', `tokens/${made.id}`, { role: 'viewer' }); // the person clicks nothing
  await expect(page.getByRole('button', { name: /^Approve/ })).toHaveCount(0);
});

test('C24 the title of a dialog marks hidden characters', async ({ signedIn: page, server }) => {
  const [schedule] = (await server.call('GET', 'schedules')).schedules;
  await server.call('PATCH', `schedules/${schedule.id}`, { name: 'Morning \u202Eyrammus' });
  await page.goto(`${server.url}/schedules`);
  await page.getByRole('button', { name: 'Edit' }).first().click();
  await expect(page.getByRole('dialog').getByRole('heading', { level: 2 }).locator('.ctl')).toHaveText('RLO');
});

test('C25 the first screen is small, and an idle page asks nothing', async ({ signedIn: page, server }) => {
  const sizes: number[] = [];
  const client = await page.context().newCDPSession(page);
  await client.send('Network.enable');
  await client.send('Network.setCacheDisabled', { cacheDisabled: true });
  const scripts = new Set<string>();
  client.on('Network.responseReceived', (e) => {
    if (e.response.mimeType.includes('javascript')) scripts.add(e.requestId);
  });
  client.on('Network.loadingFinished', (e) => {
    if (scripts.has(e.requestId)) sizes.push(e.encodedDataLength);
  });
  await page.goto(`${server.url}/inbox`);
  await expect(page.locator('.inbox-card h2').first()).toBeVisible();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  expect(sizes.length).toBeGreaterThan(0);
  expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThan(250_000);
  const requests: string[] = [];
  page.on('request', (r) => requests.push(r.url()));
  // The sample's first run may still be going on, and the page shows what it does.
  await expect.poll(async () => {
    const before = requests.length;
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3000)));
    return requests.slice(before);
  }, { timeout: 30_000 }).toEqual([]);
});
