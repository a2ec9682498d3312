import { lazyPart } from './lazy';

/** Editor is the code editor of ./editor, which loads when it is first needed. */
export const Editor = lazyPart(async () => (await import('./editor')).default);
