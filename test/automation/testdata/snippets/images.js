// Functions that no tool has explain what is missing.
const said = [];
for (const f of [Images.generate, Images.transform, Images['generate'], Images.explain, PDF.explain, Audio.explain,
  (input) => Tools.call('web_fetch', input), (input) => Tools.call('nothing', input)]) {
  try { await f({ path: '/shared/a', prompt: 'a' }); said.push('called') } catch (e) { said.push(`${e.code} ${e.message}`) }
}
said.push(typeof globalThis.Web, typeof Images.crop);
said.join('\n')
