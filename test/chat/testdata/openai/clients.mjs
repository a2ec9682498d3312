// Drives a running Reeve with OpenAI's own client and two others, by both of OpenAI's APIs: chat completions and responses.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText, tool, jsonSchema, stepCountIs } from 'ai';
import { ChatOpenAI } from '@langchain/openai';

const baseURL = process.env.BASE_URL, apiKey = process.env.API_KEY, model = 'mock';
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const weather = { type: 'function', name: 'get_weather', description: 'The weather of a city.', parameters, strict: true };
const chatWeather = { type: 'function', function: { name: 'get_weather', description: 'The weather of a city.', parameters } };
const hello = 'Hello, how can I help you today?';
let failed = 0;

async function step(name, f) {
  try {
    await f();
    console.log('PASS', name);
  } catch (e) {
    failed++;
    console.log('FAIL', name, e?.stack ?? e);
  }
}

await step('responses.create', async () => {
  const r = await client.responses.create({ model, input: 'hi', metadata: { a: 'b' } });
  assert.equal(r.output_text, hello);
  assert.equal(r.status, 'completed');
  assert.deepEqual(r.metadata, { a: 'b' });
  const again = await client.responses.retrieve(r.id);
  assert.equal(again.output_text, hello);
  const next = await client.responses.create({ model, input: 'hi', previous_response_id: r.id });
  assert.equal(next.previous_response_id, r.id);
});

await step('responses.stream', async () => {
  let text = '', number = 0;
  const stream = client.responses.stream({ model, input: 'hi' });
  for await (const event of stream) {
    assert.equal(event.sequence_number, number++);
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  const final = await stream.finalResponse();
  assert.equal(text, hello);
  assert.equal(final.output_text, hello);
  assert.ok(final.usage.total_tokens > 0);
});

await step('responses with tools, streamed', async () => {
  const stream = client.responses.stream({ model, input: 'weather in two cities?', tools: [weather] });
  const args = [];
  stream.on('response.function_call_arguments.done', e => args.push(JSON.parse(e.arguments).city));
  const final = await stream.finalResponse();
  const calls = final.output.filter(i => i.type === 'function_call');
  assert.deepEqual(calls.map(c => JSON.parse(c.arguments).city), ['Paris', 'Rome']);
  assert.deepEqual(args, ['Paris', 'Rome']);
});

await step('responses with tools, and their results', async () => {
  const input = [{ role: 'user', content: 'weather in Paris?' }];
  const first = await client.responses.create({ model, input, tools: [weather], parallel_tool_calls: false, tool_choice: { type: 'function', name: 'get_weather' } });
  const call = first.output.find(i => i.type === 'function_call');
  input.push(...first.output, { type: 'function_call_output', call_id: call.call_id, output: '21' });
  const second = await client.responses.create({ model, input, tools: [weather] });
  assert.match(second.output_text, /21/);
});

await step('chat.completions', async () => {
  const messages = [{ role: 'user', content: 'hi' }];
  const r = await client.chat.completions.create({ model, messages, stop: ['how'], top_p: 0.5 });
  assert.equal(r.choices[0].message.content, 'Hello, ');
  assert.equal(r.choices[0].message.refusal, null);
  assert.equal(r.choices[0].logprobs, null);
  const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, hello);
  assert.ok(final.usage.total_tokens > 0);
});

await step('chat.completions with tools', async () => {
  const messages = [{ role: 'user', content: 'weather in two cities?' }];
  const both = await client.chat.completions.create({ model, messages, tools: [chatWeather] });
  assert.equal(both.choices[0].message.tool_calls.length, 2);
  assert.equal(both.choices[0].message.content, null);
  const one = await client.chat.completions.create({ model, messages, tools: [chatWeather], parallel_tool_calls: false });
  assert.equal(one.choices[0].message.tool_calls.length, 1);
});

await step('errors', async () => {
  const messages = [{ role: 'user', content: 'hi' }];
  await assert.rejects(client.chat.completions.create({ model, messages, seed: 1 }), e => e instanceof OpenAI.BadRequestError && e.code === 'unsupported_parameter' && e.param === 'seed');
  await assert.rejects(client.responses.create({ model: 'none', input: 'hi' }), e => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
  await assert.rejects(client.embeddings.create({ model, input: 'hi' }), e => e instanceof OpenAI.NotFoundError && e.type === 'invalid_request_error');
  await assert.rejects(new OpenAI({ baseURL, apiKey: 'wrong', maxRetries: 0 }).models.list(), e => e instanceof OpenAI.AuthenticationError && e.code === 'invalid_api_key');
});

const vercel = createOpenAI({ baseURL, apiKey });
for (const [name, m] of Object.entries({ 'ai, responses': vercel.responses(model), 'ai, chat': vercel.chat(model) })) {
  await step(name, async () => {
    const tools = { get_weather: tool({ description: 'The weather of a city.', inputSchema: jsonSchema(parameters), execute: async () => '21' }) };
    assert.equal((await generateText({ model: m, prompt: 'hi' })).text, hello);
    let text = '';
    for await (const piece of streamText({ model: m, prompt: 'hi', onError: e => { throw e.error; } }).textStream) text += piece;
    assert.equal(text, hello);
    assert.match((await generateText({ model: m, prompt: 'weather in Paris?', tools, stopWhen: stepCountIs(3) })).text, /21/);
  });
}

for (const useResponsesApi of [true, false]) {
  await step(`langchain, responses ${useResponsesApi}`, async () => {
    const chat = new ChatOpenAI({ model, apiKey, useResponsesApi, configuration: { baseURL } });
    const words = m => typeof m.content === 'string' ? m.content : m.content.map(p => p.text ?? '').join('');
    assert.equal(words(await chat.invoke('hi')), hello);
    let text = '';
    for await (const piece of await chat.stream('hi')) text += words(piece);
    assert.equal(text, hello);
    const called = await chat.bindTools([chatWeather]).invoke('weather in Paris?');
    assert.equal(called.tool_calls[0].args.city, 'Paris');
  });
}

process.exitCode = failed ? 1 : 0;
