// A person at the page: an empty list, a job that runs, its curve, its critiques, pause and resume.
import { chromium } from "playwright-core";
import assert from "node:assert/strict";

const url = process.argv[2];
const shots = process.env.SHOTS;
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const wrong = [];
page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
page.on("pageerror", (error) => wrong.push(String(error)));
page.on("response", (answer) => answer.status() >= 400 && wrong.push(`${answer.status()} ${answer.url()}`));
page.on("requestfailed", (request) => wrong.push(`failed ${request.url()}`));
const shot = async (name) => shots && page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
let checks = 0;
const check = async (what, test) => { await test(); checks += 1; console.log(`ok ${what}`); };

await page.goto(url);
await check("the empty list says what to do", async () =>
  assert.match(await page.textContent("main"), /No jobs yet/));

const engines = await (await fetch(`${url}/v1/engines`)).json();
assert.equal(engines.data[0].name, "local");
const job = await (await fetch(`${url}/v1/jobs`, {
  method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({
    name: "browser", environment: { kind: "help_desk" },
    model: { base: "help-desk-base", prompts: "desk" },
    algorithm: { kind: "nlac", warmup_iterations: 1,
      weights: { bellman: "base", evaluator: "base", refiner: "base" }, replay: { batch: 32 } },
    rollout: { episodes: 16, max_tokens: 8 }, optimizer: { epochs: 1 },
    evaluation: { every: 1, episodes: 20, interim_episodes: 10 }, budget: { iterations: 4 },
  }),
})).json();
assert.ok(job.id, JSON.stringify(job));

await check("the list shows the job without a reload", async () => {
  await page.waitForSelector(`a[href="/jobs/${job.id}"]`, { timeout: 10000 });
  await shot("list");
});
await page.click(`a[href="/jobs/${job.id}"]`);
await check("pause and resume", async () => {
  await page.click("button:has-text('Pause')");
  await page.waitForSelector(".status.paused", { timeout: 10000 });
  await page.click("button:has-text('Resume')");
  await page.waitForSelector(".status.running, .status.succeeded", { timeout: 10000 });
});
await check("it ends with a curve, critiques and refinements", async () => {
  await page.waitForSelector(".status.succeeded", { timeout: 90000 });
  assert.ok((await page.locator("svg .dot").count()) >= 5);
  assert.ok((await page.locator(".critique").count()) > 0);
  assert.ok((await page.locator(".refined ins").count()) > 0);
  await shot("job");
});
await check("nothing overflows on a phone", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of ["/", `/jobs/${job.id}`]) {
    await page.goto(url + path);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${path} is ${width} px wide`);
  }
  await shot("phone");
});
await check("no console error and no failed request", async () => assert.deepEqual(wrong, []));
await browser.close();
console.log(`${checks} passed, 0 failed`);
