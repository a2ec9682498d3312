// All done items, page by page, with the fields that an item has.
let offset = 0, seen = [];
while (true) {
  const page = await Items.list({ status: 'done', limit: 1, offset });
  if (page.items.length === 0) break;
  for (const item of page.items) {
    const { id, logical_item_id, title, status, current_attempt_id, created_by_run_id, last_run_id, created_at, updated_at } = item;
    seen.push([logical_item_id === id, title, status, current_attempt_id, created_by_run_id === last_run_id,
      last_run_id.startsWith('run_'), item.state === status, item.attempt === current_attempt_id,
      typeof created_at === 'number' && created_at > 1e12 && created_at <= updated_at].join(' '));
  }
  offset += page.items.length;
}
seen.join('; ')
