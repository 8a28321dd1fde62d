// Runs the Vercel AI SDK: a JSON line in, the SDK called, a JSON line out; the lines are those of driver.py.
import { createInterface } from "node:readline";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const Trip = z.object({
  title: z.string(),
  legs: z.array(z.object({
    city: z.string().min(1).max(40),
    nights: z.number().int().min(1).max(30),
    by: z.enum(["train", "plane"]),
    note: z.string().nullable(),
  })).min(1).max(5),
  stay: z.union([
    z.object({ kind: z.literal("hotel"), stars: z.number().int().min(1).max(5) }),
    z.object({ kind: z.literal("tent"), people: z.number().int().positive() }),
  ]),
  budget: z.number().positive(),
});

const models = {
  vercel: ({ url, model }) =>
    createOpenAICompatible({ name: "gateway", baseURL: url, apiKey: "sk-test", supportsStructuredOutputs: true, includeUsage: true })(model),
  vercel_openrouter: ({ url, model }) => createOpenRouter({ baseURL: url, apiKey: "sk-test" })(model),
  // The two as they come: over Responses, whose items are sent by their ids, and over Messages.
  vercel_openai: ({ url, model }) => createOpenAI({ baseURL: url, apiKey: "sk-test" })(model),
  vercel_anthropic: ({ url, model }) => createAnthropic({ baseURL: url, apiKey: "sk-test" })(model),
};
const options = {
  vercel: { gateway: { reasoningEffort: "medium" } },
  vercel_openrouter: { openrouter: { reasoning: { effort: "medium" } } },
  vercel_openai: { openai: { reasoningEffort: "medium", reasoningSummary: "detailed", forceReasoning: true } },
  vercel_anthropic: { anthropic: { thinking: { type: "enabled", budgetTokens: 2048 } } },
};

// Its warnings would be lines among the answers.
globalThis.AI_SDK_LOG_WARNINGS = false;

async function run(framework, order) {
  const calls = [];
  const model = models[framework](order);
  const tools = {
    weather: tool({
      description: "Return the weather of a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => { calls.push(["weather", city]); return `${city}: ${city.length} degrees`; },
    }),
    compare: tool({
      description: "Compare two reports.",
      inputSchema: z.object({ first: z.string(), second: z.string() }),
      execute: async ({ first, second }) => { calls.push(["compare", first, second]); return `${first} | ${second}`; },
    }),
  };
  try {
    if (order.scenario === "structured") {
      const settings = { model, schema: Trip, prompt: "Plan a trip.", maxRetries: 0 };
      if (!order.stream) return { output: (await generateObject(settings)).object, calls, error: null };
      let broken = null;
      const result = streamObject({ ...settings, onError: ({ error }) => { broken = error; } });
      for await (const _ of result.partialObjectStream);
      if (broken) throw broken;
      return { output: await result.object, calls, error: null };
    }
    const settings = {
      model, tools, maxRetries: 0, stopWhen: stepCountIs(8), providerOptions: options[framework],
      system: "You compare the weather of cities by your tools.",
      prompt: "Compare the weather of Paris, Rome and Oslo.",
    };
    if (!order.stream) return { output: (await generateText(settings)).text, calls, error: null };
    let broken = null;
    const result = streamText({ ...settings, onError: ({ error }) => { broken = error; } });
    await result.consumeStream();
    if (broken) throw broken;
    const output = await result.text;
    return { output, calls, error: null };
  } catch (error) {
    return { output: null, calls, error: `${error.name}: ${error.message} ${error.responseBody ?? ""}`.slice(0, 4000) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(process.argv[2], JSON.parse(line))));
}
