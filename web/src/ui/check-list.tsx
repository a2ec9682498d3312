import { useId, useState } from 'react';
import { Inert } from './text';

/** Choice is one line of a CheckList. */
export interface Choice {
  id: string;
  help?: string;
}

/** CheckList chooses some of many: a box to search in, and a checkbox for each. What is chosen stays when it is hidden. */
export function CheckList({ label, choices, chosen, onChange }: {
  label: string;
  choices: Choice[];
  chosen: string[];
  onChange: (chosen: string[]) => void;
}) {
  const [search, setSearch] = useState('');
  const id = useId();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = choices.filter((c) => words.every((w) => `${c.id} ${c.help ?? ''}`.toLowerCase().includes(w)));
  return (
    <fieldset className="field plain">
      <legend className="label">
        {label} <span className="faint num">({chosen.length} chosen)</span>
      </legend>
      <input
        type="search"
        className="input"
        aria-label={`Search: ${label}`}
        placeholder="Search"
        value={search}
        onChange={(e) => setSearch(e.target.value)}
        onKeyDown={(e) => e.key === 'Enter' && e.preventDefault()}
      />
      <div className="check-list">
        {shown.map((c) => (
          <div key={c.id}>
            <label className="row">
              <input
                type="checkbox"
                checked={chosen.includes(c.id)}
                aria-describedby={c.help ? `${id}-${c.id}` : undefined}
                onChange={(e) => onChange(e.target.checked ? [...chosen, c.id] : chosen.filter((x) => x !== c.id))}
              />
              <span className="mono break">{c.id}</span>
            </label>
            {c.help && (
              <div id={`${id}-${c.id}`} className="small faint check-help">
                <Inert text={c.help} />
              </div>
            )}
          </div>
        ))}
        {shown.length === 0 && <p className="small faint">Nothing matches.</p>}
      </div>
    </fieldset>
  );
}
