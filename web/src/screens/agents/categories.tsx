import type { Schemas } from '../../api/client';
import { Inert } from '../../ui/text';

/** Categories chooses the categories of the journal that an agent may see. */
export function Categories({
  list,
  chosen,
  onChange,
}: {
  list: Schemas['Category'][];
  chosen: string[];
  onChange: (chosen: string[]) => void;
}) {
  return (
    <fieldset className="field plain">
      <legend className="label">Categories of the journal that it may see</legend>
      {list.length === 0 && <span className="small faint">There are no categories yet.</span>}
      <div className="row wrap">
        {list.map((c) => (
          <label key={c.id} className="row">
            <input
              type="checkbox"
              checked={chosen.includes(c.id)}
              onChange={(e) => onChange(e.target.checked ? [...chosen, c.id] : chosen.filter((x) => x !== c.id))}
            />{' '}
            <Inert text={c.name} />
          </label>
        ))}
      </div>
    </fieldset>
  );
}
