import { useEffect, type RefObject } from 'react';

/**
 * useKeepFocus moves the focus when the focused element disappears, which leaves a person with a keyboard or a screen
 * reader at the start of the page. The focus goes to the open dialog, or to the closest region around the element that
 * is still there, or to main.
 */
export function useKeepFocus(main: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    let around: Element[] = []; // the element that had the focus last, and what is around it
    let isDue = false;
    const remember = (e: FocusEvent) => {
      around = [];
      for (let at = e.target instanceof Element ? e.target : null; at; at = at.parentElement) around.push(at);
    };
    const repair = () => {
      isDue = false;
      const active = document.activeElement;
      if ((active && active !== document.body) || around.length === 0) return;
      const last = around[0];
      const isThere = last?.isConnected && last.getClientRects().length > 0 && !last.matches(':disabled');
      if (isThere) return; // the person clicked beside it
      const dialog = [...document.querySelectorAll<HTMLElement>('[role=dialog], [role=alertdialog]')].at(-1);
      const region = around.find((e): e is HTMLElement => e instanceof HTMLElement && e.isConnected
        && e.hasAttribute('data-focused-area') && e.getClientRects().length > 0);
      (dialog ?? region ?? main.current)?.focus({ preventScroll: true });
    };
    const changes = new MutationObserver(() => {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => setTimeout(repair)); // after a screen that moves the focus itself
    });
    document.addEventListener('focusin', remember);
    changes.observe(document.body, { subtree: true, childList: true, attributeFilter: ['disabled', 'data-open'] });
    return () => {
      document.removeEventListener('focusin', remember);
      changes.disconnect();
    };
  }, [main]);
}
