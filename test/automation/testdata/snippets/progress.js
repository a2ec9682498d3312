// What was done before is found by its id, and counted.
for (const email of [{ id: '1' }, { id: 'new' }]) {
  const existing = await Items.list({ logical_item_id: `email:${email.id}` });
  if (existing.items.some(i => i.status === 'done')) {
    Console.log({ type: 'log', line: `Skipping ${email.id} - already done` });
    continue;
  }
  Console.log({ type: 'log', line: `Missing ${email.id}` });
}
const progress = await Items.list({ status: 'done', limit: 1 });
Console.log({ type: 'log', line: `Processed ${progress.total} items so far` });
const failed = await Items.list({ status: 'failed', limit: 100 });
`${progress.total} ${progress.items.length} ${progress.has_more} ${failed.items.length}`
