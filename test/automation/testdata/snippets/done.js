// The result of the handler is the result of withItem. A new item is not done.
const first = await Items.withItem('test-1', 'Test Item', async (ctx) => {
  return ctx.item.isDone;
});
const second = await Items.withItem('test-1', 'Test Item', async (ctx) => ctx.item.isDone);
`${first} ${second}`
