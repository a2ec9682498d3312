import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// REEVE_URL names the server that the development server passes requests to.
const target = process.env.REEVE_URL ?? 'http://127.0.0.1:7410';

export default defineConfig({
  plugins: [react()],
  server: {
    proxy: {
      '/api': { target },
      '/conversations': { target, ws: true },
    },
  },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
  },
  test: { include: ['src/**/*.test.ts'] },
});
