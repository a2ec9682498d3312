import { expect, test } from './fixtures';

type Row = { id: string; tool: string; state: string; title?: string };

test('C12 a whole run is undone in reverse order, with a list of what cannot be', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  await server.call('POST', `agents/${seeded.writer}/tools`, { tool_id: 'users_send' });
  await server.call('PATCH', `agents/${seeded.writer}`, {
    policy: { tools: { file_write: 'allow', file_delete: 'allow', users_send: 'allow' } },
  });
  const lines = [
    'file_write {"path":"/shared/plan.md","content":"one"}',
    'users_send {"title":"Plan","text":"It is there"}',
    'file_write {"path":"/shared/plan.md","content":"two","overwrite":true}',
  ];
  await server.call('POST', `agents/${seeded.writer}/wake`, { input: lines.join('\n') });
  const last = async () => (await server.call('GET', `runs?agent=${seeded.writer}`)).runs[0];
  await expect.poll(async () => (await last())?.state).toBe('completed');
  const run = await last();
  await page.goto(`${server.url}/runs/${run.id}`);
  await page.getByRole('button', { name: 'Undo run…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('region', { name: 'Will be undone, in this order' }).getByRole('listitem')).toHaveCount(2);
  await expect(dialog.getByRole('region', { name: 'Cannot be undone' })).toContainText('users_send');
  await expect(dialog.getByRole('region', { name: 'Cannot be undone' })).toContainText('no undo');
  await dialog.getByRole('button', { name: 'Undo 2 changes' }).click();
  await expect(dialog.getByText('undone', { exact: true })).toHaveCount(2);
  await expect(page.getByRole('dialog', { name: 'What was undone' })).toBeVisible();
  const ops = (await server.call('GET', `operations?run=${run.id}`)).operations as Row[];
  expect(ops.map((o) => o.tool)).toEqual(['file_delete', 'file_restore', 'file_write', 'users_send', 'file_write']);
  expect(ops.filter((o) => o.state !== 'committed')).toEqual([]);

  // The page of an undo says what it undid, and what was undone leads to it.
  await page.goto(`${server.url}/operations/${ops[0]?.id}`);
  await expect(page.locator('main')).toContainText('This call undid file_write');
  await expect(page.getByRole('button', { name: 'Undo the undo' })).toBeVisible();
  await page.goto(`${server.url}/operations/${ops[4]?.id}`);
  await expect(page.getByRole('region', { name: 'Undo' })).toContainText(/Undone (now|.* ago)/);
  await server.call('POST', `agents/${seeded.writer}/wake`, { input: 'file_list {"path":"/shared"}' });
  await expect.poll(async () => [(await last()).state, (await last()).id !== run.id]).toEqual(['completed', true]);
  await page.goto(`${server.url}/runs/${(await last()).id}`);
  await expect(page.getByRole('group', { name: 'Steps' }).or(page.locator('.wf-row')).first()).toBeVisible();
  await expect(page.getByRole('button', { name: 'Undo run…' })).toHaveCount(0); // it changed nothing
});

test('C13 attachments are sent, an approval is answered in place, and a turn is cancelled', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  await server.call('PATCH', `agents/${seeded.clerk}`, { policy: { tools: { memory_save: 'ask' } } });
  await page.goto(`${server.url}/chat/${seeded.conversation}`);
  const log = page.getByRole('log');
  const box = page.getByLabel('Message', { exact: true });
  await expect(log).toContainText('memory_search says');
  await page
    .getByLabel('Attach files')
    .setInputFiles({ name: 'list.txt', mimeType: 'text/plain', buffer: Buffer.from('fern\nmoss\n') });
  await expect(page.getByRole('list', { name: 'Attachments' })).toContainText('list.txt');
  await box.fill('memory_save {"content":"Ferns need shade."}');
  await page.keyboard.press('Enter');
  await expect(log.locator('.said.me').last()).toContainText('list.txt');
  expect((await server.call('GET', `conversations/${seeded.conversation}/attachments`)).attachments).toHaveLength(1);
  const line = log.locator('.tool-line', { hasText: 'memory_save' });
  await line.getByRole('button', { name: 'Approve' }).click();
  await expect(line.getByText('done', { exact: true })).toBeVisible();
  await expect
    .poll(async () =>
      (await server.call('GET', 'notes?q=shade').catch(() => server.call('GET', 'notes'))).notes.some(
        (n: { content: string }) => n.content.includes('shade'),
      ),
    )
    .toBe(true);
  await expect(page.getByRole('button', { name: 'Cancel', exact: true })).toHaveCount(0);
  await box.fill('memory_save {"content":"Moss needs water."}');
  await page.keyboard.press('Enter');
  await expect(log.locator('.tool-line', { hasText: 'Moss' }).getByRole('button', { name: 'Approve' })).toBeVisible();
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await expect(log).toContainText('The turn was cancelled');
  await expect(log.getByRole('button', { name: 'Approve' })).toHaveCount(0);
});

test('C24 what agents write is text in every field, and foreign pages can do nothing', async ({
  signedIn: page,
  server,
  seeded,
  browser,
}) => {
  const nasty =
    '<img src=x onerror=alert(1)><svg onload=alert(1)> [x](javascript:alert(1)) \u202Egpj.exe\u202C \u001b[31mred\u001b[0m';
  await server.call('POST', `agents/${seeded.writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/<b>x.md', content: nasty },
    reason: nasty,
  });
  await server.call('POST', 'conversations', { agent: 'clerk', title: nasty });
  await server.call('POST', `conversations/${seeded.conversation}/turns`, { content: nasty });
  await server.call('POST', `agents/${seeded.writer}/wake`, { input: nasty });
  let alerts = 0;
  page.on('dialog', (d) => {
    alerts++;
    void d.dismiss();
  });
  const approvals = (await server.call('GET', 'approvals?state=pending')).approvals as Row[];
  const runs = (await server.call('GET', `runs?agent=${seeded.writer}`)).runs as Row[];
  const ops = (await server.call('GET', 'operations')).operations as Row[];
  for (const path of [
    '/inbox',
    `/approvals/${approvals[0]?.id}`,
    `/chat/${seeded.conversation}`,
    '/runs',
    `/runs/${runs[0]?.id}`,
    `/operations/${ops[0]?.id}`,
  ]) {
    await page.goto(server.url + path);
    await expect(page.locator('main')).not.toHaveText('');
    await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
    expect(
      await page.locator('main img, main svg, main script, main iframe, main a[href^="javascript:"]').count(),
      path,
    ).toBe(0);
    expect(await page.locator('main').innerText(), path).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u001b]/);
  }
  expect(alerts).toBe(0);
  const cookie = (await page.context().cookies()).find((c) => c.name === 'reeve_session');
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<
    string,
    string
  >[]) {
    const answer = await fetch(`${server.url}/api/stop`, {
      method: 'POST',
      body: '{}',
      headers: {
        ...headers,
        cookie: `reeve_session=${cookie?.value}`,
        'content-type': 'application/json',
        'x-workspace-id': 'default',
      },
    });
    expect(answer.status).toBeGreaterThanOrEqual(400);
  }
  const policy = (await fetch(`${server.url}/inbox`, { headers: { accept: 'text/html' } })).headers;
  expect(policy.get('content-security-policy')).toMatch(/default-src 'none'|default-src 'self'/);
  expect(policy.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect(policy.get('content-security-policy')).not.toContain('unsafe-inline');
  const thief = await (await browser.newContext()).newPage(); // a link that was used, in another browser
  await thief.goto(server.link);
  await expect(thief.getByRole('navigation', { name: 'Main', exact: true })).toBeAttached(); // the link is used now
  await thief.context().clearCookies();
  await thief.goto('about:blank');
  await thief.goto(server.link);
  await expect(thief.getByLabel('Access token')).toBeVisible();
  await thief.context().close();
});
