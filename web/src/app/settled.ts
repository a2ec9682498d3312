import { useEffect, useState } from 'react';

const SETTLE_MS = 600;

/**
 * useSettled reports whether a value has stayed the same for a moment. A decision waits for that, so that a key held
 * down or a second click does not decide on something that the person has not seen.
 */
export function useSettled(value: string): boolean {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled === value;
}
