// One item for each mail. The id comes from the mail, the title is for people.
const emails = await Gmail.api({ method: 'users.messages.list', account: 'me' });
for (const email of emails) {
  await Items.withItem(
    `email:${email.id}`,
    `Email from ${email.from}: "${email.subject}"`,
    async (ctx) => {
      if (ctx.item.isDone) {
        Console.log({ type: 'log', line: `Skipping already processed: ${ctx.item.title}` });
        return;
      }
      await Gmail.api({ method: 'users.messages.modify', account: 'me', params: { id: email.id } });
    }
  );
}
'looped'
