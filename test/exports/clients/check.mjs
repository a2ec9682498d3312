// Gives exported tools to the library of their consumer. Usage: node check.mjs FORMAT FILE
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import assert from 'node:assert/strict';

const [format, file] = process.argv.slice(2);
const { tools } = JSON.parse(readFileSync(file, 'utf8'));

// post runs f with the address of a server that answers with reply, and returns the body of the request.
async function post(reply, f) {
  let body;
  const server = createServer((req, res) => {
    let text = '';
    req.on('data', (d) => { text += d; });
    req.on('end', () => {
      body = JSON.parse(text);
      res.setHeader('Content-Type', 'application/json');
      res.end(JSON.stringify(reply));
    });
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  try {
    await f(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
  }
  return body;
}

const checkName = (name) => assert.match(name, /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/);

function checkTop(schema) {
  assert.equal(schema.type, 'object');
  for (const key of ['anyOf', 'oneOf', 'allOf', 'not', 'enum']) assert.ok(!(key in schema), key);
}

const checks = {
  async openai() {
    const { default: OpenAI } = await import('openai');
    const reply = { choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] };
    const body = await post(reply, (url) => new OpenAI({ baseURL: url, apiKey: 'k' }).chat.completions.create(
      { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools }));
    assert.deepEqual(body.tools, tools);
    for (const t of body.tools) { checkName(t.function.name); checkTop(t.function.parameters); }
  },
  async 'openai-responses'() {
    const { default: OpenAI } = await import('openai');
    const body = await post({ id: 'r', output: [] }, (url) => new OpenAI({ baseURL: url, apiKey: 'k' }).responses.create(
      { model: 'm', input: 'hi', tools }));
    assert.deepEqual(body.tools, tools);
    for (const t of body.tools) { checkName(t.name); checkTop(t.parameters); }
  },
  async anthropic() {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const reply = { id: 'm', type: 'message', role: 'assistant', content: [], usage: {} };
    const body = await post(reply, (url) => new Anthropic({ baseURL: url, apiKey: 'k' }).messages.create(
      { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }], tools }));
    assert.deepEqual(body.tools, tools);
    for (const t of body.tools) { checkName(t.name); checkTop(t.input_schema); }
  },
  async gemini() {
    const { GoogleGenAI, Type } = await import('@google/genai');
    const body = await post({ candidates: [] }, (url) => new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } })
      .models.generateContent({ model: 'm', contents: 'hi', config: { tools } }));
    assert.deepEqual(body.tools, tools);
    const known = new Set(['type', 'format', 'title', 'description', 'nullable', 'enum', 'maxItems', 'minItems', 'properties',
      'required', 'minProperties', 'maxProperties', 'minLength', 'maxLength', 'pattern', 'example', 'anyOf', 'default', 'items',
      'minimum', 'maximum']);
    const walk = (s, where) => {
      for (const key of Object.keys(s)) assert.ok(known.has(key), `${where}: ${key}`);
      if (s.type) assert.ok(s.type in Type, `${where}: type ${s.type}`);
      else assert.ok(s.anyOf, `${where}: no type`);
      for (const v of s.enum ?? []) assert.equal(typeof v, 'string', where);
      for (const [k, v] of Object.entries(s.properties ?? {})) walk(v, `${where}/${k}`);
      for (const v of s.anyOf ?? []) walk(v, `${where}/anyOf`);
      if (s.items) walk(s.items, `${where}/items`);
    };
    for (const t of body.tools[0].functionDeclarations) { checkName(t.name); if (t.parameters) walk(t.parameters, t.name); }
  },
  async mcp() {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
    const { InMemoryTransport } = await import('@modelcontextprotocol/sdk/inMemory.js');
    const { ListToolsRequestSchema, ListToolsResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
    ListToolsResultSchema.parse({ tools });
    const server = new Server({ name: 's', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    const client = new Client({ name: 'c', version: '1' });
    const [a, b] = InMemoryTransport.createLinkedPair();
    await Promise.all([server.connect(a), client.connect(b)]);
    assert.equal((await client.listTools()).tools.length, tools.length); // compiles the output schemas
    await client.close();
  },
  async langchain() {
    const { tool } = await import('@langchain/core/tools');
    const { convertToOpenAITool } = await import('@langchain/core/utils/function_calling');
    for (const { name, description, schema } of tools) {
      const made = tool(async (input) => input, { name, description, schema });
      const shown = convertToOpenAITool(made);
      assert.equal(shown.function.name, name);
      assert.deepEqual(shown.function.parameters, schema);
      checkName(name);
    }
    const search = tools.find((t) => t.name === 'file_read');
    const made = tool(async (input) => input.path, { ...search });
    assert.equal(await made.invoke({ path: '/a' }), '/a');
    await assert.rejects(made.invoke({ path: 7 }));
  },
};

await checks[format]();
console.log(`${format}: ${tools.length} accepted`);
