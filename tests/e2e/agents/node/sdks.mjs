// Runs SDKs in Node.js: a JSON line in, one SDK called, a JSON line out; the lines are those of sdk_driver.py.
import { createInterface } from "node:readline";
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { embedMany } from "ai";
import OpenAI, { toFile } from "openai";

// Its warnings would be lines among the answers.
globalThis.AI_SDK_LOG_WARNINGS = false;

const KEY = "sk-test";
const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
const DESCRIPTION = "Look a word up.";
const lookup = ({ word }) => `${word} has ${word.length} letters`;
const openai = ({ url }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 });
const anthropic = ({ url }) => new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 });

async function chat(order, turns) {
  const client = openai(order);
  const messages = [{ role: "user", content: order.prompt }];
  const tools = [{ type: "function", function: { name: "lookup", description: DESCRIPTION, parameters: PARAMETERS } }];
  for (;;) {
    const body = { model: order.model, messages, tools };
    const answer = order.stream
      ? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(body);
    const { message, finish_reason } = answer.choices[0];
    const calls = message.tool_calls ?? [];
    turns.push({
      thought: message.reasoning_content ?? "", text: message.content ?? "", finish: finish_reason,
      calls: calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      usage: [answer.usage.prompt_tokens, answer.usage.completion_tokens],
    });
    if (!calls.length) return;
    messages.push(message);
    for (const call of calls) {
      messages.push({ role: "tool", tool_call_id: call.id, content: lookup(JSON.parse(call.function.arguments)) });
    }
  }
}

async function responses(order, turns) {
  const client = openai(order);
  const tools = [{ type: "function", name: "lookup", description: DESCRIPTION, parameters: PARAMETERS, strict: false }];
  let input = [{ role: "user", content: order.prompt }];
  let state = order.stored ? {} : { store: false, include: ["reasoning.encrypted_content"] };
  for (;;) {
    const body = { model: order.model, input, tools, reasoning: { summary: "detailed" }, ...state };
    const answer = order.stream
      ? await client.responses.stream(body).finalResponse()
      : await client.responses.create(body);
    const made = (type) => answer.output.filter((item) => item.type === type);
    const calls = made("function_call");
    turns.push({
      thought: made("reasoning").flatMap((item) => item.summary.map((part) => part.text)).join(""),
      text: answer.output_text, finish: answer.status,
      calls: calls.map((call) => [call.name, JSON.parse(call.arguments)]),
      usage: [answer.usage.input_tokens, answer.usage.output_tokens],
    });
    if (!calls.length) return;
    const results = calls.map((call) => (
      { type: "function_call_output", call_id: call.call_id, output: lookup(JSON.parse(call.arguments)) }));
    if (order.stored) state = { previous_response_id: answer.id };
    input = order.stored ? results : [...input, ...answer.output, ...results];
  }
}

async function messages(order, turns) {
  const client = anthropic(order);
  const tools = [{ name: "lookup", description: DESCRIPTION, input_schema: PARAMETERS }];
  const thread = [{ role: "user", content: order.prompt }];
  for (;;) {
    const body = {
      model: order.model, messages: thread, tools, max_tokens: 4096,
      thinking: { type: "enabled", budget_tokens: 1024 },
    };
    const answer = order.stream
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    const made = (type) => answer.content.filter((block) => block.type === type);
    const calls = made("tool_use");
    turns.push({
      thought: made("thinking").map((block) => block.thinking).join(""),
      text: made("text").map((block) => block.text).join(""), finish: answer.stop_reason,
      calls: calls.map((call) => [call.name, call.input]),
      usage: [answer.usage.input_tokens, answer.usage.output_tokens],
    });
    if (!calls.length) return;
    thread.push({ role: "assistant", content: answer.content });
    thread.push({
      role: "user",
      content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: lookup(call.input) })),
    });
  }
}

async function langchain(order, turns) {
  const configuration = { baseURL: `${order.url}/v1` };
  const settings = { model: order.model, apiKey: KEY, maxRetries: 0, useResponsesApi: true, configuration };
  const tools = [{ type: "function", function: { name: "lookup", description: DESCRIPTION, parameters: PARAMETERS } }];
  const model = new ChatOpenAI(settings).bindTools(tools);
  const thread = [new HumanMessage(order.prompt)];
  for (;;) {
    let answer;
    if (order.stream) for await (const piece of await model.stream(thread)) answer = answer ? answer.concat(piece) : piece;
    else answer = await model.invoke(thread);
    turns.push({
      // It asks models that it does not know for no summary, and gets what was thought as it is.
      thought: answer.response_metadata.output.filter((item) => item.type === "reasoning")
        .flatMap((item) => [...item.summary, ...item.content ?? []].map((part) => part.text)).join(""),
      text: answer.text, finish: answer.response_metadata.status,
      calls: answer.tool_calls.map((call) => [call.name, call.args]),
      usage: [answer.usage_metadata.input_tokens, answer.usage_metadata.output_tokens],
    });
    if (!answer.tool_calls.length) return;
    thread.push(answer);
    for (const call of answer.tool_calls) {
      thread.push(new ToolMessage({ tool_call_id: call.id, content: lookup(call.args) }));
    }
  }
}

const embedders = {
  openai: async (order) => {
    const answer = await openai(order).embeddings.create({ model: order.model, input: order.texts });
    return answer.data.map((item) => item.embedding);
  },
  vercel: async ({ url, model, texts }) => {
    const made = createOpenAI({ baseURL: `${url}/v1`, apiKey: KEY }).textEmbeddingModel(model);
    return (await embedMany({ model: made, values: texts, maxRetries: 0 })).embeddings;
  },
  langchain: async ({ url, model, texts }) => {
    const made = new OpenAIEmbeddings({ model, apiKey: KEY, maxRetries: 0, configuration: { baseURL: `${url}/v1` } });
    return made.embedDocuments(texts);
  },
};
const talks = { chat, responses, messages, langchain };

async function keep(order) {
  const client = openai(order);
  const made = await client.responses.create({ model: order.model, input: order.prompt });
  const again = await client.responses.retrieve(made.id);
  const items = [];
  for await (const item of client.responses.inputItems.list(made.id)) items.push(item.content[0].text);
  await client.responses.delete(made.id);
  const gone = await client.responses.retrieve(made.id).then(() => null, (error) => error.constructor.name);
  return [made.output_text, again.output_text, items, gone];
}

async function media(order) {
  const client = openai(order);
  const { model, prompt } = order;
  const file = await toFile(Buffer.from("RIFF".repeat(4000)), "a.wav");
  const heard = await client.audio.transcriptions.create({ model, file });
  const spoken = await client.audio.speech.create({ model, voice: "any", input: prompt });
  const drawn = await client.images.generate({ model, prompt });
  return [heard.text, await spoken.text(), drawn.data[0].b64_json];
}

async function models(order) {
  const ids = [];
  for await (const model of anthropic(order).models.list()) ids.push(model.id);
  return ids;
}

async function run(order) {
  const turns = [];
  try {
    let result = null;
    if (order.scenario === "talk") await talks[order.client](order, turns);
    else if (order.scenario === "embed") result = await embedders[order.client](order);
    else if (order.scenario === "keep") result = await keep(order);
    else if (order.scenario === "media") result = await media(order);
    else if (order.scenario === "models") result = await models(order);
    else if (order.scenario === "moderate") result = await openai(order).moderations.create({ input: order.texts });
    else {
      const asked = { model: order.model, messages: [{ role: "user", content: order.prompt }] };
      result = await anthropic(order).messages.countTokens(asked);
    }
    return { turns, result, error: null };
  } catch (error) {
    const told = { kind: error.constructor.name, status: error.status ?? null, message: String(error.message) };
    return { turns, result: null, error: told };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line))));
}
