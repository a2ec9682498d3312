await Items.withItem('outer', 'Outer', async () => {
  await Items.withItem('inner', 'Inner', async () => {});
});
