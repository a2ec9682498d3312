import { useEffect, useState } from 'react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok } from '../../api/client';
import type { components } from '../../api/schema';
import { useRefresh } from '../../app/act';
import { useAgents } from '../../app/data';
import { changedFields } from '../../lib/changes';
import { cadenceOf, NEVER_SET, UNITS, whenOf, type Kind, type When } from '../../lib/cadence';
import { formatFiring } from '../../lib/format';
import { Dialog } from '../../ui/dialog';
import { Button, Field } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { useNotify } from '../../ui/toast';

type Schedule = components['schemas']['Schedule'];

const BROWSER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const MISFIRES = [
  ['catchup', 'run once for all of them'],
  ['skip', 'do not run them'],
  ['all', 'run each, at most 100 of the last 24 hours'],
] as const;

const NOTIFICATIONS = [
  ['always', 'after each run'],
  ['conditional', 'when the agent says so'],
  ['never', 'never'],
] as const;

/** ScheduleForm makes a schedule or changes one: an agent, a goal, and when. */
export function ScheduleForm({ schedule, onClose }: { schedule?: Schedule; onClose: () => void }) {
  const agents = useAgents();
  const notify = useNotify();
  const refresh = useRefresh('schedule', 'schedules');
  const [start] = useState({
    agent: schedule?.agent_id ?? '',
    name: schedule?.name ?? '',
    goal: schedule?.goal ?? '',
    zone: schedule?.timezone ?? BROWSER_ZONE,
    misfire: schedule?.misfire ?? 'catchup',
    notification: schedule?.notification ?? 'always',
  });
  const [form, setForm] = useState(start);
  const [firstWhen] = useState(() =>
    schedule ? whenOf(schedule.cadence_type as Kind, schedule.cadence_value, schedule.upcoming?.[0]) : NEVER_SET,
  );
  const [when, setWhen] = useState<When>(firstWhen);
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<typeof form>) => setForm((old) => ({ ...old, ...change }));
  const agent = form.agent || agents.data?.agents?.[0]?.id || '';
  const cadence = cadenceOf(when);
  // A change sends the times only if they differ, because the same times may be written differently.
  const isRetimed = !schedule || cadence !== cadenceOf(firstWhen) || when.kind !== firstWhen.kind;
  const save = async () => {
    setError(null);
    const set: Partial<typeof form> = schedule ? changedFields(start, form) : { ...form, agent };
    const body = {
      agent: set.agent,
      name: set.name?.trim() || undefined,
      goal: set.goal?.trim() || undefined,
      timezone: set.zone,
      misfire: set.misfire as 'catchup' | undefined,
      notification: set.notification as 'always' | undefined,
      ...(isRetimed && { cadence_type: when.kind, cadence_value: cadence }),
    };
    try {
      if (schedule) {
        await ok(api.PATCH('/api/schedules/{id}', { params: { path: { id: schedule.id } }, body }));
      } else {
        await ok(api.POST('/api/schedules', { body }));
      }
      notify.done(schedule ? 'Saved' : 'Created');
      onClose();
    } catch (e) {
      setError(e);
    }
    refresh();
  };
  const needsGoal = !schedule || Boolean(schedule.goal);
  return (
    <Dialog title={schedule ? `Edit ${schedule.name}` : 'New schedule'} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Field label="Agent" name="agent">
          {(id) => (
            <select
              id={id}
              className="input"
              autoFocus
              value={agent}
              onChange={(e) => set({ agent: e.target.value })}
            >
              {agents.data?.agents?.map((a) => (
                <option key={a.id} value={a.id}>
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
              required={needsGoal}
              value={form.goal}
              onChange={(e) => set({ goal: e.target.value })}
            />
          )}
        </Field>
        <WhenFields when={when} zone={form.zone} onChange={setWhen} onZone={(zone) => set({ zone })} />
        {isRetimed || form.zone !== start.zone ? <Preview when={when} zone={form.zone} /> : null}
        <div className="row top-row">
          <Choice
            label="Missed while the server was down"
            name="misfire"
            options={MISFIRES}
            value={form.misfire}
            onChange={(misfire) => set({ misfire })}
          />
          <Choice
            label="Notify me"
            name="notification"
            options={NOTIFICATIONS}
            value={form.notification}
            onChange={(notification) => set({ notification })}
          />
        </div>
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="main"
            type="submit"
            disabled={agent === '' || (needsGoal && form.goal.trim() === '') || cadence === ''}
          >
            {schedule ? 'Save' : 'Create'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Choice({
  label,
  name,
  options,
  value,
  onChange,
}: {
  label: string;
  name?: string;
  options: readonly (readonly [string, string])[];
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} name={name}>
      {(id) => (
        <select id={id} className="input" value={value} onChange={(e) => onChange(e.target.value)}>
          {options.map(([v, text]) => (
            <option key={v} value={v}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Preview shows when the schedule would fire, or why it cannot. */
function Preview({ when, zone }: { when: When; zone: string }) {
  const cadence = useSettled(cadenceOf(when));
  const query = useQuery({
    queryKey: ['schedule-preview', when.kind, cadence, zone],
    enabled: cadence !== '',
    retry: false,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) =>
      ok(
        api.GET('/api/schedules/preview', {
          params: { query: { cadence_type: when.kind, cadence_value: cadence, timezone: zone } },
          signal,
        }),
      ),
  });
  if (cadence === '') return null;
  if (query.error) return <Failure error={query.error} />;
  return (
    <section aria-label="Next firings">
      <p className="small faint">Would fire, in {BROWSER_ZONE}:</p>
      <ol className="small num soft" aria-live="polite">
        {(query.data?.upcoming ?? []).slice(0, 3).map((t) => (
          <li key={t}>{formatFiring(t)}</li>
        ))}
      </ol>
    </section>
  );
}

/** useSettled returns a value once it has not changed for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 300);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

const REPEATS = [
  ['cron', 'at set times (cron)'],
  ['interval', 'every so often'],
  ['once', 'once'],
] as const;

function WhenFields({
  when,
  zone,
  onChange,
  onZone,
}: {
  when: When;
  zone: string;
  onChange: (when: When) => void;
  onZone: (zone: string) => void;
}) {
  const set = (change: Partial<When>) => onChange({ ...when, ...change });
  return (
    <>
      <Choice
        label="Repeats"
        name="cadence_type"
        options={REPEATS}
        value={when.kind}
        onChange={(kind) => set({ kind: kind as Kind })}
      />
      {when.kind === 'cron' && (
        <>
          <Field
            label="When"
            name="cadence_value"
            help="Minute, hour, day of the month, month, weekday. 0 7 * * 1-5 is 7:00 from Monday to Friday."
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
          <Choice
            label="Time zone"
            name="timezone"
            options={[...new Set([zone, BROWSER_ZONE, 'UTC', ...Intl.supportedValuesOf('timeZone')])].map((z) => [z, z])}
            value={zone}
            onChange={onZone}
          />
        </>
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
          <Choice
            label="Unit"
            options={Object.entries(UNITS)}
            value={when.unit}
            onChange={(unit) => set({ unit: unit as When['unit'] })}
          />
        </div>
      )}
      {when.kind === 'once' && (
        <Field label="When" name="cadence_value" help={`In ${BROWSER_ZONE}.`}>
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
