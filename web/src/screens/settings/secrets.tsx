import { useState } from 'react';
import { api, ok } from '../../api/client';
import { useRefresh } from '../../app/act';
import { ConfirmButton } from '../../ui/confirm';
import { Button, Field, Panel, Ready, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';
import { useNotify } from '../../ui/toast';

/** Secrets lists secrets by name, and writes them. Their values are never shown. */
export function Secrets() {
  const notify = useNotify();
  const refresh = useRefresh('secrets');
  const [form, setForm] = useState({ name: '', value: '' });
  const query = useLive(['secrets'], (signal) => ok(api.GET('/api/secrets', { signal })), { topics: ['secrets'] });
  const [error, setError] = useState<unknown>(null);
  const store = async () => {
    setError(null);
    try {
      await ok(
        api.PUT('/api/secrets/{name}', { params: { path: { name: form.name } }, body: { value: form.value } }),
      );
      notify.done('Stored');
      setForm({ name: '', value: '' });
    } catch (e) {
      setError(e);
    }
    refresh();
  };
  return (
    <>
      <Panel title="Secrets">
        <Ready query={query}>
          {(list) =>
            (list.secrets ?? []).length === 0 ? (
              <Empty title="No secrets">
                <p>Write one below. Tools use secrets by name, and their values are never shown.</p>
              </Empty>
            ) : (
              <div className="scroll" tabIndex={0} role="group" aria-label="Secrets">
                <table className="table">
                  <thead>
                    <tr>
                      <th scope="col">Name</th>
                      <th scope="col">Written</th>
                      <th scope="col">
                        <span className="hide">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {(list.secrets ?? []).map((s) => (
                      <tr key={s.name}>
                        <td className="mono">
                          <Inert text={s.name} />
                        </td>
                        <td>
                          <Ago time={s.updated_at} />
                        </td>
                        <td>
                          <ConfirmButton
                            label="Delete"
                            title={`Delete ${s.name}?`}
                            done="Deleted"
                            run={() =>
                              ok(api.DELETE('/api/secrets/{name}', { params: { path: { name: s.name } } })).finally(
                                refresh,
                              )
                            }
                          >
                            <p>
                              Tools that use <code>{`\${secret:${s.name}}`}</code> fail from now on. Its value is gone.
                            </p>
                          </ConfirmButton>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Ready>
      </Panel>
      <Panel title="Write a secret">
        <form
          className="body stack"
          onSubmit={(e) => {
            e.preventDefault();
            void store();
          }}
        >
          <Field label="Name" help="Letters, digits and underscores, such as WEATHER_KEY.">
            {(id) => (
              <input
                id={id}
                className="input mono"
                value={form.name}
                onChange={(e) => setForm({ ...form, name: e.target.value })}
              />
            )}
          </Field>
          <Field label="Value" help="Can be replaced, not read.">
            {(id) => (
              <input
                id={id}
                className="input"
                type="password"
                autoComplete="off"
                value={form.value}
                onChange={(e) => setForm({ ...form, value: e.target.value })}
              />
            )}
          </Field>
          {error !== null && <Failure error={error} />}
          <div>
            <Button kind="main" type="submit" disabled={!form.name || !form.value}>
              Store
            </Button>
          </div>
        </form>
      </Panel>
    </>
  );
}
