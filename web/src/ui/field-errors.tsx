import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { isField, type FieldError } from '../lib/problem';

interface Exchange {
  names: string[];
  errors: FieldError[];
  show: (name: string) => () => void;
  report: (errors: FieldError[]) => () => void;
}

const Context = createContext<Exchange | null>(null);

/** FieldErrors lets the Failure of a form leave the errors of single fields to the Field with that name. */
export function FieldErrors({ children }: { children: ReactNode }) {
  const [names, setNames] = useState<string[]>([]);
  const [errors, setErrors] = useState<FieldError[]>([]);
  const actions = useMemo(() => ({
    show(name: string) {
      setNames((old) => [...old, name]);
      return () => setNames((old) => old.filter((_, i) => i !== old.indexOf(name)));
    },
    report(found: FieldError[]) {
      setErrors(found);
      return () => setErrors((now) => (now === found ? [] : now));
    },
  }), []);
  const exchange = useMemo<Exchange>(() => ({ names, errors, ...actions }), [names, errors, actions]);
  return <Context.Provider value={exchange}>{children}</Context.Provider>;
}

/** useFieldError returns what the server says about the field with this name. Without a name it returns nothing. */
export function useFieldError(name: string | undefined): string {
  const exchange = useContext(Context);
  const show = exchange?.show;
  useEffect(() => (name && show ? show(name) : undefined), [name, show]);
  return (name && exchange?.errors.find((e) => isField(e.path, name))?.message) || '';
}

/** useUnshown reports the errors of a form's fields, and returns those that no field shows. */
export function useUnshown(fields: FieldError[]): FieldError[] {
  const exchange = useContext(Context);
  const report = exchange?.report;
  const key = JSON.stringify(fields);
  useEffect(() => report?.(JSON.parse(key) as FieldError[]), [key, report]);
  return fields.filter((f) => !exchange?.names.some((name) => isField(f.path, name)));
}

/** useInDialog reports whether the component is part of a dialog. */
export function useInDialog(): boolean {
  return useContext(Context) !== null;
}
