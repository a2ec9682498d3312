import { defineConfig } from '@playwright/test';

const executablePath = process.env.REEVE_TEST_CHROMIUM ?? '/usr/bin/chromium';

/** The tests start bin/reeve themselves: once per test, on each database. */
export default defineConfig<{ database: 'sqlite' | 'postgres' }>({
  testDir: 'e2e',
  testMatch: '*.spec.ts',
  workers: 2,
  retries: 1, // a test that passes only the second time is reported as flaky
  fullyParallel: true,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  outputDir: 'e2e/results',
  use: {
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    reducedMotion: 'reduce',
    launchOptions: {
      executablePath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync'],
    },
  } as never,
  projects: [
    { name: 'sqlite', use: { database: 'sqlite' } },
    { name: 'postgres', use: { database: 'postgres' } },
  ],
});
