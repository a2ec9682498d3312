import type { Locator } from '@playwright/test';
import { expect, test } from './fixtures';

// write replaces the text of an editor as a person does.
async function write(editor: Locator, line: string): Promise<void> {
  await editor.focus();
  await editor.press('Control+a');
  await editor.press('Delete');
  await editor.page().keyboard.insertText(line);
}

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
  await page.route('**/api/automations/*/versions', async (route) => {
    if (route.request().method() === 'POST') await server.call('POST', `${at}/versions`, { source: '// late', fix: true });
    await route.continue();
  }, { times: 1 });
  await write(editor, '// mine again');
  await page.getByRole('button', { name: 'Save and activate' }).click();
  await expect(newer).toBeVisible();
  await expect(editor).toHaveText('// mine again');
  expect((await server.call('GET', `${at}/versions/${await active()}`)).source).toBe('// late');
});

test('C15 a tool does not replace a newer version', async ({ signedIn: page, server }) => {
  const tool = { id: 'add_numbers', kind: 'script', description: 'Adds.', effect: 'read', parameters: { type: 'object' } };
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
