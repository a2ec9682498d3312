const PREFIX = 'reeve-draft ';

/** readDraft returns the text that a person typed for key and did not send, in this tab. */
export function readDraft(store: Storage, key: string): string {
  return store.getItem(PREFIX + key) ?? '';
}

/** keepDraft keeps what a person typed for key until the tab closes. Empty text removes it. */
export function keepDraft(store: Storage, key: string, text: string): void {
  if (text === '') return store.removeItem(PREFIX + key);
  try {
    store.setItem(PREFIX + key, text);
  } catch {
    // The storage is full or forbidden. The text stays in the field.
  }
}

const OWNER = 'reeve-draft-owner';

/** ownDrafts makes user the owner of the drafts of this tab. Those of another person are removed. */
export function ownDrafts(store: Storage, user: string): void {
  if (store.getItem(OWNER) === user) return;
  store.clear();
  try {
    store.setItem(OWNER, user);
  } catch {
    // The storage is forbidden, so there are no drafts.
  }
}
