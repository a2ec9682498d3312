import { useState } from 'react';
import { Editor } from '../../ui/code-editor';
import { Button, Field } from '../../ui/kit';

/** Config is the settings of an agent's brain, as stored. */
export type Config = Record<string, unknown>;

/** Modes chooses which kinds of wake start a run of an agent. */
export function Modes({ value, onChange }: { value: string; onChange: (mode: string) => void }) {
  return (
    <Field label="Mode">
      {(id) => (
        <select id={id} className="input" value={value} onChange={(e) => onChange(e.target.value)}>
          <option value="hybrid">hybrid: chats, and wakes by itself</option>
          <option value="autonomous">autonomous: wakes by itself</option>
          <option value="interactive">interactive: only chats</option>
        </select>
      )}
    </Field>
  );
}

/** ModelFields edits the model and the instructions of an agent. */
export function ModelFields({ config, onChange }: { config: Config; onChange: (config: Config) => void }) {
  const set = (key: string, value: unknown) => onChange(withKey(config, key, value));
  return (
    <>
      <Field label="Model (optional)" name="model" help="Such as anthropic/claude-sonnet-4-5. Empty: the server's default.">
        {(id) => (
          <input
            id={id}
            className="input mono"
            value={text(config.model)}
            onChange={(e) => set('model', e.target.value.trim())}
          />
        )}
      </Field>
      <Field label="Instructions (optional)" name="instructions" help="What the model is told at the start of every request.">
        {(id) => (
          <textarea
            id={id}
            className="input"
            rows={6}
            value={text(config.instructions)}
            onChange={(e) => set('instructions', e.target.value)}
          />
        )}
      </Field>
    </>
  );
}

const NUMBERS = [
  ['temperature', 'Temperature', 'From 0 to 2.', 0, 2, 0.1],
  ['max_tokens', 'Tokens per answer', 'Empty: 4096.', 1, 1_000_000, 1],
  ['max_model_requests', 'Model requests per turn', 'Empty: 25.', 1, 200, 1],
  ['recent_turns', 'Earlier turns to send', 'Empty: 20.', 0, 200, 1],
  ['context_tokens', 'Tokens of earlier turns', 'Empty: 32000.', 1, 2_000_000, 1],
] as const;

/** ConfigFields edits the common settings of an agent. Everything else is edited as JSON, in the advanced view. */
export function ConfigFields({ config, onChange, onBroken }: {
  config: Config;
  onChange: (config: Config) => void;
  /** onBroken is told whether the JSON of the advanced view cannot be read. */
  onBroken: (isBroken: boolean) => void;
}) {
  const [json, setJSON] = useState<string | null>(null);
  const [error, setError] = useState('');
  const set = (key: string, value: unknown) => onChange(withKey(config, key, value));
  const edit = (next: string) => {
    let problem = '';
    try {
      const value: unknown = JSON.parse(next);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it is not an object');
      onChange(value as Config);
    } catch (e) {
      problem = `This cannot be read yet: ${e instanceof Error ? e.message : String(e)}`;
    }
    setError(problem);
    onBroken(problem !== '');
  };
  if (json !== null)
    return (
      <section className="stack tight" aria-label="All settings">
        <div className="row">
          <h3 className="grow">All settings, as JSON</h3>
          <Button disabled={error !== ''} onClick={() => setJSON(null)}>
            Show as form
          </Button>
        </div>
        <Editor label="Settings as JSON" language="json" value={json} onChange={edit} />
        {error && (
          <p className="small minus" role="alert">
            {error}
          </p>
        )}
      </section>
    );
  return (
    <>
      <ModelFields config={config} onChange={onChange} />
      <div className="row wrap top-row">
        {NUMBERS.map(([key, label, help, min, max, step]) => (
          <Field key={key} label={label} help={help} name={key}>
            {(id) => (
              <input
                id={id}
                className="input"
                type="number"
                min={min}
                max={max}
                step={step}
                value={text(config[key])}
                onChange={(e) => set(key, e.target.value === '' ? undefined : Number(e.target.value))}
              />
            )}
          </Field>
        ))}
        <Field label="Effort" help="For models that think first.">
          {(id) => (
            <select id={id} className="input" value={text(config.effort)} onChange={(e) => set('effort', e.target.value)}>
              <option value="">default of the model</option>
              <option>low</option>
              <option>medium</option>
              <option>high</option>
            </select>
          )}
        </Field>
      </div>
      <label className="row">
        <input
          type="checkbox"
          checked={config.notes === true}
          onChange={(e) => set('notes', e.target.checked || undefined)}
        />
        Takes notes of each turn, and recalls relevant ones later
      </label>
      <div>
        <Button onClick={() => setJSON(JSON.stringify(config, null, 2))}>All settings, as JSON</Button>
      </div>
    </>
  );
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function withKey(config: Config, key: string, value: unknown): Config {
  const next = { ...config };
  if (value === undefined || value === '') delete next[key];
  else next[key] = value;
  return next;
}
