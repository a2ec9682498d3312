import { useCallback, useRef } from 'react';
import { useBlocker, type ShouldBlockFn } from '@tanstack/react-router';

/** CLOSES_IN_MS is how long a form may take to disappear that was saved and leads to another page. */
const CLOSES_IN_MS = 50;

/** Leaving is the question whether a person leaves a page and loses what they typed. */
export interface Leaving {
  isAsked: boolean;
  leave: () => void;
  stay: () => void;
}

/** isUnsaved reports whether something on the page is lost by leaving it. */
export function isUnsaved(): boolean {
  const question = new Event('beforeunload', { cancelable: true }); // the router answers for each useUnsaved
  window.dispatchEvent(question);
  return question.defaultPrevented;
}

/**
 * useUnsaved stops a person from leaving a page while isUnsaved returns true: the caller asks when isAsked is true. The
 * browser asks before it reloads or closes the page.
 */
export function useUnsaved(isUnsaved: () => boolean): Leaving {
  const latest = useRef(isUnsaved);
  latest.current = isUnsaved;
  const shouldBlockFn = useCallback<ShouldBlockFn>(async ({ current, next }) => {
    if (current.pathname === next.pathname || !latest.current()) return false; // a search or an anchor loses nothing
    await new Promise((resolve) => setTimeout(resolve, CLOSES_IN_MS));
    return latest.current();
  }, []);
  const enableBeforeUnload = useCallback(() => latest.current(), []);
  const blocker = useBlocker({ shouldBlockFn, enableBeforeUnload, withResolver: true });
  return {
    isAsked: blocker.status === 'blocked',
    leave: () => blocker.proceed?.(),
    stay: () => blocker.reset?.(),
  };
}
