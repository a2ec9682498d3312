import { useState } from 'react';
import { Link, useNavigate } from '@tanstack/react-router';
import { api, ok } from '../../api/client';
import { useTools } from '../../app/data';
import { useAccess } from '../../app/session';
import { CheckList } from '../../ui/check-list';
import { Editor } from '../../ui/code-editor';
import { Dialog } from '../../ui/dialog';
import { Button, Field, Page, Ready, StateTag, useLive } from '../../ui/kit';
import { Empty, Failure } from '../../ui/states';
import { Ago, Inert } from '../../ui/text';

/** AutomationsScreen lists automations. */
export function AutomationsScreen() {
  const query = useLive(
    ['automations'],
    (signal) => ok(api.GET('/api/automations', { params: { query: { limit: 200 } }, signal })),
    { topics: ['automations', 'runs'] },
  );
  const { can } = useAccess();
  const [isAdding, setAdding] = useState(false);
  const add = can('member') && (
    <Button kind="main" onClick={() => setAdding(true)}>
      New automation
    </Button>
  );
  return (
    <Page title="Automations" actions={add}>
      <Ready query={query}>
        {(list) =>
          (list.automations ?? []).length === 0 ? (
            <div className="panel">
              <Empty title="No automations">
                <p>
                  An automation is an agent that a script drives. Write its script here, or save one with{' '}
                  <code>reeve run SCRIPT --save</code>.
                </p>
                {add}
              </Empty>
            </div>
          ) : (
            <div className="panel scroll" tabIndex={0} role="group" aria-label="Automations">
              <table className="table">
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">State</th>
                    <th scope="col">Version</th>
                    <th scope="col">Owner</th>
                    <th scope="col">Changed</th>
                  </tr>
                </thead>
                <tbody>
                  {(list.automations ?? []).map((a) => (
                    <tr key={a.agent_id}>
                      <td>
                        <Link className="strong" to="/automations/$id" params={{ id: a.agent_id }}>
                          <Inert text={a.name} />
                        </Link>
                      </td>
                      <td>
                        <StateTag state={a.status} />
                      </td>
                      <td className="num">{a.version}</td>
                      <td>{a.owner && <Inert text={a.owner} />}</td>
                      <td>
                        <Ago time={a.updated_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Ready>
      {isAdding && <NewAutomation onClose={() => setAdding(false)} />}
    </Page>
  );
}

const FIRST_SCRIPT = `// Each item is done once, however often this runs.
const names = ['one', 'two'];
Items.total(names.length);
for (const name of names) {
  await Items.withItem(name, name, async (ctx) => {
    if (ctx.item.isDone) return;
    // await Tools.call('create_task', { title: name }); // a tool that is chosen above
  });
}
`;

function NewAutomation({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const tools = useTools();
  const [name, setName] = useState('');
  const [source, setSource] = useState(FIRST_SCRIPT);
  const [chosen, setChosen] = useState<string[]>([]);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    try {
      const a = await ok(api.POST('/api/automations', { body: { name, source, language: 'js', tools: chosen } }));
      onClose();
      void navigate({ to: '/automations/$id', params: { id: a.agent_id } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <Dialog title="New automation" wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Field label="Name" name="name">
          {(id) => (
            <input
              id={id}
              className="input"
              autoFocus
              required
              value={name}
              onChange={(e) => setName(e.target.value)}
            />
          )}
        </Field>
        <CheckList
          label="Tools that the script may call"
          choices={(tools.data?.tools ?? []).map((t) => ({ id: t.id })).sort((a, b) => a.id.localeCompare(b.id))}
          chosen={chosen}
          onChange={setChosen}
        />
        <Editor label="Script" language="js" value={source} onChange={setSource} />
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={name.trim() === ''}>
            Create
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
