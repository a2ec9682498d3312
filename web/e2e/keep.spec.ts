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
