/** Theme is the colour scheme that a person chose; system follows the device. */
export type Theme = 'system' | 'light' | 'dark';

const dark = matchMedia('(prefers-color-scheme: dark)');

/** readTheme returns the chosen theme. */
export function readTheme(): Theme {
  const stored = localStorage.getItem('reeve-theme');
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

/** applyTheme stores and shows a theme. */
export function applyTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem('reeve-theme');
  else localStorage.setItem('reeve-theme', theme);
  const isDark = theme === 'dark' || (theme === 'system' && dark.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

/** followDevice applies the theme of the device as long as the person has chosen no other. */
export function followDevice(): void {
  applyTheme(readTheme());
  dark.addEventListener('change', () => applyTheme(readTheme()));
}
