// Reads are allowed anywhere, changes in an item.
interface Note { id: string; title: string }
const note: Note | null = await Memory.getNote({ id: 'n1' });
await Items.withItem(`note:${note!.id}`, `Note "${note!.title}"`, async (ctx: { item: { isDone: boolean } }) => {
  if (!ctx.item.isDone) await Memory.createNote({ title: note!.title, content: 'copy' });
});
note!.title
