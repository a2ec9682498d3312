import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, write } from './fixtures';

test('C16 an automation is written, planned, applied, watched and changed', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/automations`);
  await page.getByRole('button', { name: 'New automation' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('letters');
  const tools = page.getByRole('group', { name: /^Tools that the script may call/ });
  await tools.getByRole('searchbox').fill('create_task');
  await tools.getByRole('checkbox', { name: 'create_task', exact: true }).check();
  await tools.getByRole('searchbox').fill('file_read');
  await tools.getByRole('checkbox', { name: 'file_read', exact: true }).check();
  await expect(tools).toContainText('2 chosen'); // what is hidden stays chosen
  const editor = page.getByRole('textbox', { name: 'Script', exact: true });
  await expect(page.getByRole('button', { name: 'Create' })).toBeEnabled();
  await write(editor, "for (const x of ['a', ");
  await expect(page.locator('.cm-lint-marker-error').first()).toBeVisible();
  await write(
    editor,
    "Items.total(2); for (const x of ['a', 'b']) await Items.withItem(x, `letter ${x}`, async () => { if (x === 'b') throw new Error('no stamp'); });",
  );
  await expect(page.locator('.cm-lint-marker-error')).toHaveCount(0);
  expect(await editor.locator('span[class]').count()).toBeGreaterThan(3); // highlighted
  const line = await editor.innerText();
  await page.keyboard.insertText('\n// one\n// two\n// three');
  for (let i = 0; i < 2; i++) await page.keyboard.press('Shift+ArrowUp');
  await page.keyboard.type('x'); // typing over lines breaks no content security policy; the fixture fails if it does
  await write(editor, line);
  await page.getByRole('button', { name: 'Create' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'letters' })).toBeVisible();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const items = page.getByRole('group', { name: 'Items' });
  await expect(items.getByRole('row', { name: /letter a/ })).toContainText('done');
  await expect(items.getByRole('row', { name: /letter b/ })).toContainText('no stamp');
  await expect(page.locator('.progress').first()).toBeVisible();
  await items
    .getByRole('row', { name: /letter a/ })
    .getByRole('button', { name: 'Reprocess' })
    .click();
  await expect(page.getByText('A new attempt starts')).toBeVisible();
  await write(page.getByRole('textbox', { name: 'Script', exact: true }), '// nothing to do');
  await expect(page.locator('.diff', { hasText: 'Your changes' }).locator('.diff-line.del').first()).toBeVisible();
  await page.getByRole('button', { name: 'Save and activate' }).click();
  await expect(page.getByText('Saved as a new version')).toBeVisible();
  await page.getByLabel('Compare with').selectOption({ index: 1 });
  await expect(page.locator('.diff', { hasText: '→' }).first()).toBeVisible();

  const triage = (await server.call('GET', 'automations')).automations.find(
    (a: { name: string }) => a.name === 'triage',
  );
  await page.goto(`${server.url}/inbox`);
  await page.getByRole('region', { name: 'Plans to apply' }).getByRole('link', { name: 'triage' }).click();
  const planned = page.getByRole('group', { name: 'Runs' }).getByRole('row', { name: /plan/ }).last();
  await expect(planned).toContainText(/calls? planned/);
  await expect(planned.locator('.progress')).toHaveCount(0); // nothing is done yet
  await page.getByRole('button', { name: 'Show plan' }).first().click();
  const plan = page.getByRole('dialog', { name: 'What it would do' });
  await expect(plan.locator('h3').first()).toBeVisible();
  await plan.getByRole('button', { name: 'Apply exactly this' }).click();
  await expect(page.getByText('The plan is being applied')).toBeVisible();
  await expect
    .poll(async () => (await server.call('GET', `automations/${triage.agent_id}/items`)).total)
    .toBeGreaterThan(0);
  await expect(page.getByRole('group', { name: 'Items' }).getByRole('row').first()).toBeVisible();
});

test('C17 a schedule shows its firings and runs now, and a predicate is tested on past changes', async ({
  signedIn: page,
  server,
}) => {
  await page.goto(`${server.url}/schedules`);
  const card = page.locator('.panel', { hasText: 'Morning summary' });
  await expect(card.locator('section li')).toHaveCount(10);
  await expect(card).toContainText('Europe/Berlin');
  await expect(card.locator('section li').first()).toContainText('07:00'); // the browser is in Berlin
  const [schedule] = (await server.call('GET', 'schedules')).schedules;
  await card.getByRole('button', { name: 'Run now' }).click();
  await expect(page.getByRole('button', { name: 'See the run' })).toBeVisible();
  await expect.poll(async () => (await server.call('GET', `schedules/${schedule.id}/runs`)).runs.length).toBe(1);
  await card.getByRole('button', { name: 'Pause' }).click();
  await expect(card.getByRole('button', { name: 'Resume' })).toBeVisible();
  await expect(card.getByRole('button', { name: 'Run now' })).toHaveCount(0);
  await expect(card).toContainText('Paused. It fires again after Resume.');

  await page.getByRole('button', { name: 'New schedule' }).click();
  const form = page.getByRole('dialog', { name: 'New schedule' });
  await form.getByLabel('Agent').selectOption('clerk');
  await expect(form.getByRole('button', { name: 'Create' })).toBeDisabled(); // it has no goal yet
  await form.getByLabel('Goal').fill('Tidy up');
  const firings = form.getByRole('region', { name: 'Next firings' }).getByRole('listitem');
  await form.getByLabel('When').fill('30 8 * * 1');
  await expect(firings.first()).toContainText('Mon');
  await expect(firings.first()).toContainText('08:30');
  await form.getByLabel('Time zone').selectOption('UTC');
  await expect(firings.first()).not.toContainText('08:30'); // the browser is in Berlin
  await form.getByLabel('When').fill('61 * * * *');
  await expect(form.getByRole('alert').first()).toContainText('61 is not from 0 to 59');
  await form.getByLabel('Repeats').selectOption('once');
  await form.getByLabel('When').fill('2099-01-31T09:00');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form).toHaveCount(0);
  const made = (await server.call('GET', 'schedules')).schedules.find((s: { goal: string }) => s.goal === 'Tidy up');
  expect(made.next_run_at).toBe('2099-01-31T08:00:00Z'); // the browser is in Berlin

  const paused = { ...(await server.call('GET', `schedules/${schedule.id}`)) };
  await card.getByRole('button', { name: 'Edit' }).click();
  const edit = page.getByRole('dialog', { name: 'Edit Morning summary' });
  await expect(edit.getByLabel('When')).toHaveValue(paused.cadence_value);
  await edit.getByLabel('Goal').fill('Say what is new');
  await edit.getByLabel('Notify me').selectOption('conditional');
  await edit.getByRole('button', { name: 'Save' }).click();
  await expect(edit).toHaveCount(0);
  await expect(card).toContainText('Say what is new');
  expect(await server.call('GET', `schedules/${schedule.id}`)).toMatchObject({
    cadence_value: paused.cadence_value,
    timezone: paused.timezone,
    status: 'paused',
    notification: 'conditional',
    goal: 'Say what is new',
  });

  const [task] = (await server.call('GET', 'journal/tasks')).tasks;
  await server.call('PATCH', `agents/${schedule.agent_id}`, { categories: [task.category_id] });
  await server.call('PATCH', `journal/tasks/${task.id}`, { status: 'done' });
  await page.goto(`${server.url}/subscriptions`);
  await page.getByRole('button', { name: 'New subscription' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Agent' }).selectOption({ label: 'clerk' });
  const predicate = dialog.getByLabel(/^Only when/);
  await predicate.fill('entity.status == ');
  await dialog.getByRole('button', { name: 'Test on past changes' }).click();
  await expect(dialog.getByRole('alert')).toContainText('predicate is not valid');
  await predicate.fill('entity.status == "done"');
  await dialog.getByRole('button', { name: 'Test on past changes' }).click();
  await expect(dialog.getByRole('heading', { name: '1 of the last 2 changes would wake the agent' })).toBeVisible();
  await expect(dialog.getByRole('row').first()).toContainText('wakes');
  await dialog.getByRole('button', { name: 'Subscribe' }).click();
  const row = page.getByRole('row', { name: /TASK/ });
  await expect(row).toContainText('entity.status == "done"');
  await row.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(row).toHaveCount(0);
  await page.route('**/api/agents?*', (route) =>
    route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail": "it broke"}' }),
  );
  await page.goto(`${server.url}/subscriptions`);
  await expect(page.getByRole('alert')).toContainText('It broke'); // C22: it does not load for ever
  await page.unroute('**/api/agents?*');
});

test('C18 the board shows tasks, checklists, plan and time, and undoes what an agent did', async ({
  signedIn: page,
  server,
}) => {
  const [task] = (await server.call('GET', 'journal/tasks')).tasks;
  const list = await server.call('POST', 'journal/checklists', { task_id: task.id, title: 'Steps' });
  await server.call('POST', `journal/checklists/${list.id}/items`, { items: [{ title: 'Open the boxes' }] });
  await server.call('POST', 'journal/time-entries', {
    task_id: task.id,
    started_at: '2026-11-01T08:00:00Z',
    ended_at: '2026-11-01T09:30:00Z',
    description: 'first pile',
  });
  const day = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin' }).format(new Date());
  await server.call('PUT', `journal/plans/${day}/blocks`, {
    blocks: [
      {
        task_id: task.id,
        category_id: task.category_id,
        start_time: `${day}T10:00:00Z`,
        end_time: `${day}T11:00:00Z`,
        note: 'with Ada',
      },
    ],
  });
  const keeper = await server.call('POST', 'agents', {
    name: 'keeper',
    kind: 'planner',
    lifecycle: 'active',
    categories: [task.category_id],
    policy: { tools: { update_task_fields: 'allow' } },
  });
  await server.call('POST', `agents/${keeper.id}/tools`, { tool_id: 'update_task_fields' });
  await page.goto(`${server.url}/journal`);
  await expect(page.getByRole('region', { name: 'In progress' })).toContainText('Count the returns');
  await server.call('POST', `agents/${keeper.id}/calls`, {
    tool: 'update_task_fields',
    args: { task_id: task.id, status: 'blocked' },
    reason: 'The scanner is broken',
  });
  const card = page.getByRole('region', { name: 'Blocked' }).getByRole('button', { name: /Count the returns/ });
  await expect(card).toContainText('changed by keeper');
  await expect(page.locator('.panel', { hasText: 'Day plan' })).toContainText('with Ada');
  await expect(page.getByRole('list', { name: 'Time entries' })).toContainText('1 h 30 min');
  await card.click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('checkbox', { name: 'Open the boxes' }).click();
  await expect
    .poll(async () => (await server.call('GET', `journal/checklists/${list.id}`)).items[0].checked)
    .toBe(true);
  const history = dialog.getByRole('region', { name: 'History' });
  await expect(history).toContainText('agent keeper');
  await expect(history).toContainText('The scanner is broken');
  await expect(history).toContainText('status in_progress → blocked');
  await history.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await server.call('GET', `journal/tasks/${task.id}`)).status).toBe('in_progress');
  await expect(history.getByRole('link', { name: 'undone' })).toBeVisible();
  await expect(history).toContainText('undo, requested by owner');
});

test('C19 mail is searched as with the CLI, and a hostile mail is shown as text', async ({
  signedIn: page,
  server,
}) => {
  const dir = mkdtempSync(join(tmpdir(), 'reeve-mail-'));
  const mail = (id: string, from: string, subject: string, type: string, body: string) =>
    `From x Mon Sep  7 07:00:00 2026\nMessage-ID: <${id}@x>\nFrom: ${from}\nTo: mara@example.org\nSubject: ${subject}\nDate: Mon, 7 Sep 2026 07:00:00 +0000\nContent-Type: ${type}; charset=utf-8\n\n${body}\n\n`;
  writeFileSync(
    join(dir, 'mara.mbox'),
    [
      mail('1', 'Jane <jane@example.org>', 'The budget draft', 'text/plain', 'A first draft of the budget.'),
      mail(
        '2',
        'Joe <joe@example.org>',
        'Budget meeting',
        'text/plain',
        'See <img src="https://evil.example/p.png" onerror="alert(1)"> there.',
      ),
      mail(
        '3',
        'Eve <eve@example.org>',
        'Offer',
        'text/html',
        '<p>A forecast</p><script>alert(1)</script><img src="https://evil.example/t.gif"><a href="javascript:alert(1)">click</a>',
      ),
    ].join(''),
  );
  const cli = (...args: string[]) =>
    execFileSync(join(import.meta.dirname, '../../bin/reeve'), args, {
      env: { ...process.env, REEVE_URL: server.url, REEVE_TOKEN: server.token },
      encoding: 'utf8',
    });
  cli('import', 'mail', join(dir, 'mara.mbox'), '--inbox', 'mara');
  const reader = await server.call('POST', 'agents', { name: 'reader', lifecycle: 'active' });
  await server.call('POST', `agents/${reader.id}/tools`, { tool_id: 'email_search' });
  await page.goto(`${server.url}/mail`);
  const mails = page.getByRole('list', { name: 'Mails' });
  await page.getByLabel('Mailbox').selectOption('mara');
  await expect(mails.getByRole('listitem')).toHaveCount(3);
  for (const query of ['budget -draft', 'budget OR forecast', '"first draft"', 'from:jane', 'subject:offer']) {
    await page.getByLabel('Search mail').fill(query);
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    const found = JSON.parse(cli('mail', 'search', '--agent', 'reader', '--inbox', 'mara', '--json', '--', query))
      .emails as { subject: string }[];
    expect(found.length).toBeGreaterThan(0);
    await expect(mails.locator('.strong')).toHaveText(found.map((e) => e.subject));
  }
  const open = async (subject: string) => {
    await page.getByLabel('Search mail').fill('');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await mails.getByRole('button', { name: new RegExp(subject) }).click();
    return page.getByRole('article', { name: 'Mail' });
  };
  const plain = await open('Budget meeting');
  await expect(plain).toContainText('<img src="https://evil.example/p.png" onerror="alert(1)">');
  const html = await open('Offer');
  await expect(html).toContainText('A forecast');
  expect(await html.locator('img, script, iframe, a').count()).toBe(0);
  rmSync(dir, { recursive: true, force: true });
});

test('C20 a branch is compared side by side, merged and discarded', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/branches`);
  await expect(page.getByText('No branches')).toBeVisible();
  const dir = mkdtempSync(join(tmpdir(), 'reeve-repo-'));
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', dir, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args]);
  git('init', '-q', '-b', 'main');
  writeFileSync(join(dir, 'plan.md'), 'one\ntwo\nthree\n');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  await server.call('POST', 'projects', { name: 'plans', path: dir });
  const agent = await server.call('POST', 'agents', {
    name: 'editor',
    kind: 'engineer',
    lifecycle: 'active',
    policy: { tiers: { side_effecting: 'allow', privileged: 'allow' } },
  });
  await server.call('POST', `agents/${agent.id}/tools`, { tool_id: 'file_write', config: { project: 'plans' } });
  const change = async (title: string, content: string) => {
    const c = await server.call('POST', 'conversations', { agent: 'editor', title });
    await server.call('POST', `conversations/${c.id}/turns`, {
      content: `file_write ${JSON.stringify({ path: '/project/plan.md', content, overwrite: true })}`,
    });
    await expect.poll(async () => (await server.call('GET', 'runs?state=running')).runs.length).toBe(0); // its branch is free
    return c;
  };
  await change('Second thoughts', 'one\n2\nthree\nfour\n');
  const card = page.locator('.panel', { hasText: 'plans' }).first();
  await expect(card).toBeVisible({ timeout: 20_000 });
  await card.getByRole('button', { name: 'Show changes' }).click();
  const file = card.getByRole('region', { name: 'plan.md' });
  const row = file.getByRole('row', { name: /two/ });
  await expect(row.locator('td.del').last()).toHaveText('two');
  await expect(row.locator('td.add').last()).toHaveText('2');
  await page.setViewportSize({ width: 400, height: 800 });
  await expect(card.locator('.diff-line.del').filter({ hasText: 'two' })).toBeVisible();
  await expect(card.locator('.diff-line.add').filter({ hasText: '2' })).toBeInViewport({ ratio: 0.3 });
  await page.setViewportSize({ width: 1440, height: 900 });
  await card.getByRole('button', { name: 'Merge…' }).click();
  const merge = page.getByRole('dialog', { name: 'Merge into main of plans?' });
  await expect(merge).toContainText('1 file, +2 −1');
  await merge.getByRole('button', { name: 'Merge', exact: true }).click();
  await expect
    .poll(() => execFileSync('git', ['-C', dir, 'show', 'main:plan.md'], { encoding: 'utf8' }))
    .toBe('one\n2\nthree\nfour\n');
  await expect(card.getByText('merged', { exact: true })).toBeVisible();
  await expect(card).toContainText('Merged into main by owner');
  await expect(card.getByRole('button', { name: 'Merge…' })).toHaveCount(0);
  const third = await change('Third thoughts', 'gone\n');
  const second = page.locator('.panel', { hasText: third.id.replace('conv_', 'conv-') });
  await second.getByRole('button', { name: 'Discard…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard', exact: true }).click();
  await expect
    .poll(async () => (await server.call('GET', 'branches')).branches.map((b: { state: string }) => b.state).sort())
    .toEqual(['discarded', 'ready']);
  rmSync(dir, { recursive: true, force: true });
});

test('notes are searched, explained, changed, merged and forgotten', async ({ signedIn: page, server }) => {
  const texts = async () => (await server.call('GET', 'notes')).notes.map((n: { content: string }) => n.content);
  await server.call('POST', 'notes', { content: 'The gate code of the garden is 4711', tags: ['home'] });
  await server.call('POST', 'notes', { content: 'Gate code of the garden: 4711.', tags: ['codes'] });
  await page.goto(`${server.url}/memory`);
  const notes = page.locator('main').getByRole('article');
  await expect(notes).toHaveCount(4);
  await page.getByLabel('Search notes').fill('reports monday');
  await expect(notes.first()).toContainText('Ada prefers reports');
  await notes.first().getByRole('button', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Text' }).fill('Ada prefers reports on Tuesday.');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(notes.first()).toContainText('Tuesday');
  await notes.first().getByRole('button', { name: 'Why' }).click();
  await expect(dialog.getByRole('listitem')).toContainText(['Tuesday', 'Monday']);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByLabel('Search notes').fill('');

  await page.getByRole('button', { name: 'Find duplicates' }).click();
  await page.getByRole('link', { name: 'Review' }).click();
  await expect(page.locator('main')).toContainText('Gate code of the garden: 4711.');
  await page.getByRole('button', { name: 'Accept 1' }).click();
  await expect.poll(async () => (await texts()).filter((t: string) => /gate code/i.test(t)).length).toBe(1);

  await page.goto(`${server.url}/memory`);
  await expect(notes).toHaveCount(3);
  const monday = notes.filter({ hasText: 'Ada prefers' });
  await monday.getByRole('button', { name: 'Delete' }).click();
  await expect(monday).toHaveCount(0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(monday).toHaveCount(1);
  await monday.getByRole('button', { name: 'Delete' }).click();
  await expect(monday).toHaveCount(0);
  await page.getByRole('button', { name: 'Deleted notes' }).click();
  await dialog.getByRole('listitem').filter({ hasText: 'Ada' }).getByRole('button', { name: 'Restore' }).click();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect(monday).toHaveCount(1);
  await expect(page.getByText('Proposed changes of your notes')).toHaveCount(0);
  const warehouse = notes.filter({ hasText: 'The warehouse opens' });
  await warehouse.getByRole('button', { name: 'Forget…' }).click();
  await expect(dialog).toContainText('The warehouse opens at 7.');
  await dialog.getByRole('button', { name: 'Forget', exact: true }).click();
  await expect(warehouse).toHaveCount(0);
  await expect(dialog.getByRole('region', { name: 'Where its text may remain' })).toContainText('backups');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await expect(dialog).toHaveCount(0);
  expect(await texts()).not.toContain('The warehouse opens at 7.');
});
