/** Binding is a key or a sequence of keys, such as j or g i, with what it does. */
export interface Binding {
  keys: string;
  label: string;
  run: () => void;
  repeats?: boolean; // holding the key down runs it again and again
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

/** TYPING_PAUSE is how many milliseconds after the last typed character a key counts as a key of the page again. */
export const TYPING_PAUSE = 1500;

/**
 * TypingGuard recognises a person who types on although the text field is gone: it closed, or lost the focus. Such a
 * letter is no shortcut. A key that ends typing (Enter, Escape or Tab) or a click ends the guard at once.
 */
export class TypingGuard {
  private typedAt = -Infinity;

  /** typed notes a key that went into a text field. */
  typed(key: string, now: number): void {
    this.typedAt = key.length === 1 || key === 'Backspace' || key === 'Delete' ? now : -Infinity;
  }

  /** ended notes that the person turned to something else. */
  ended(): void {
    this.typedAt = -Infinity;
  }

  /** swallows reports whether a key outside of text fields belongs to what was typed before it. */
  swallows(key: string, now: number): boolean {
    if (now - this.typedAt > TYPING_PAUSE) return false;
    if (key.length === 1) this.typedAt = now;
    else this.ended();
    return true;
  }
}
