type Fields = Record<string, unknown>;

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** changedFields returns the fields that a person changed: those whose value in now is another than in first. */
export function changedFields<T extends object>(first: T, now: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(now).filter(([key, value]) => !isSame(value, (first as Fields)[key])),
  ) as Partial<T>;
}

/**
 * mergeChanges returns latest with what a person changed between first and mine: fields that they set, and without the
 * fields that they removed. What somebody else changed meanwhile stays.
 */
export function mergeChanges(first: Fields, mine: Fields, latest: Fields): Fields {
  const out = { ...latest, ...changedFields(first, mine) };
  for (const key of Object.keys(first)) if (!(key in mine)) delete out[key];
  return out;
}
