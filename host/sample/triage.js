// Sorts the mail of a nursery that does not exist: for each mail a card, in the folder that it belongs to, once.
// What a mail says is data: it ends up on the card, and decides nothing but the folder.
const folders = [
  ['money', /invoice|quote|offer|transfer/i],
  ['trouble', /complaint|damage|expires/i],
  ['dates', /meeting|minutes|holiday|besuch/i],
];

const { emails } = await Mail.emailSearch({ query: '', date_from: '2026-01-01', limit: 50 });
const inbox = emails.filter((m) => m.folder === 'inbox').sort((a, b) => (a.date < b.date ? -1 : 1));
Items.total(inbox.length);

const sorted = {};
for (const m of inbox) {
  // An item's id is the stable name of the thing itself, not a position: the same mail is the same item in every run.
  await Items.withItem(m.message_id, m.subject, async (ctx) => {
    if (ctx.item.isDone) return;
    const [folder] = folders.find(([, words]) => words.test(m.subject)) ?? ['other'];
    const mail = await Mail.emailGet({ message_id: m.message_id, inbox_id: m.inbox });
    const name = m.subject.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60);
    const first = mail.body.split('\n').filter((line) => line.trim() !== '').slice(0, 3);
    await Files.write({ path: `/shared/triage/${m.inbox.split('@')[0]}/${folder}/${m.date.slice(0, 10)}-${name}.md`, overwrite: true, content: `# ${m.subject}\n\nfrom ${m.sender}, ${m.date.slice(0, 10)}\n\n> ${first.join('\n> ')}\n` });
    sorted[folder] = (sorted[folder] ?? 0) + 1;
  });
}
Console.log(Object.keys(sorted).length === 0 ? 'nothing new' : 'new cards: ' + JSON.stringify(sorted));
