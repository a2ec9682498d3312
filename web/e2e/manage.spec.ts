import { expect, signIn, test } from './fixtures';

test('C14 an agent is made from a form, limited, stopped and destroyed', async ({ signedIn: page, server }) => {
  const [category] = (await server.call('GET', 'journal/categories')).categories;
  const [task] = (await server.call('GET', 'journal/tasks')).tasks;
  await page.goto(`${server.url}/agents`);
  await page.getByRole('button', { name: 'New agent' }).click();
  const form = page.getByRole('dialog');
  await form.getByRole('textbox', { name: 'Name' }).fill('helper');
  await form.getByRole('checkbox', { name: category.name }).check();
  await form.getByLabel(/^Budget in dollars/).fill('2.5');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'helper' })).toBeVisible();
  const agent = async () => await server.call('GET', 'agents/helper');
  const id = (await agent()).id;
  expect((await agent()).categories).toEqual([category.id]);
  await expect(page.locator('.panel', { hasText: 'Budget' }).last()).toContainText('$2.50');

  const attach = async (tool: string) => {
    await page.getByRole('button', { name: 'Attach a tool' }).click();
    await page.getByRole('dialog').getByLabel('Tool').selectOption(tool);
  };
  await attach('email_search');
  await page.getByRole('dialog').getByLabel('default_limit').fill('900');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await expect(page.getByRole('dialog')).toBeVisible(); // 1 to 50
  expect(
    (await server.call('GET', `agents/${id}/tools`)).tools.some((t: { id: string }) => t.id === 'email_search'),
  ).toBe(false);
  await page.getByRole('dialog').getByLabel('default_limit').fill('7');
  await page.getByRole('button', { name: 'Attach', exact: true }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  const attached = (await server.call('GET', `agents/${id}/tools`)).tools.find(
    (t: { id: string }) => t.id === 'email_search',
  );
  expect(attached.config).toEqual({ default_limit: 7 });
  for (const answer of ['allow', 'ask', 'propose', 'deny']) {
    await page.getByRole('radio', { name: `email_search: ${answer}` }).click();
    await expect.poll(async () => (await agent()).policy.tools?.email_search).toBe(answer);
  }

  await server.call('PUT', `agents/${id}/state`, {
    revision: 0,
    slots: { primary_goal: 'Empty the shelf', open_loop_ids: [task.id] },
  });
  await page.reload();
  await expect(page.locator('.panel', { hasText: 'What it knows' })).toContainText('Empty the shelf');
  await expect(page.locator('.panel', { hasText: 'What it knows' })).toContainText(task.title);

  await server.call('POST', 'schedules', {
    agent: 'helper',
    cadence_type: 'interval',
    cadence_value: '2h',
    goal: 'look',
  });
  await page.getByRole('button', { name: 'Detach…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  expect((await server.call('GET', `agents/${id}/tools`)).tools).toHaveLength(1);

  // Model and instructions are fields, and what has no field stays.
  await server.call('PATCH', `agents/${id}`, { config: { summaries: false, instructions: 'Be brief.' } });
  await expect(page.locator('.panel', { hasText: 'Instructions' })).toContainText('Be brief.');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const settings = page.getByRole('dialog', { name: 'Settings of helper' });
  await expect(settings.getByLabel(/^Instructions/)).toHaveValue('Be brief.');
  await settings.getByLabel(/^Model \(/).fill('test/model');
  await settings.getByLabel('Tokens per answer').fill('900');
  await settings.getByRole('button', { name: 'Save' }).click();
  await expect(settings).toHaveCount(0);
  expect((await agent()).config).toEqual({
    summaries: false,
    instructions: 'Be brief.',
    model: 'test/model',
    max_tokens: 900,
  });
  await expect(page.locator('.panel', { hasText: 'Instructions' })).toContainText('test/model');

  await page.getByRole('button', { name: 'Pause…' }).click();
  await expect(page.getByRole('dialog')).toContainText('1 schedule');
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
  await expect(page.getByText('paused', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByRole('button', { name: 'Pause…' })).toBeVisible();
  await page.getByRole('button', { name: 'Destroy…' }).click();
  await expect(page.getByRole('dialog').getByRole('listitem').filter({ hasText: 'schedule' })).toHaveText('1 schedule');
  await page.getByRole('button', { name: 'Destroy', exact: true }).click();
  await expect(page.getByText('destroyed', { exact: true })).toBeVisible();
  expect((await server.call('GET', `agents/${id}`)).lifecycle).toBe('destroyed');
});

test('C15 tools are found, tried, previewed, and defined in an editor', async ({ signedIn: page, server, seeded }) => {
  await page.goto(`${server.url}/tools`);
  await page.getByLabel('Search tools').fill('write file');
  await page.getByRole('link', { name: 'file_write', exact: true }).click();
  await expect(page.getByRole('group', { name: 'Schema' })).toContainText('overwrite');
  await server.call('PATCH', `agents/${seeded.writer}`, { policy: { tools: { file_write: 'allow' } } });
  await page.getByLabel('As agent').selectOption({ label: 'writer' });
  await page.getByLabel('path (required)').fill('/shared/new.txt');
  await page.getByLabel(/^content/).fill('hello');
  expect(await page.getByLabel('As agent').locator('option').allInnerTexts()).not.toContain('clerk'); // it lacks the tool
  await page.getByRole('button', { name: 'Preview' }).click();
  await expect(page.getByRole('heading', { name: 'What would change' })).toBeVisible();
  await expect(page.locator('.diff-line.add')).toContainText('hello');
  await expect(
    server
      .call('POST', `agents/${seeded.writer}/calls`, { tool: 'file_read', args: { path: '/shared/new.txt' } })
      .then((r) => r.is_error),
  ).resolves.toBe(true);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await expect(page.getByRole('link', { name: 'Explain' })).toBeVisible();
  await page.getByLabel('path (required)').fill('');
  await expect(page.getByRole('button', { name: 'Call', exact: true })).toBeDisabled();

  await page.goto(`${server.url}/tools`);
  await page.getByRole('button', { name: 'New tool' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Id', exact: true }).fill('add_numbers');
  await dialog.getByRole('combobox', { name: 'Kind' }).selectOption('script');
  await dialog.getByLabel('Description, for models').fill('Adds two numbers.');
  await dialog.getByRole('textbox', { name: 'Script', exact: true }).fill('input.a + input.b +');
  await expect(dialog.locator('.cm-lint-marker-error').first()).toBeVisible();
  await dialog.getByRole('textbox', { name: 'Script', exact: true }).fill('input.a + input.b');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'add_numbers' })).toBeVisible();
  await expect(page.getByText('No agent has this tool.')).toBeVisible();
  await server.call('POST', `agents/${seeded.clerk}/tools`, { tool_id: 'add_numbers' });
  await page.getByLabel('As agent').selectOption({ label: 'clerk' });
  await page.getByLabel('a', { exact: true }).fill('2');
  await page.getByLabel('b', { exact: true }).fill('40');
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await expect(page.getByRole('group', { name: 'Result' })).toContainText('42');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Script', exact: true }).fill('input.a * input.b');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await expect(page.getByRole('group', { name: 'Result' })).toContainText('80');

  await page.goto(`${server.url}/tools`);
  await page.getByRole('button', { name: 'New tool' }).click();
  await page.getByRole('dialog').getByRole('textbox', { name: 'Id', exact: true }).fill('weather_get');
  await page.getByRole('dialog').getByLabel('Description, for models').fill('Forecast for a city.');
  await page
    .getByRole('dialog')
    .getByRole('textbox', { name: 'Request', exact: true })
    .fill('{"method": "FETCH", "url": "https://api.example.com/{city}"}');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('method');
  await page
    .getByRole('dialog')
    .getByRole('textbox', { name: 'Request', exact: true })
    .fill('{"method": "GET", "url": "https://api.example.com/{city}"}');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'weather_get' })).toBeVisible();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page).toHaveURL(/\/tools$/);
});

test('C21 settings: budgets, profiles, members, tokens shown once, secrets never shown', async ({
  signedIn: page,
  server,
  browser,
}) => {
  await page.goto(`${server.url}/settings/budgets`);
  await page
    .getByRole('row', { name: /workspace/ })
    .getByRole('button', { name: 'Change' })
    .click();
  await page.getByLabel('Dollars').fill('12');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('row', { name: /workspace/ })).toContainText('$12.00');

  await page.goto(`${server.url}/settings/profiles`);
  await page.getByRole('button', { name: 'New kind' }).click();
  await page.getByRole('textbox', { name: 'Kind' }).fill('courier');
  const capability = page.getByRole('dialog').getByRole('checkbox').first();
  await capability.check();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('row', { name: /courier/ })).toBeVisible();
  expect(
    (await server.call('GET', 'profiles')).profiles.find((p: { kind: string }) => p.kind === 'courier').capabilities,
  ).toHaveLength(1);

  await page.goto(`${server.url}/settings/members`);
  await page.getByRole('button', { name: 'Add a member' }).click();
  await page.getByRole('textbox', { name: 'Person' }).fill('mia');
  await page.getByRole('combobox', { name: 'Role' }).selectOption('viewer');
  await page.getByRole('button', { name: 'Create token' }).click();
  const token = (await page.getByRole('dialog').locator('pre').innerText()).trim();
  await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined })); // as without https
  await page.getByRole('button', { name: 'Copy' }).click();
  expect((await page.evaluate(() => String(getSelection()))).trim()).toBe(token);
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  await expect(page.getByRole('dialog')).toContainText(token); // it is not shown again, so only Done closes it
  await page.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByRole('row', { name: /mia/ })).toContainText('viewer');
  expect(await page.content()).not.toContain(token);
  await page.getByRole('combobox', { name: 'Role of mia' }).selectOption('member');
  await expect(page.getByText('mia is now member')).toBeVisible();
  await page.getByRole('combobox', { name: 'Role of mia' }).selectOption('viewer');
  await expect(page.getByText('mia is now viewer')).toBeVisible();
  await page.goto(`${server.url}/settings/tokens`);
  const tokens = page.getByRole('group', { name: 'Tokens' });
  await expect(tokens.getByRole('row', { name: /mia/ })).toContainText('viewer');
  await expect(tokens.getByRole('row', { name: /console/ })).toHaveCount(0); // sessions stand apart
  await expect(page.getByRole('group', { name: 'Sessions' }).getByText('this browser')).toHaveCount(1);
  expect(await page.content()).not.toContain(token);
  await server.call('POST', 'tokens', { name: 'laptop', role: 'viewer' });
  const laptop = tokens.getByRole('row', { name: /laptop/ });
  await laptop.getByRole('button', { name: 'Revoke…' }).click();
  await page.keyboard.press('Enter'); // Cancel has the focus
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(laptop).toBeVisible();
  await laptop.getByRole('button', { name: 'Revoke…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect(laptop).toHaveCount(0);

  const other = await browser.newPage();
  await signIn(other, server, token);
  await expect(other.getByRole('button', { name: 'Stop all' })).toHaveCount(0); // it would be refused
  await other.goto(`${server.url}/settings/secrets`);
  await expect(other.getByLabel('Value')).toHaveCount(0);

  await page.goto(`${server.url}/settings/secrets`);
  await page.getByRole('textbox', { name: 'Name' }).fill('WEATHER_KEY');
  await page.getByLabel('Value').fill('correct-horse-battery');
  await page.getByRole('button', { name: 'Store' }).click();
  await expect(page.getByRole('row', { name: /WEATHER_KEY/ })).toBeVisible();
  await expect(page.getByLabel('Value')).toHaveValue('');
  await page.reload();
  await expect(page.getByRole('row', { name: /WEATHER_KEY/ })).toBeVisible();
  expect(await page.content()).not.toContain('correct-horse-battery');

  await page.getByRole('button', { name: 'Delete…' }).click();
  await expect(page.getByRole('dialog')).toContainText('${secret:WEATHER_KEY}');
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByRole('row', { name: /WEATHER_KEY/ })).toHaveCount(0);

  for (const path of ['inbox', 'runs', 'mail', 'settings/budgets']) {
    await page.goto(`${server.url}/${path}`);
    await expect(page.getByRole('button', { name: 'Stop all' })).toBeVisible();
  }
  await page.getByRole('button', { name: 'Stop all' }).click();
  await expect(page.getByRole('dialog')).toContainText('This holds');
  await page.getByLabel(/^Reason/).fill('fire drill');
  await page.getByRole('button', { name: 'Stop all agents' }).click();
  await expect(page.getByRole('alert')).toContainText('fire drill');
  await page.goto(`${server.url}/journal`);
  await expect(page.getByRole('alert')).toContainText('fire drill');
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('All agents are stopped since')).toHaveCount(0);

  await page.goto(`${server.url}/settings/members`);
  await page.getByRole('row', { name: /mia/ }).getByRole('button', { name: 'Remove…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(page.getByRole('row', { name: /mia/ })).toHaveCount(0);
  await other.goto(`${server.url}/inbox`);
  await expect(other.getByLabel('Access token')).toBeVisible();
  await other.close();
});
