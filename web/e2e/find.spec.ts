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
