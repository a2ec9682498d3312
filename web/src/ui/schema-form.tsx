import { useState } from 'react';
import { hasControls, removeControls } from '../lib/inert';
import { Button, Field } from './kit';
import { Inert } from './text';

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  enum?: unknown[];
  description?: string;
  minimum?: number;
  maximum?: number;
  default?: unknown;
  additionalProperties?: unknown;
}

type Values = Record<string, unknown>;

/** SchemaForm edits an object by its JSON schema. Lists and objects are edited as JSON. */
export function SchemaForm({
  schema,
  value,
  onChange,
}: {
  schema: unknown;
  value: Values;
  onChange: (value: Values) => void;
}) {
  const s = (schema ?? {}) as Schema;
  const names = Object.entries(s.properties ?? {});
  if (names.length === 0) {
    if (s.additionalProperties)
      return <JSONField label="Value" value={value} onChange={(v) => onChange((v ?? {}) as Values)} />;
    return <p className="faint small">Nothing to fill in.</p>;
  }
  const set = (name: string, v: unknown) => {
    const next = { ...value };
    if (v === undefined || v === '') delete next[name];
    else next[name] = v;
    onChange(next);
  };
  return (
    <div className="stack">
      {names.map(([name, p]) => (
        <Property
          key={name}
          name={name}
          schema={p}
          isRequired={s.required?.includes(name) ?? false}
          value={value[name]}
          onChange={(v) => set(name, v)}
        />
      ))}
    </div>
  );
}

function typeOf(s: Schema): string {
  return Array.isArray(s.type) ? (s.type.find((t) => t !== 'null') ?? '') : (s.type ?? '');
}

function Property({ name, schema, isRequired, value, onChange }: {
  name: string; schema: Schema; isRequired: boolean; value: unknown; onChange: (v: unknown) => void;
}) {
  const type = typeOf(schema);
  const label = isRequired ? `${name} (required)` : name;
  const help = schema.description;
  if (schema.enum) {
    return (
      <Field label={label} help={help} name={name}>
        {(id) => (
          <select id={id} className="input" value={value === undefined ? '' : String(value)}
            onChange={(e) => onChange(schema.enum?.find((v) => String(v) === e.target.value))}>
            <option value="">–</option>
            {schema.enum?.map((v) => <option key={String(v)}>{String(v)}</option>)}
          </select>
        )}
      </Field>
    );
  }
  if (type === 'boolean') {
    return (
      <div className="field">
        <label className="row">
          <input
            type="checkbox"
            checked={value === true}
            onChange={(e) => onChange(e.target.checked || undefined)}
          />{' '}
          {label}
        </label>
        {help && <span className="small faint">{help}</span>}
      </div>
    );
  }
  if (type === 'integer' || type === 'number') {
    return (
      <Field label={label} help={help} name={name}>
        {(id) => (
          <input
            id={id}
            className="input"
            type="number"
            min={schema.minimum}
            max={schema.maximum}
            step={type === 'integer' ? 1 : 'any'}
            value={value === undefined ? '' : String(value)}
            onChange={(e) => onChange(e.target.value === '' ? undefined : Number(e.target.value))}
          />
        )}
      </Field>
    );
  }
  if (type === 'string') {
    return <TextProperty name={name} label={label} help={help} value={String(value ?? '')} onChange={onChange} />;
  }
  return <JSONField label={label} help={help} value={value} onChange={onChange} />;
}

// TextProperty edits a text. A text field obeys characters that change the direction of text, so it shows below what is
// really in the text.
function TextProperty({ name, label, help, value, onChange }: {
  name: string; label: string; help?: string; value: string; onChange: (v: string) => void;
}) {
  const isLong = /content|text|body|source|script|message|goal|patch/i.test(name);
  return (
    <div className="stack tight">
      <Field label={label} help={help} name={name}>
        {(id) =>
          isLong ? (
            <textarea
              id={id}
              className="input mono"
              rows={Math.min(18, Math.max(4, value.split('\n').length + 1))}
              value={value}
              onChange={(e) => onChange(e.target.value)}
            />
          ) : (
            <input id={id} className="input" value={value} onChange={(e) => onChange(e.target.value)} />
          )
        }
      </Field>
      {hasControls(value) && (
        <div className="stack tight small">
          <div className="row wrap">
            <span className="grow">This text has hidden characters:</span>
            <Button onClick={() => onChange(removeControls(value))}>Remove them</Button>
          </div>
          <pre className="code" tabIndex={0} role="group" aria-label={`Hidden characters of ${name}`}>
            <Inert text={value} />
          </pre>
        </div>
      )}
    </div>
  );
}

function JSONField({
  label,
  help,
  value,
  onChange,
}: {
  label: string;
  help?: string;
  value: unknown;
  onChange: (v: unknown) => void;
}) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)));
  const [error, setError] = useState('');
  const edit = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() === '' ? undefined : JSON.parse(next));
      setError('');
    } catch {
      setError('This is not JSON yet.');
    }
  };
  return (
    <Field label={`${label}, as JSON`} help={help} error={error}>
      {(id) => (
        <textarea
          id={id}
          className="input mono"
          spellCheck={false}
          value={text}
          onChange={(e) => edit(e.target.value)}
        />
      )}
    </Field>
  );
}
