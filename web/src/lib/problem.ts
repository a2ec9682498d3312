/** FieldError says what is wrong with one field of a request. */
export interface FieldError {
  path: string;
  message: string;
}

/** Refusal is an error in the words of a person: a title, what to do, and what is wrong with each field. */
export interface Refusal {
  title: string;
  hint: string;
  fields: FieldError[];
}

/** fieldName returns the last part of a path such as /limit/calls. */
export function fieldName(path: string): string {
  return path.split('/').filter(Boolean).at(-1) ?? '';
}

/** isField reports whether path leads to the field with this name. A name may be a path of its own. */
export function isField(path: string, name: string): boolean {
  return `/${path.replace(/^\/+/, '')}`.endsWith(`/${name.replace(/^\/+/, '')}`);
}

const RULES: [RegExp, (found: string) => string][] = [
  [/^is missing|^expected (?:array )?length >= 1$|^expected required property/, () => 'is required'],
  [/^expected length >= (\d+)/, (n) => `needs at least ${n} characters`],
  [/^expected length <= (\d+)/, (n) => `may have at most ${n} characters`],
  [/^expected array length >= (\d+)/, (n) => `needs at least ${n} entries`],
  [/^expected array length <= (\d+)/, (n) => `may have at most ${n} entries`],
  [/^expected number >= (\S+)/, (n) => `must be at least ${n}`],
  [/^expected number > (\S+)/, (n) => `must be more than ${n}`],
  [/^expected number <= (\S+)/, (n) => `may be at most ${n}`],
  [/^expected number < (\S+)/, (n) => `must be less than ${n}`],
  [/^expected value to be one of (.+)/, (list) => `must be one of ${list.replaceAll('"', '')}`],
  [/^expected (?:number|integer)/, () => 'must be a number'],
  [/pattern|\bregex/, () => 'has characters that are not allowed here'],
  [/^unexpected property/, () => 'is not a known field'],
];

/** describeField returns what is wrong with a field, to be read after its name: is required. */
export function describeField(message: string): string {
  for (const [rule, say] of RULES) {
    const found = rule.exec(message);
    if (found) return say(found[1] ?? '');
  }
  return message;
}

/** sentence gives an error text a capital letter and a full stop. */
export function sentence(text: string): string {
  if (text === '') return text;
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** GENERAL matches hints that are for programs: they name the API or say only what the list of fields says. */
const GENERAL = /\/openapi\.json|errors;|arguments and call the tool again|\^\[|regular expression/i;

/** explainRefusal says what is wrong and what to do. Words that only programs understand are left out. */
export function explainRefusal(e: {
  status: number; message: string; hint: string; fields: FieldError[];
}): Refusal {
  const fields = e.fields.map((f) => ({ path: f.path, message: describeField(f.message) }));
  const namesField = fields.some((f) => f.path !== '' && e.message.includes(f.path));
  const title = namesField ? (fields.length === 1 ? 'One field needs a correction' : 'Some fields need a correction')
    : e.message.replace(/\bbearer token\b/g, 'access token');
  const hint = e.status === 404 && e.hint.startsWith('check the id and the workspace')
    ? 'It was deleted, or belongs to another workspace' : GENERAL.test(e.hint) ? '' : e.hint;
  return {
    title: sentence(title),
    hint: sentence(hint.replace(/\bbearer token\b/g, 'access token')),
    fields: fields.filter((f) => !(f.path === '' && sentence(f.message) === sentence(title))),
  };
}
