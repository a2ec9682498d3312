import type { ReactNode } from 'react';
import { api, ok } from '../../api/client';
import { JSONView } from '../../ui/json';
import { Facts, Panel, Ready, useLive } from '../../ui/kit';
import { Ago, Inert } from '../../ui/text';

/** Knows shows what an agent remembers of itself: goal, task, open loops, preferences, and when it wakes next. */
export function Knows({ id }: { id: string }) {
  const query = useLive(
    ['agent-state', id],
    async (signal) => {
      const state = await ok(api.GET('/api/agents/{agentId}/state', { params: { path: { agentId: id } }, signal }));
      const ids = [...new Set([state.slots.active_task_id ?? '', ...(state.slots.open_loop_ids ?? [])])]
        .filter((x) => x.startsWith('task_'))
        .slice(0, 50);
      const tasks = await Promise.all(
        ids.map((task) =>
          ok(api.GET('/api/journal/tasks/{id}', { params: { path: { id: task } }, signal })).catch(() => null),
        ),
      );
      return { state, titles: new Map(tasks.flatMap((t) => (t ? [[t.id, t.title] as const] : []))) };
    },
    { topics: ['agents', 'runs', 'journal'] },
  );
  return (
    <Panel title="What it knows">
      <div className="body stack">
        <Ready query={query}>
          {({ state, titles }) => {
            const s = state.slots;
            const loops = s.open_loop_ids ?? [];
            const name = (x: string) => titles.get(x) ?? x;
            return state.revision === 0 && !state.next_wake_at && !state.sleep_until ? (
              <p className="faint small">
                Nothing yet. It writes its goal, open loops and preferences here with the tool agent_state_update.
              </p>
            ) : (
              <>
                <Facts
                  facts={[
                    ['Goal', s.primary_goal && <Inert key="g" text={s.primary_goal} />],
                    ['Works on', s.active_task_id && <Inert key="t" text={name(s.active_task_id)} />],
                    ['Sleeps until', state.sleep_until && <Ago key="s" time={state.sleep_until} />],
                    ['Wakes next', state.next_wake_at && <Ago key="n" time={state.next_wake_at} />],
                    ...Object.entries(s.preferences ?? {}).map(
                      ([k, v]) => [k, <Inert key={k} text={v} />] as [string, ReactNode],
                    ),
                  ]}
                />
                <section className="stack tight">
                  <h3>
                    Open loops <span className="faint num">{loops.length}</span>
                  </h3>
                  {loops.length > 0 && (
                    <ul className="small">
                      {loops.map((x) => (
                        <li key={x} className="break">
                          <Inert text={name(x)} />
                        </li>
                      ))}
                    </ul>
                  )}
                </section>
                {s.extension && Object.keys(s.extension).length > 0 && (
                  <JSONView text={JSON.stringify(s.extension)} label="Other slots" />
                )}
              </>
            );
          }}
        </Ready>
      </div>
    </Panel>
  );
}
