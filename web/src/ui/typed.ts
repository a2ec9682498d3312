import { useEffect, useRef, useState } from 'react';

/**
 * useTyped returns the text of a search field and a function that sets it. asked is the search in the address. write
 * puts the typed text into the address, without spaces around it. Leave write out if the caller does that itself. When
 * the address changes in another way, such as by a link, the text follows it.
 */
export function useTyped(asked: string, write?: (text: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState(asked);
  const sent = useRef<string[]>([]); // not in the address yet: a person may type faster
  useEffect(() => {
    const at = sent.current.lastIndexOf(asked);
    sent.current.splice(0, at + 1);
    if (at < 0) setTyped((now) => (now.trim() === asked ? now : asked));
  }, [asked]);
  const type = (text: string) => {
    setTyped(text);
    const next = text.trim();
    if (!write || next === (sent.current.at(-1) ?? asked)) return;
    sent.current.push(next);
    write(next);
  };
  return [typed, type];
}
