import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';
import { expect, furnish, pressOnCard, test, type Seeded, type Server } from './fixtures';

/** Stop is a screen to look at: its path, and what to do there first. */
interface Stop {
  path: string;
  name?: string;
  open?: (page: Page) => Promise<void>;
}

const press = (name: string | RegExp) => (page: Page) =>
  page.locator('main').getByRole('button', { name }).first().click();
const dialog = (path: string, button: string | RegExp): Stop => ({
  path,
  name: `${path}, ${String(button)}`,
  open: async (page) => {
    await press(button)(page);
    await expect(page.getByRole('dialog')).toBeVisible();
    await expect(page.getByRole('dialog').getByRole('status', { name: 'Loading' })).toHaveCount(0);
  },
});

// MISSING are addresses of nothing: unknown ids, and paths that no screen has.
const MISSING = [
  '/runs/run_missing',
  '/approvals/apr_missing',
  '/change-sets/set_missing',
  '/operations/op_missing',
  '/agents/agt_missing',
  '/tools/missing',
  '/automations/agt_missing',
  '/chat/conv_missing',
  '/settings/missing',
  '/nowhere',
  '/runs/a/b',
];

// stops returns every route of the console, with data on it, and the dialogs that edit.
async function stops(server: Server, s: Seeded): Promise<Stop[]> {
  const first = async (list: string) => {
    const answer = await server.call('GET', list);
    return (Object.values(answer).find(Array.isArray) as { id: string }[])[0]!.id;
  };
  const paths = [
    '/inbox',
    `/approvals/${await first('approvals?state=pending')}`,
    `/change-sets/${await first('change-sets')}`,
    `/operations/${await first('operations')}`,
    '/runs',
    `/runs/${await first('runs')}`,
    '/chat',
    `/chat/${s.conversation}`,
    '/agents',
    `/agents/${s.writer}`,
    '/tools',
    '/tools/file_write',
    '/automations',
    `/automations/${s.triage}`,
    '/schedules',
    '/subscriptions',
    '/memory',
    '/journal',
    '/mail',
    '/branches',
    '/settings',
    '/settings/budgets',
    '/settings/profiles',
    '/settings/members',
    '/settings/tokens',
    '/settings/secrets',
    '/nowhere',
    '/runs/run_missing',
  ];
  return [
    ...paths.map((path) => ({ path })),
    dialog('/tools', 'New tool'),
    dialog('/automations', 'New automation'),
    dialog('/subscriptions', 'New subscription'),
    dialog('/memory', 'Why'),
    dialog('/memory', 'Edit'),
    dialog('/journal', /Count the returns/),
    dialog(`/agents/${s.writer}`, 'Edit'),
    dialog(`/agents/${s.writer}`, 'Attach a tool'),
    {
      path: '/mail',
      name: 'a mail',
      open: async (page) => {
        await page.getByRole('list', { name: 'Mails' }).getByRole('button').first().click();
        await expect(page.getByRole('article', { name: 'Mail' })).toContainText('Mailbox');
      },
    },
  ];
}

// visit shows a screen without loading the page again, and waits until its data is there.
async function visit(page: Page, stop: Stop): Promise<void> {
  if (await page.getByRole('dialog').count()) await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.evaluate((path) => {
    history.pushState({}, '', '/settings/none'); // every visit begins with a fresh screen
    dispatchEvent(new PopStateEvent('popstate'));
    history.pushState({}, '', path);
    dispatchEvent(new PopStateEvent('popstate'));
  }, stop.path);
  await expect(page.locator('main :is(h1, h2)').first()).toBeVisible();
  await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
  await stop.open?.(page);
}

// layoutFaults returns what does not fit the window, and whether the main region is empty.
const layoutFaults = (page: Page) =>
  page.evaluate(() => {
    const faults: string[] = [];
    if (document.documentElement.scrollWidth > innerWidth) faults.push('the page scrolls sideways');
    if ((document.querySelector('main')?.textContent ?? '').trim().length < 10) faults.push('the main region is empty');
    for (const e of document.querySelectorAll('main *, header *, [role=dialog] *')) {
      const box = e.getBoundingClientRect();
      if (
        box.width > 1 &&
        box.right > innerWidth + 1 &&
        !e.closest('.scroll, .lines, .code, .tabs, .cut, .hide, .skip')
      ) {
        faults.push(`${e.tagName} ${e.className} ends ${Math.round(box.right - innerWidth)} px outside the window`);
      }
    }
    for (const cell of document.querySelectorAll<HTMLElement>('.table td')) {
      const words = cell.innerText.trim();
      if (words.length > 4 && cell.getBoundingClientRect().width > 0 && cell.clientWidth < 40)
        faults.push(`"${words.slice(0, 20)}" is squeezed into ${cell.clientWidth} px`);
    }
    return faults.slice(0, 3);
  });

// PARTS is how many tests share the screens, so that they run side by side.
const PARTS = 3;

for (let part = 1; part <= PARTS; part++)
  test(`C22 C23 every screen is accessible in both schemes, fits, and none is blank, part ${part}`, async ({
    signedIn: page,
    server,
    seeded,
  }) => {
    test.setTimeout(300_000);
    await furnish(server, seeded);
    for (const stop of (await stops(server, seeded)).filter((_, i) => i % PARTS === part - 1)) {
      await page.setViewportSize({ width: 1440, height: 900 });
      await visit(page, stop);
      for (const [width, height, scheme] of [
        [1440, 900, 'light'],
        [640, 800, 'dark'],
        [400, 800, 'dark'],
      ] as const) {
        const where = `${stop.name ?? stop.path}, ${width} px, ${scheme}`;
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme: scheme });
        await expect.poll(() => layoutFaults(page), { message: where }).toEqual([]);
        if (width === 640) continue; // what a window of 1280 px shows at 200 % zoom
        const axe = new AxeBuilder({ page }); // a dialog hides the page beneath, with its main region and heading
        if (scheme === 'dark')
          axe.withRules(['color-contrast', 'scrollable-region-focusable', 'aria-hidden-focus']);
        else if (await page.getByRole('dialog').count()) axe.disableRules(['landmark-one-main', 'page-has-heading-one']);
        const { violations } = await axe.analyze();
        expect
          .soft(
            violations.map(
              (v) =>
                `${v.id}: ${v.nodes
                  .map((n) => n.target.join(' '))
                  .slice(0, 3)
                  .join(', ')}`,
            ),
            where,
          )
          .toEqual([]);
      }
    }
  });

test('C22 an address of nothing, and every empty list, says what to do', async ({ signedIn: page, server }) => {
  for (const path of MISSING) {
    await visit(page, { path });
    const said = page.locator('main .state').first();
    await expect.soft(said, path).toBeVisible();
    const help = said.locator('p, a, button').filter({ hasText: /\S/ }).first();
    await expect.soft(help, `${path} says what to do`).toBeVisible();
    expect.soft(await layoutFaults(page), path).toEqual([]);
  }
  await visit(page, { path: '/runs/run_missing' });
  await expect(page.getByRole('alert')).toContainText(/Request req_/);
  await expect(page.getByRole('alert')).toContainText('It was deleted, or belongs to another workspace.');
  await expect(page.getByRole('button', { name: 'Try again' })).toHaveCount(0);
  await page.getByRole('link', { name: 'All runs' }).click();
  await expect(page).toHaveURL(/\/runs$/);

  await server.call('POST', 'workspaces', { id: 'empty', name: 'Empty' });
  await page.evaluate(() => localStorage.setItem('reeve-workspace', 'empty'));
  await page.goto(`${server.url}/inbox`);
  await expect(page.getByRole('button', { name: 'Workspace Empty' })).toBeVisible();
  for (const path of [
    '/inbox',
    '/runs',
    '/chat',
    '/agents',
    '/automations',
    '/schedules',
    '/subscriptions',
    '/memory',
    '/journal',
    '/mail',
    '/branches',
    '/settings/budgets',
    '/settings/secrets',
  ]) {
    await visit(page, { path });
    const said = page.locator('main .state').first();
    await expect.soft(said, path).toBeVisible();
    const help = said.locator('p, a, button').filter({ hasText: /\S/ }).first();
    await expect.soft(help, `${path} says what to do`).toBeVisible();
  }
});

test('C22 C23 a dialog keeps what was typed, and an error stands at its field', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/inbox`);
  const entry = page.locator('.entry', { hasText: 'users_send' }).locator('.entry-open');
  await entry.click();
  await expect(page.locator('.inbox-card')).toContainText('Delivery');
  await pressOnCard(page, 'e');
  const edit = page.getByRole('dialog', { name: 'Edit users_send' });
  await expect(edit.getByLabel(/^title/)).toBeFocused();
  await expect(edit.getByRole('group', { name: 'Hidden characters of text' })).toContainText('RLOtomorrowPDF');
  await edit.getByRole('button', { name: 'Remove them' }).click();
  await expect(edit.getByLabel('text', { exact: true })).toHaveValue('The parcel 4711 arrives tomorrow, not today.');
  await expect(edit.getByRole('button', { name: 'Remove them' })).toHaveCount(0);
  await edit.getByLabel(/^title/).fill('');
  await edit.getByRole('button', { name: 'Replace the call' }).click();
  const title = edit.getByLabel(/^title/);
  await expect(title).toHaveAttribute('aria-invalid', 'true');
  await expect(title).toHaveAccessibleDescription(/title is required/);
  await expect(edit).not.toContainText('/title');
  await page.mouse.click(5, 300); // beside the dialog
  await expect(edit.locator(':focus')).toHaveCount(1);
  await page.keyboard.press('Escape');
  const question = page.getByRole('dialog', { name: 'Discard what you typed?' });
  await question.getByRole('button', { name: 'Keep editing' }).click();
  await expect(question).toHaveCount(0);
  await expect(edit).toBeVisible();
  await page.keyboard.press('Escape');
  await question.getByRole('button', { name: 'Discard' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);

  await page.goto(`${server.url}/agents`);
  await page.getByRole('button', { name: 'New agent' }).click();
  const form = page.getByRole('dialog', { name: 'New agent' });
  await expect(form.getByLabel('Name')).toBeFocused();
  await page.mouse.click(5, 300); // nothing was typed
  await expect(form).toHaveCount(0);

  await page.setViewportSize({ width: 400, height: 800 });
  await page.goto(`${server.url}/tools`);
  await page.getByRole('button', { name: 'New tool' }).click();
  const tool = page.getByRole('dialog', { name: 'New tool' });
  const save = tool.locator('.actions').getByRole('button').last();
  await expect(save).toBeInViewport();
});

test('C23 the focus is never lost', async ({ signedIn: page, server, seeded }) => {
  const focused = () => page.evaluate(() => document.activeElement !== document.body);
  const keeps = (what: string) => expect.poll(focused, { message: what }).toBe(true);
  const card = page.locator('.inbox-card');
  await expect(card).toContainText('New figures arrived');
  await card.getByRole('button', { name: /^Approve/ }).click();
  await expect(card).not.toContainText('New figures arrived');
  await keeps('after an approval');
  await expect(page.locator('[data-current] .entry-open')).toBeFocused();
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await expect(card).toContainText('Delivery');
  await page.getByRole('checkbox', { name: 'Select users_send' }).focus();
  await pressOnCard(page, 'd'); // keys work while a checkbox has the focus
  await page.getByRole('dialog').getByRole('button', { name: 'Deny' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await keeps('after a denial');

  await page.goto(`${server.url}/runs`);
  await page.locator('.virtual a').first().focus();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/runs\/run_/);
  await keeps('after a run opens');
  await page.getByRole('button', { name: 'Stop all' }).click();
  await page.getByRole('button', { name: 'Stop all agents' }).click();
  await expect(page.getByText('All agents are stopped since')).toBeVisible();
  await keeps('after a stop');
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect(page.getByText('All agents are stopped since')).toHaveCount(0);
  await keeps('after Resume');

  await page.goto(`${server.url}/chat/${seeded.conversation}`);
  const box = page.getByLabel('Message', { exact: true });
  await expect(box).toBeFocused();
  await box.fill('memory_save {"content":"Ferns like shade."}');
  await expect(page.getByRole('button', { name: 'Send' })).toBeEnabled(); // the conversation is connected
  await page.keyboard.press('Enter');
  await page.getByRole('log').getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByRole('log').getByRole('button', { name: 'Approve' })).toHaveCount(0);
  await expect(box).toBeFocused();

  await page.setViewportSize({ width: 400, height: 800 });
  await expect(page.getByRole('button', { name: 'Send' })).toBeInViewport();
  const covered = await page.evaluate(() => {
    const send = document.querySelector('.chat-form')!.getBoundingClientRect();
    return send.bottom > document.querySelector('.bottom')!.getBoundingClientRect().top;
  });
  expect(covered, 'the bar covers the message').toBe(false);
  await page.goto(`${server.url}/inbox`);
  await page.locator('.entry-open').first().click();
  await expect(page.locator('.inbox-card')).toBeFocused();
  await page.getByRole('button', { name: '← Inbox' }).click();
  await expect(page.locator('.entry-open').first()).toBeFocused();
  await page.getByRole('button', { name: 'More' }).click();
  const drawer = page.getByRole('navigation', { name: 'Main', exact: true });
  await expect(drawer.getByRole('link').first()).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('button', { name: 'More' })).toBeFocused();
  await expect(drawer).toBeHidden();
});
