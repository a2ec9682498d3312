import { useState } from 'react';
import { api, ok } from '../../api/client';
import { useRefresh } from '../../app/act';
import { useAgents } from '../../app/data';
import { Dialog } from '../../ui/dialog';
import { Button, Field } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { useNotify } from '../../ui/toast';

type Kind = 'cron' | 'interval' | 'once';

const UNITS = { m: 'minutes', h: 'hours', d: 'days' } as const;

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface When {
  kind: Kind;
  cron: string;
  every: string;
  unit: keyof typeof UNITS;
  at: string;
}

// cadenceOf returns what the server calls the value of a cadence, or an empty text if something is missing.
function cadenceOf(w: When): string {
  if (w.kind === 'cron') return w.cron.trim();
  if (w.kind === 'once') return Number.isNaN(Date.parse(w.at)) ? '' : new Date(w.at).toISOString();
  const n = Number(w.every);
  if (!(n > 0)) return '';
  return w.unit === 'd' ? `${n * 24}h` : `${n}${w.unit}`;
}

/** NewSchedule makes a schedule: an agent, a goal, and when. */
export function NewSchedule({ onClose }: { onClose: () => void }) {
  const agents = useAgents();
  const notify = useNotify();
  const refresh = useRefresh('schedules');
  const [form, setForm] = useState({ agent: '', name: '', goal: '' });
  const [when, setWhen] = useState<When>({ kind: 'cron', cron: '0 7 * * 1-5', every: '2', unit: 'h', at: '' });
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }));
  const agent = form.agent || agents.data?.agents?.[0]?.name || '';
  const cadence = cadenceOf(when);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.POST('/api/schedules', {
          body: {
            agent,
            name: form.name.trim() || undefined,
            goal: form.goal,
            cadence_type: when.kind,
            cadence_value: cadence,
            timezone: ZONE,
          },
        }),
      );
      notify.done('Created');
      onClose();
    } catch (e) {
      setError(e);
    }
    refresh();
  };
  return (
    <Dialog title="New schedule" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Field label="Agent">
          {(id) => (
            <select
              id={id}
              className="input"
              autoFocus
              value={agent}
              onChange={(e) => set({ agent: e.target.value })}
            >
              {agents.data?.agents?.map((a) => (
                <option key={a.id} value={a.name}>
                  {a.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Name (optional)" name="name">
          {(id) => (
            <input id={id} className="input" value={form.name} onChange={(e) => set({ name: e.target.value })} />
          )}
        </Field>
        <Field label="Goal" name="goal" help="What the agent should do each time.">
          {(id) => (
            <textarea
              id={id}
              className="input"
              required
              value={form.goal}
              onChange={(e) => set({ goal: e.target.value })}
            />
          )}
        </Field>
        <WhenFields when={when} onChange={setWhen} />
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={agent === '' || form.goal.trim() === '' || cadence === ''}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function WhenFields({ when, onChange }: { when: When; onChange: (when: When) => void }) {
  const set = (change: Partial<When>) => onChange({ ...when, ...change });
  return (
    <>
      <Field label="Repeats">
        {(id) => (
          <select
            id={id}
            className="input"
            value={when.kind}
            onChange={(e) => set({ kind: e.target.value as Kind })}
          >
            <option value="cron">at set times (cron)</option>
            <option value="interval">every so often</option>
            <option value="once">once</option>
          </select>
        )}
      </Field>
      {when.kind === 'cron' && (
        <Field
          label="When"
          name="cadence_value"
          help={`Minute, hour, day of the month, month, weekday, in ${ZONE}. 0 7 * * 1-5 is 7:00 from Monday to Friday.`}
        >
          {(id) => (
            <input
              id={id}
              className="input mono"
              required
              placeholder="0 7 * * 1-5"
              value={when.cron}
              onChange={(e) => set({ cron: e.target.value })}
            />
          )}
        </Field>
      )}
      {when.kind === 'interval' && (
        <div className="row top-row">
          <Field label="Every" name="cadence_value">
            {(id) => (
              <input
                id={id}
                className="input"
                type="number"
                min="1"
                step="1"
                required
                value={when.every}
                onChange={(e) => set({ every: e.target.value })}
              />
            )}
          </Field>
          <Field label="Unit">
            {(id) => (
              <select
                id={id}
                className="input"
                value={when.unit}
                onChange={(e) => set({ unit: e.target.value as When['unit'] })}
              >
                {Object.entries(UNITS).map(([value, label]) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
      )}
      {when.kind === 'once' && (
        <Field label="When" name="cadence_value" help={`In ${ZONE}.`}>
          {(id) => (
            <input
              id={id}
              className="input"
              type="datetime-local"
              required
              value={when.at}
              onChange={(e) => set({ at: e.target.value })}
            />
          )}
        </Field>
      )}
    </>
  );
}
