// Drives the system's Chromium: a JSON line in, one step taken, a JSON line out with what it found or why it failed.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const quiet = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const browser = await chromium.launch({ executablePath: process.argv[2], args: quiet });
let context, page, told;

const steps = {
  async open({ url, scripts, scheme, width, password }) {
    await context?.close();
    context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      javaScriptEnabled: scripts,
      httpCredentials: password ? { username: "operator", password } : undefined,
    });
    page = await context.newPage();
    page.setDefaultTimeout(90000);
    told = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && told.push(message.text()));
    page.on("pageerror", (error) => told.push(String(error)));
    page.on("dialog", (dialog) => { told.push("dialog " + dialog.message()); dialog.dismiss(); });
    if (scripts) await page.clock.install();
    return (await page.goto(url)).status();
  },
  evaluate: ({ code }) => page.evaluate(code),
  press: ({ key }) => page.keyboard.press(key),
  submit: async ({ name, value }) => {
    await page.locator(`[name=${name}]`).fill(value);
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/[?]/);
    return page.url();
  },
  forward: ({ seconds }) => page.clock.fastForward(seconds * 1000),
  // Not by the page's own eval, which its policy forbids.
  async wait({ code }) {
    while (!(await page.evaluate(code))) await new Promise((resolve) => setTimeout(resolve, 50));
    return true;
  },
  told: () => told,
  async faults() {
    await page.evaluate(axe);
    const found = await page.evaluate("axe.run({ resultTypes: ['violations'] })");
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
  },
  picture: ({ path }) => page.screenshot({ path, fullPage: true }).then(() => path),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { step, ...values } = JSON.parse(line);
  const found = await Promise.resolve(values)
    .then(steps[step])
    .then((value) => ({ value }), (error) => ({ error: String(error) }));
  process.stdout.write(JSON.stringify(found) + "\n");
}
await browser.close();
