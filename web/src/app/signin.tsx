import { useEffect, useRef, useState, type FormEvent } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { signIn } from '../api/client';
import { Button, Field } from '../ui/kit';
import { Failure } from '../ui/states';

/** SignIn signs in with the one-time code of a link, or asks for a token. */
export function SignIn() {
  const queries = useQueryClient();
  const [token, setToken] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const started = useRef(false);
  const input = useRef<HTMLInputElement>(null);

  const submit = async (credential: { code: string } | { token: string }) => {
    setBusy(true);
    setError(null);
    try {
      await signIn(credential);
      if (location.pathname === '/signin' || location.pathname === '/') history.replaceState(null, '', '/inbox');
      await queries.invalidateQueries({ queryKey: ['session'] });
    } catch (e) {
      setError(e);
      input.current?.select(); // the next try replaces it
    }
    setBusy(false);
  };

  useEffect(() => {
    const code = location.pathname === '/signin' ? decodeURIComponent(location.hash.slice(1)) : '';
    if (!code || started.current) return;
    started.current = true; // the code works once
    history.replaceState(null, '', '/signin');
    void submit({ code });
  });

  const onSubmit = (e: FormEvent) => {
    e.preventDefault();
    if (token.trim()) void submit({ token: token.trim() });
  };
  return (
    <main className="signin">
      <form className="panel" onSubmit={onSubmit}>
        <div className="body stack">
          <h1>Sign in to Reeve</h1>
          {error !== null && <Failure error={error} />}
          <Field label="Access token" help="The owner token is in the file owner.token of the server's data directory.">
            {(id) => (
              <input id={id} ref={input} className="input" type="password" autoComplete="current-password" autoFocus
                value={token} onChange={(e) => setToken(e.target.value)} />
            )}
          </Field>
          <Button kind="main" type="submit" disabled={isBusy || token.trim() === ''}>
            {isBusy ? 'Signing in…' : 'Sign in'}
          </Button>
          <p className="small soft">
            A link that the server prints at its start signs you in once. To get another, run <code>reeve console link</code> on
            the server.
          </p>
        </div>
      </form>
    </main>
  );
}
