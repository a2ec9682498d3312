package tools_test

import (
	"testing"

	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Scripts work with notes under all names that they use for it.
func TestK29_MemoryUnderItsOtherNames(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		h := reevetest.StartWith(t, cfg)
		a := &kit.Automation{Host: h, T: t, Name: "notes"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": []string{"memory_save", "memory_get",
			"memory_list", "memory_search", "memory_update", "memory_delete"}, "source": `
			const out = [];
			await Items.withItem('a', 'A', async () => {
			  for (const content of ['Tea is in the blue tin.\nNot the red one.', 'The gate sticks.', 'Ann is away.'])
			    await Memory.createNote({ content, tags: ['house'] });
			  const page = await Memory.listNotesMetadata({ limit: 2, tag: 'House' });
			  const rest = await Memory.listNotesMetadata({ limit: 2, tag: 'house', after: page.next });
			  out.push(page.notes.map((n) => n.title).join(), rest.notes.map((n) => n.title + n.size).join(), rest.next);
			  const { note_id } = rest.notes[0];
			  out.push((await Memory.getNote({ note_id })).content.length);
			  await Memory.updateNote({ note_id, content: 'Tea is in the red tin.' });
			  out.push((await Memory.searchNotes({ query: 'tea' })).results[0].text);
			  await Memory.deleteNote({ note_id });
			  try { await Memory.getNote({ note_id }) } catch (e) { out.push(e.code) }
			  out.push((await Memory.listNotesMetadata({})).notes.length, (await Memory.listNotesMetadata({ tag: 'x' })).notes.length);
			});
			out.join('|')`})
		kit.Equal(t, a.MustComplete().Run.Output, "Ann is away.,The gate sticks.|Tea is in the blue tin.40||40|"+
			"Tea is in the red tin.|NOT_FOUND|2|0", "what the script saw")
	})
}
