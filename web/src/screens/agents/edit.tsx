import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useRefresh } from '../../app/act';
import { changedFields, mergeChanges } from '../../lib/changes';
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
  const [first] = useState({ mode: agent.mode, categories: agent.categories ?? [], config: configOf(agent) });
  const [mode, setMode] = useState(first.mode);
  const [scope, setScope] = useState<string[]>(first.categories);
  const [config, setConfig] = useState<Config>(first.config);
  const [isBroken, setBroken] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    try {
      const params = { path: { agentId: agent.id } };
      const { mode: newMode, ...body } = changedFields(first, { mode, categories: scope, config });
      if (body.config) {
        const latest = await ok(api.GET('/api/agents/{agentId}', { params }));
        body.config = mergeChanges(first.config, config, configOf(latest));
      }
      await ok(
        api.PATCH('/api/agents/{agentId}', { params, body: { ...body, mode: newMode as 'hybrid' | undefined } }),
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

function configOf(agent: Schemas['Agent']): Config {
  return { ...((agent.config ?? {}) as Config) };
}
