import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { isTyping, KeyMatcher, TypingGuard, type Binding } from '../lib/keys';
import { Dialog } from '../ui/dialog';
import { Button } from '../ui/kit';

interface Keyboard {
  add: (group: string, read: () => Binding[]) => () => void;
  changed: () => void;
  help: () => void;
}

const Context = createContext<Keyboard>({ add: () => () => {}, changed: () => {}, help: () => {} });

/** useKeys adds bindings for as long as the component is shown. */
export function useKeys(group: string, bindings: Binding[]): void {
  const keyboard = useContext(Context);
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(() => keyboard.add(group, () => latest.current), [keyboard, group]);
  const shown = bindings.map((b) => `${b.keys} ${b.label}`).join('\n');
  useEffect(() => keyboard.changed(), [keyboard, shown]); // an open list shows what applies now
}

/** useKeyHelp returns a function that shows all bindings. */
export function useKeyHelp(): () => void {
  return useContext(Context).help;
}

/** KeyboardProvider listens for keys and shows the list of bindings. */
export function KeyboardProvider({ children }: { children: ReactNode }) {
  const groups = useRef<{ group: string; read: () => Binding[] }[]>([]);
  const [helpOpen, setHelpOpen] = useState(false);
  const [, setVersion] = useState(0); // renders the list again when a screen adds or removes bindings
  const keyboard = useMemo<Keyboard>(() => ({
    add(group, read) {
      const entry = { group, read };
      groups.current = [...groups.current, entry];
      setVersion((v) => v + 1);
      return () => {
        groups.current = groups.current.filter((g) => g !== entry);
        setVersion((v) => v + 1);
      };
    },
    changed: () => setVersion((v) => v + 1),
    help: () => setHelpOpen(true),
  }), []);
  useEffect(() => {
    const matcher = new KeyMatcher();
    const guard = new TypingGuard();
    // It listens before the field does, because a field may handle the key and stop it.
    const onText = (e: KeyboardEvent) => {
      if (isTyping(e.composedPath()[0] ?? null)) guard.typed(e.key, e.timeStamp);
    };
    const onKey = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.key === 'Shift' || isTyping(e.target)) return;
      const isText = guard.swallows(e.key, e.timeStamp);
      if (isText || e.defaultPrevented || document.querySelector('[role=dialog]')) return;
      const all = [...groups.current].reverse().flatMap((g) => g.read());
      const found = matcher.press(e.key, [...all, { keys: '?', label: '', run: () => setHelpOpen(true) }], e.timeStamp);
      if (!found) return;
      e.preventDefault();
      if (!e.repeat || found.repeats) found.run();
    };
    const onPointer = () => guard.ended();
    window.addEventListener('keydown', onText, true);
    window.addEventListener('keydown', onKey);
    window.addEventListener('pointerdown', onPointer, true);
    return () => {
      window.removeEventListener('keydown', onText, true);
      window.removeEventListener('keydown', onKey);
      window.removeEventListener('pointerdown', onPointer, true);
    };
  }, []);
  return (
    <Context.Provider value={keyboard}>
      {children}
      {helpOpen && (
        <Dialog title="Keyboard" onClose={() => setHelpOpen(false)}>
          {groups.current.filter((g) => g.read().length > 0).map((g) => (
            <section key={g.group} className="stack tight">
              <h3>{g.group}</h3>
              <dl className="facts">
                {g.read().map((b) => (
                  <KeyRow key={b.keys} binding={b} />
                ))}
              </dl>
            </section>
          ))}
          <p className="small faint"><kbd>?</kbd> shows this list, <kbd>Esc</kbd> closes it.</p>
          <div className="actions">
            <Button onClick={() => setHelpOpen(false)}>Close</Button>
          </div>
        </Dialog>
      )}
    </Context.Provider>
  );
}

function KeyRow({ binding }: { binding: Binding }) {
  return (
    <>
      <dt>{binding.keys.split(' ').map((k) => <kbd key={k}>{k}</kbd>)}</dt>
      <dd>{binding.label}</dd>
    </>
  );
}
