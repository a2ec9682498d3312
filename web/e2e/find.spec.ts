import { expect, furnish, signIn, test } from './fixtures';

test('C10 C22 the list of runs claims nothing that a person cannot know', async ({ page, server, seeded }) => {
  void seeded;
  const viewer = await server.call('POST', 'tokens', { name: 'reader', role: 'viewer' });
  await signIn(page, server, viewer.token);
  await page.goto(`${server.url}/runs?state=cancelled`);
  await expect(page.getByText('No run matches the filter')).toBeVisible();
  await page.route('**/api/runs?*', (route) => route.fulfill({ json: { runs: [] } }));
  await page.goto(`${server.url}/runs`);
  await expect(page.locator('main')).toContainText('No runs to show');
  await expect(page.locator('main')).not.toContainText('No agent has run');
});

test('C11 the timeline of an applied plan names what each call changes', async ({ signedIn: page, server, seeded }) => {
  const at = `automations/${seeded.triage}/runs`;
  const plan = async () => (await server.call('GET', at)).runs.find((r: any) => r.script.type === 'dry')?.run;
  await expect.poll(async () => (await plan())?.state).toBe('completed');
  await server.call('POST', `plans/${(await plan()).id}/apply`);
  const applied = async () => (await server.call('GET', at)).runs.find((r: any) => r.script.type === 'apply')?.run;
  await expect.poll(async () => (await applied())?.id).toBeTruthy();
  await page.goto(`${server.url}/runs/${(await applied()).id}`);
  await expect(page.locator('.wf-row').filter({ hasText: '/' }).first()).toContainText(/\/\w+/);
});

test('C19 a search of notes and of mail is in the address', async ({ signedIn: page, server, seeded }) => {
  await furnish(server, seeded);
  const notes = page.locator('main').getByRole('article');
  await page.goto(`${server.url}/memory`);
  await page.getByLabel('Search notes').pressSequentially('reports monday ');
  await expect(page).toHaveURL(/memory\?q=reports(\+|%20)monday$/);
  await expect(page.getByLabel('Search notes')).toHaveValue('reports monday ');
  await expect(notes.first()).toContainText('Ada prefers reports');
  await page.reload();
  await expect(page.getByLabel('Search notes')).toHaveValue('reports monday');
  await expect(notes.first()).toContainText('Ada prefers reports');
  await page.getByLabel('Search notes').fill('4711');
  await expect(page).toHaveURL(/4711/);
  await page.reload();
  await expect(page.getByLabel('Search notes')).toHaveValue('4711');
  const main = page.getByRole('navigation', { name: 'Main', exact: true });
  await main.getByRole('link', { name: 'Memory' }).click();
  await expect(page.getByLabel('Search notes')).toHaveValue('');

  await main.getByRole('link', { name: 'Mail' }).click();
  await page.getByLabel('Search mail').fill('budget -nothing');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await expect(page).toHaveURL(/mail\?q=budget/);
  await page.getByLabel('Mailbox').selectOption('mara');
  await expect(page).toHaveURL(/inbox=mara/);
  await page.getByRole('button', { name: /budget draft/ }).click();
  await page.reload();
  await expect(page.getByLabel('Search mail')).toHaveValue('budget -nothing');
  await expect(page.getByLabel('Mailbox')).toHaveValue('mara');
  await expect(page.getByRole('button', { name: /budget draft/ })).toBeVisible();
});

test('C12 a call that waits leads to its approval, and so does an undo', async ({ signedIn: page, server, seeded }) => {
  const [waiting] = (await server.call('GET', 'approvals?state=pending')).approvals;
  const main = page.getByRole('navigation', { name: 'Main', exact: true });
  const marked = main.locator('[aria-current=page]');
  const back = page.getByRole('navigation', { name: 'Back' });
  await page.goto(`${server.url}/operations/${waiting.operation_id}`);
  await expect(back).toHaveText('Runs');
  await expect(marked).toHaveText('Runs');
  await page.getByRole('link', { name: 'Open the approval' }).click();
  await expect(page).toHaveURL(new RegExp(`approvals/${waiting.id}`));
  await expect(back).toContainText('Inbox');
  await expect(marked).toContainText('Inbox');

  const policy = { tools: { file_write: 'ask', file_delete: 'ask' } };
  await server.call('PATCH', `agents/${seeded.writer}`, { policy });
  const made = (await server.call('GET', 'operations?state=committed')).operations.find(
    (o: { tool: string; agent_id: string }) => o.tool === 'file_write' && o.agent_id === seeded.writer,
  );
  await page.goto(`${server.url}/operations/${made.id}`);
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  await expect(page.getByText('The undo waits for approval')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Open the approval' })).toBeVisible(); // on the page of the undo
  await page.getByRole('button', { name: 'Open the approval' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Approval' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Approve' })).toBeVisible();
});

test('C23 the policy of an agent fits a narrow window, and a notice covers no button', async ({
  signedIn: page,
  server,
  seeded,
}) => {
  for (const width of [400, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${server.url}/agents/${seeded.clerk}`);
    const matrix = page.getByRole('group', { name: 'Tools and policy' });
    await expect(matrix.getByRole('radio').first()).toBeVisible();
    expect(await matrix.evaluate((e) => e.scrollWidth - e.clientWidth)).toBeLessThanOrEqual(0);
    await page.getByRole('radio', { name: `memory_save: ${width === 400 ? 'deny' : 'allow'}` }).click();
    const notice = page.locator('.toast').first();
    await expect(notice).toBeVisible();
    await page.getByRole('button', { name: 'Detach…' }).first().click();
    const cancel = page.getByRole('dialog').getByRole('button', { name: 'Cancel' });
    const [a, b] = [await notice.boundingBox(), await cancel.boundingBox()];
    expect((a?.y ?? 0) + (a?.height ?? 0)).toBeLessThan(b?.y ?? 0);
    await cancel.click();
  }
});
