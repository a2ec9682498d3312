import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { Dialog } from '../../ui/dialog';
import { Button, useLive } from '../../ui/kit';
import { Failure } from '../../ui/states';
import { useNotify } from '../../ui/toast';
import { Categories } from './categories';
import { ConfigFields, Modes, type Config } from './config';

/** EditDialog changes the settings of an agent: mode, categories, model, instructions, and the rest. */
export function EditDialog({ agent, onClose }: { agent: Schemas['Agent']; onClose: () => void }) {
  const notify = useNotify();
  const refresh = useRefresh('agent', 'agents');
  const categories = useLive(['categories'], (signal) => ok(api.GET('/api/journal/categories', { signal })), {
    topics: ['journal'],
  });
  const [mode, setMode] = useState(agent.mode);
  const [scope, setScope] = useState<string[]>(agent.categories ?? []);
  const [config, setConfig] = useState<Config>(() => ({ ...((agent.config ?? {}) as Config) }));
  const [isBroken, setBroken] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    try {
      await ok(
        api.PATCH('/api/agents/{agentId}', {
          params: { path: { agentId: agent.id } },
          body: { mode: mode as 'hybrid', categories: scope, config },
        }),
      );
      notify.done('Saved');
      onClose();
    } catch (e) {
      setError(e);
    }
    refresh();
  };
  return (
    <Dialog title={`Settings of ${agent.name}`} wide onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          void save();
        }}
      >
        <Modes value={mode} onChange={setMode} />
        <Categories list={categories.data?.categories ?? []} chosen={scope} onChange={setScope} />
        <ConfigFields config={config} onChange={setConfig} onBroken={setBroken} />
        {error !== null && <Failure error={error} />}
        <div className="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={isBroken}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
