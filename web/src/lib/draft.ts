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
