import AxeBuilder from '@axe-core/playwright';
import { expect, test } from './fixtures';

const paths = (s: { writer: string; conversation: string; triage: string }) => ['/inbox', '/runs', '/chat', `/chat/${s.conversation}`, '/agents', `/agents/${s.writer}`,
  '/tools', '/tools/file_write', '/automations', `/automations/${s.triage}`, '/schedules', '/subscriptions', '/memory', '/journal',
  '/mail', '/branches', '/settings', '/settings/budgets', '/settings/profiles', '/settings/tokens', '/settings/secrets', '/nowhere'];

for (const scheme of ['light', 'dark'] as const) {
  test(`C22 C23 every screen is accessible and none is blank (${scheme})`, async ({ signedIn: page, server, seeded }) => {
    test.setTimeout(240_000);
    await page.emulateMedia({ colorScheme: scheme });
    const ops = (await server.call('GET', 'operations')).operations;
    const runs = (await server.call('GET', 'runs')).runs;
    const sets = (await server.call('GET', 'change-sets')).change_sets;
    for (const path of [...paths(seeded), `/operations/${ops[0].id}`, `/runs/${runs[0].id}`, `/change-sets/${sets[0].id}`, '/runs/run_missing']) {
      await page.goto(server.url + path);
      await expect(page.locator('main')).not.toHaveText('');
      await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
      const report = await new AxeBuilder({ page }).analyze();
      expect.soft(report.violations.map((v) => `${path}: ${v.id}: ${v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ')}`)).toEqual([]);
    }
  });
}

test('C23 every screen fits 400 pixels and 200 % zoom', async ({ signedIn: page, server, seeded }) => {
  test.setTimeout(120_000);
  for (const width of [400, 640]) {
    await page.setViewportSize({ width, height: 800 });
    for (const path of paths(seeded)) {
      await page.goto(server.url + path);
      await expect(page.locator('main')).not.toHaveText('');
      await expect(page.getByRole('status', { name: 'Loading' })).toHaveCount(0);
      expect.soft(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), `${path} at ${width}`).toBeLessThanOrEqual(0);
    }
  }
});

test('C22 an error shows the hint and the id of the request', async ({ signedIn: page, server }) => {
  await page.goto(`${server.url}/runs/run_missing`);
  await expect(page.getByRole('alert')).toContainText(/Request req_/);
});
