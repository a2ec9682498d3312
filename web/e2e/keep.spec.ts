import { expect, test, write } from './fixtures';

test('C16 what was typed in an editor is not lost by leaving the page', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/automations`);
  await page.getByRole('link', { name: 'triage', exact: true }).click();
  const editor = page.getByRole('textbox', { name: 'Script', exact: true });
  await write(editor, '// my words');
  const runs = page.getByRole('navigation', { name: 'Main', exact: true }).getByRole('link', { name: 'Runs' });
  const question = page.getByRole('dialog', { name: 'Discard your changes of the script?' });
  await runs.click();
  await question.getByRole('button', { name: 'Cancel' }).click();
  await expect(question).toHaveCount(0);
  await expect(page).toHaveURL(/automations/);
  await expect(editor).toHaveText('// my words');
  await page.goBack();
  await question.getByRole('button', { name: 'Cancel' }).click();
  await expect(page).toHaveURL(/automations/);
  await expect(editor).toHaveText('// my words');

  let asked = '';
  page.once('dialog', (d) => {
    asked = d.type();
    void d.dismiss();
  });
  await page.evaluate(() => location.reload()).catch(() => {});
  await expect.poll(() => asked).toBe('beforeunload');
  await expect(editor).toHaveText('// my words');

  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  const out = page.getByRole('dialog', { name: 'Sign out and lose what you typed?' });
  await out.getByRole('button', { name: 'Cancel' }).click();
  await expect(editor).toHaveText('// my words');
  expect((await page.request.get(`${server.url}/api/session`)).status()).toBe(200);

  await page.getByLabel('Compare with').selectOption({ index: 0 });
  await runs.click();
  await question.getByRole('button', { name: 'Discard' }).click();
  await expect(page).toHaveURL(/runs/);

  await page.getByRole('navigation', { name: 'Main', exact: true }).getByRole('link', { name: 'Tools' }).click();
  await page.getByRole('button', { name: 'New tool' }).click();
  const form = page.getByRole('dialog', { name: 'New tool' });
  await form.getByRole('textbox', { name: 'Id', exact: true }).fill('my_tool');
  await page.goBack();
  const discard = page.getByRole('dialog', { name: 'Discard what you typed?' });
  await discard.getByRole('button', { name: 'Keep editing' }).click();
  await expect(form.getByRole('textbox', { name: 'Id', exact: true })).toHaveValue('my_tool');
  await page.goBack();
  await discard.getByRole('button', { name: 'Discard' }).click();
  await expect(form).toHaveCount(0);
  await expect(page).toHaveURL(/runs/);
});

test('C13 a message that was not sent is still there after leaving and reloading', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  await page.goto(`${server.url}/chat/${seeded.conversation}`);
  const box = page.getByRole('textbox', { name: 'Message', exact: true });
  await box.fill('memory_search {"query": "shelf"}');
  await page.getByRole('navigation', { name: 'Main', exact: true }).getByRole('link', { name: 'Runs' }).click();
  await expect(page).toHaveURL(/runs/);
  await page.goBack();
  await expect(box).toHaveValue('memory_search {"query": "shelf"}');
  await page.reload();
  await expect(box).toHaveValue('memory_search {"query": "shelf"}');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(box).toHaveValue('');
  await page.reload();
  await expect(box).toHaveValue('');
});

test('C16 a script that was typed is kept when the session ends', async ({ signedIn: page, server, seeded }) => {
  await page.goto(`${server.url}/automations/${seeded.triage}`);
  const editor = page.getByRole('textbox', { name: 'Script', exact: true });
  await write(editor, '// half a script');
  await page.context().clearCookies();
  await page.getByLabel('Compare with').selectOption({ index: 0 });
  await server.call('POST', `automations/${seeded.triage}/runs`, { type: 'dry' }); // the page reads again
  await page.getByLabel('Access token').fill(server.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('navigation', { name: 'Main', exact: true })).toBeAttached();
  await page.goto(`${server.url}/automations/${seeded.triage}`);
  await expect(editor).toHaveText('// half a script');
  await page.getByRole('button', { name: 'Save and activate' }).click();
  await expect(page.getByText('Saved as a new version')).toBeVisible();
  await page.reload();
  await expect(editor).toHaveText('// half a script');
  await expect(page.getByRole('button', { name: 'Save and activate' })).toHaveCount(0);
});

test('C16 a script does not replace a newer version, and is compared with it', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  const at = `automations/${seeded.triage}`;
  const active = async () => (await server.call('GET', at)).version;
  await page.goto(`${server.url}/${at}`);
  const editor = page.getByRole('textbox', { name: 'Script', exact: true });
  await expect(editor).toBeVisible();
  await server.call('POST', `${at}/versions`, { source: '// before typing', fix: true });
  await expect(editor).toHaveText('// before typing'); // a person who types nothing sees what is active
  await write(editor, '// mine');
  await server.call('POST', `${at}/versions`, { source: '// theirs', fix: true });
  const theirs = await active();
  const newer = page.getByRole('alert', { name: 'A newer version' });
  await expect(newer).toContainText(`Version ${theirs} became active while you edited.`);
  await expect(newer).toContainText(/Written by \S+/);
  await expect(page.getByRole('button', { name: 'Save and activate' })).toHaveCount(0);
  await expect(editor).toHaveText('// mine');
  await newer.getByRole('button', { name: 'Compare with yours' }).click();
  await expect(newer.locator('.diff-line.del')).toContainText('// theirs');
  await expect(newer.locator('.diff-line.add')).toContainText('// mine');
  expect(await active()).toBe(theirs);
  await newer.getByRole('button', { name: 'Save yours as the next version' }).click();
  await expect(page.getByText('Saved as a new version')).toBeVisible();
  await expect(newer).toHaveCount(0);
  await expect.poll(active).not.toBe(theirs);
  await expect(editor).toHaveText('// mine');
  await expect(page.getByRole('combobox', { name: 'Version', exact: true })).toHaveValue(await active());

  // The page may not have heard of the newer version yet.
  let isLate = false;
  await page.route('**/api/automations/*/versions', async (route) => {
    if (route.request().method() !== 'POST' || isLate) return route.fallback();
    isLate = true;
    await server.call('POST', `${at}/versions`, { source: '// late', fix: true });
    await route.continue();
  });
  await write(editor, '// mine again');
  await page.getByRole('button', { name: 'Save and activate' }).click();
  await expect(newer).toBeVisible();
  await expect(editor).toHaveText('// mine again');
  expect((await server.call('GET', `${at}/versions/${await active()}`)).source).toBe('// late');
});

test('C15 a tool does not replace a newer version', async ({ signedIn: page, server }) => {
  const tool = { id: 'add_numbers', kind: 'script', description: 'Adds.', effect: 'read', parameters: {} };
  await server.call('POST', 'tools', { ...tool, spec: { source: '1 + 1', language: 'js' } });
  await page.goto(`${server.url}/tools/add_numbers`);
  await page.getByRole('button', { name: 'Edit' }).click();
  const form = page.getByRole('dialog');
  await write(form.getByRole('textbox', { name: 'Script', exact: true }), '3 + 3');
  await server.call('PUT', 'tools/add_numbers', { ...tool, risk: 'high', spec: { source: '2 + 2', language: 'js' } });
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByRole('alert')).toContainText('Somebody changed this tool while you edited.');
  await expect(form.locator('.diff-line.del')).toContainText('2 + 2');
  expect((await server.call('GET', 'tools/add_numbers')).spec.source).toBe('2 + 2');
  await form.getByRole('button', { name: 'Save yours' }).click();
  await expect(form).toHaveCount(0);
  const saved = await server.call('GET', 'tools/add_numbers');
  expect([saved.spec.source, saved.risk]).toEqual(['3 + 3', 'high']); // what was not edited stays
});

test('C14 C17 a form saves only what was changed in it', async ({ signedIn: page, server, seeded }) => {
  const [schedule] = (await server.call('GET', 'schedules')).schedules;
  await page.goto(`${server.url}/schedules`);
  await page.getByRole('button', { name: 'Edit' }).first().click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Name (optional)').fill('Evening summary');
  await server.call('PATCH', `schedules/${schedule.id}`, { goal: 'Summarise the day', timezone: 'Asia/Tokyo' });
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  const saved = await server.call('GET', `schedules/${schedule.id}`);
  expect([saved.name, saved.goal, saved.timezone]).toEqual(['Evening summary', 'Summarise the day', 'Asia/Tokyo']);

  await page.goto(`${server.url}/agents/${seeded.clerk}`);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await form.getByLabel(/^Instructions/).fill('Be brief.');
  await server.call('PATCH', `agents/${seeded.clerk}`, { mode: 'autonomous', config: { model: 'test/other' } });
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  const agent = await server.call('GET', `agents/${seeded.clerk}`);
  expect(agent.mode).toBe('autonomous');
  expect(agent.config).toEqual({ model: 'test/other', instructions: 'Be brief.' });
  for (const tool of ['memory_save', 'memory_search', 'create_task'])
    await page.getByRole('radio', { name: `${tool}: deny` }).click(); // faster than the answers arrive
  await expect
    .poll(async () => (await server.call('GET', `agents/${seeded.clerk}`)).policy.tools)
    .toEqual({ memory_save: 'deny', memory_search: 'deny', create_task: 'deny' });
});

test('C22 a note does not replace a newer text, and its limit is in bytes', async ({ signedIn: page, server }) => {
  const note = (await server.call('GET', 'notes')).notes.find((n: { content: string }) => /Monday/.test(n.content));
  await page.goto(`${server.url}/memory`);
  const card = page.getByRole('article').filter({ hasText: 'Ada prefers' });
  await card.getByRole('button', { name: 'Edit' }).click();
  const form = page.getByRole('dialog');
  await form.getByRole('textbox', { name: 'Text' }).fill('Ada prefers reports on Tuesday.');
  await server.call('PATCH', `notes/${note.id}`, { content: 'Ada prefers reports on Friday.', tags: ['weekly'] });
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByRole('alert')).toContainText('This note changed while you edited.');
  await expect(form.locator('.diff-line.del')).toContainText('Friday');
  expect((await server.call('GET', `notes/${note.id}`)).content).toContain('Friday');
  await form.getByRole('button', { name: 'Save yours' }).click();
  await expect(form).toHaveCount(0);
  const saved = await server.call('GET', `notes/${note.id}`);
  expect([saved.content, saved.tags]).toEqual(['Ada prefers reports on Tuesday.', ['weekly']]);

  await page.getByRole('button', { name: 'New note' }).click();
  const text = form.getByRole('textbox', { name: 'What to remember' });
  await text.fill('ä'.repeat(4001));
  await expect(form.getByRole('alert')).toContainText('2 bytes too long. A note has at most 8,000 bytes');
  await expect(form.getByRole('button', { name: 'Save' })).toBeDisabled();
  await text.fill('ä'.repeat(4000));
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
});

test('C22 a screen that was never opened says that the server cannot be reached, and loads when it is back', async ({
  signedIn: page,
  server,
}) => {
  const main = page.getByRole('navigation', { name: 'Main', exact: true });
  await server.kill();
  await main.getByRole('link', { name: 'Journal' }).click();
  const failure = page.getByRole('alert').filter({ hasText: 'could not be loaded' });
  await expect(failure).toBeVisible();
  await expect(page).toHaveURL(/journal/);
  await failure.getByRole('button', { name: 'Try again' }).click();
  await expect(failure).toBeVisible(); // still away
  await expect(main).toBeVisible();
  await server.run();
  await failure.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Journal' })).toBeVisible();
  await main.getByRole('link', { name: 'Tools' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Tools' })).toBeVisible();

  // The editor is loaded when it is needed. What was typed before stays.
  await page.route('**/assets/editor-*.js', (route) => route.abort());
  await page.getByRole('button', { name: 'New tool' }).click();
  const form = page.getByRole('dialog');
  await expect(form.getByRole('alert').first()).toContainText('could not be loaded');
  await expect(form.getByRole('textbox', { name: 'Id', exact: true })).toBeVisible();
});
