// seed fills a fresh server (started with --sample) with one of everything that the console shows.
// Usage: node e2e/seed.mjs URL TOKEN

// api returns a function that sends one request and returns the decoded answer.
export function api(url, token) {
  return async (method, path, body) => {
    const answer = await fetch(`${url}/api/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'x-workspace-id': 'default',
        'content-type': 'application/json',
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };
}

// createAgent creates an agent with tools and returns its id.
export async function createAgent(call, name, { policy = {}, kind = 'assistant', tools = [], config = {} } = {}) {
  const agent = await call('POST', 'agents', { name, kind, policy, config, lifecycle: 'active' });
  for (const tool of tools) {
    const [id, settings] = Array.isArray(tool) ? tool : [tool, undefined];
    await call('POST', `agents/${agent.id}/tools`, { tool_id: id, config: settings });
  }
  return agent.id;
}

const REPORT = `# Weekly report

Orders are up by 4 %.
Two returns are open.
The warehouse is closed on Friday.
`;

// seed creates agents, approvals, proposals, an unknown outcome, conversations, notes, journal tasks and schedules.
export async function seed(url, token) {
  const call = api(url, token);
  for (const a of (await call('GET', 'approvals?state=pending')).approvals) {
    // of the sample
    await call('POST', `approvals/${a.id}/decision`, { decision: 'deny' });
  }
  const writer = await createAgent(call, 'writer', {
    policy: { tools: { file_write: 'allow', file_delete: 'propose' } },
    tools: ['file_read', 'file_write', 'file_list', 'file_edit', 'file_delete'],
  });
  await call('POST', `agents/${writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/report.md', content: REPORT },
    reason: 'The first draft of the report',
  });
  await call('POST', `agents/${writer}/calls`, {
    tool: 'file_write',
    args: { path: '/shared/old.txt', content: 'left from last year\n' },
  });
  await call('PATCH', `agents/${writer}`, {
    policy: { tools: { file_write: 'ask', file_edit: 'ask', file_delete: 'propose' } },
  });
  await call('POST', `agents/${writer}/calls`, {
    tool: 'file_write',
    args: {
      path: '/shared/report.md',
      overwrite: true,
      content: REPORT.replace('4 %', '6 %').replace('Two returns are open.\n', '') + 'Ada is away until Monday.\n',
    },
    reason: 'New figures arrived from the warehouse',
  });
  await call('POST', `agents/${writer}/calls`, {
    tool: 'file_edit',
    args: { path: '/shared/report.md', edits: [{ old: 'Friday', new: 'Monday' }] },
    reason: 'The holiday moved',
  }).catch(() => {});
  await call('POST', `agents/${writer}/calls`, {
    tool: 'file_delete',
    args: { path: '/shared/old.txt' },
    reason: 'Nothing reads this file any more',
  });
  const clerk = await createAgent(call, 'clerk', {
    policy: { tiers: { side_effecting: 'ask' } },
    tools: ['memory_save', 'memory_search', 'schedule_create', 'create_task', 'users_send'],
  });
  await call('POST', `agents/${clerk}/calls`, {
    tool: 'users_send',
    args: { title: 'Delivery <b>late</b>', text: 'The parcel 4711 arrives \u202Etomorrow\u202C, not today.' },
    reason: 'The carrier reported a delay',
  });
  const conversation = await call('POST', 'conversations', { agent: 'clerk', title: 'Parcel 4711' });
  await call('POST', `conversations/${conversation.id}/turns`, { content: 'memory_search {"query": "parcel"}' });
  await call('POST', 'notes', { content: 'Ada prefers reports on Monday morning.', tags: ['reports'], pinned: true });
  await call('POST', 'notes', { content: 'The warehouse opens at 7.' });
  await call('POST', 'schedules', {
    agent: 'clerk',
    name: 'Morning summary',
    cadence_type: 'cron',
    cadence_value: '0 7 * * 1-5',
    timezone: 'Europe/Berlin',
    goal: 'Summarise what arrived over night',
    notification: 'conditional',
  });
  const home = await call('POST', 'journal/categories', { name: 'Warehouse' });
  await call('POST', 'journal/tasks', {
    category_id: home.id,
    title: 'Count the returns',
    priority: 'high',
    status: 'in_progress',
  });
  const automations = await call('GET', 'automations');
  const triage = automations.automations[0];
  if (triage) await call('POST', `automations/${triage.agent_id}/runs`, { type: 'dry' });
  await call('PUT', 'budgets/workspace', { limit: { calls: 10000, micros: 5000000 } }).catch(() => {});
  return { writer, clerk, conversation: conversation.id, triage: triage?.agent_id };
}

if (process.argv[1] && import.meta.url.endsWith(process.argv[1].split('/').pop())) {
  const [, , url, token] = process.argv;
  console.log(JSON.stringify(await seed(url, token)));
}
