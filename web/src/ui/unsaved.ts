import { useCallback, useRef } from 'react';
import { useBlocker, type ShouldBlockFn } from '@tanstack/react-router';

/** Leaving is the question whether a person leaves a page and loses what they typed. */
export interface Leaving {
  isAsked: boolean;
  leave: () => void;
  stay: () => void;
}

/**
 * useUnsaved stops a person from leaving a page while isUnsaved returns true: the caller asks when isAsked is true. The
 * browser asks before it reloads or closes the page.
 */
export function useUnsaved(isUnsaved: () => boolean): Leaving {
  const latest = useRef(isUnsaved);
  latest.current = isUnsaved;
  const shouldBlockFn = useCallback<ShouldBlockFn>(async ({ current, next }) => {
    if (current.pathname === next.pathname) return false; // only the search or an anchor changes
    await new Promise((resolve) => setTimeout(resolve)); // a form that was saved closes first
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
