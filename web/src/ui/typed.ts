import { useEffect, useRef, useState } from 'react';

/**
 * useTyped is the text of a search field whose search is in the address. write puts what is typed into the address,
 * without spaces around it; a field without it does so by itself. The text follows the address when it changes
 * otherwise, such as by a link.
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
