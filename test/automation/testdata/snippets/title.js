// A note with a title, and without; its id under both names.
const out = [];
await Items.withItem('note', 'Note', async () => {
  const { note_id } = await Memory.createNote({ title: 'Tea', content: 'It is in the blue tin.' });
  await Memory.createNote({ title: 'same', content: 'same' });
  out.push((await Memory.getNote({ id: note_id })).content, (await Memory.getNote({ note_id })).content.length);
  await Memory.updateNote({ id: note_id, title: 'Tea', content: 'It is gone.' });
  out.push((await Memory.getNote({ id: note_id })).content);
  await Memory.deleteNote({ id: note_id });
});
out.push((await Memory.listNotesMetadata({})).notes.map((n) => n.title).join());
out.join('|')
