/** Binding is a key or a sequence of keys, such as j or g i, with what it does. */
export interface Binding {
  keys: string;
  label: string;
  run: () => void;
}

/** KeyMatcher follows what is typed and finds the binding that it completes. */
export class KeyMatcher {
  private typed: string[] = [];
  private at = 0;

  /** press returns the binding that key completes, or null. A pause of more than a second starts a new sequence. */
  press(key: string, bindings: Binding[], now: number): Binding | null {
    if (now - this.at > 1000) this.typed = [];
    this.at = now;
    const typed = [...this.typed, key].join(' ');
    const found = bindings.find((b) => b.keys === typed) ?? bindings.find((b) => b.keys === key);
    if (found && !bindings.some((b) => b.keys.startsWith(`${typed} `))) {
      this.typed = [];
      return found;
    }
    this.typed = bindings.some((b) => b.keys.startsWith(`${typed} `)) ? [...this.typed, key]
      : bindings.some((b) => b.keys.startsWith(`${key} `)) ? [key] : [];
    return null;
  }
}

const CHOICES = /^(checkbox|radio|button|submit|reset|file|range|color)$/;

/** isTyping reports whether a key belongs to a text field or a menu rather than to the page. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
    || (target instanceof HTMLInputElement && !CHOICES.test(target.type))
    || target.closest('[role=menu],[role=listbox],[data-own-keys]') !== null;
}
