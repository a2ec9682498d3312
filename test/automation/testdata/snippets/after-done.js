await Items.withItem('test-2', 'Test Item', async () => {});
await Items.withItem('test-2', 'Test Item', async () => {
  await Memory.createNote({ title: 'test', content: 'test' });
});
