// A person at a service that asks for keys: sign in, make a key, see it once, revoke it, sign out.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const [url, keyFile] = process.argv.slice(2);
const admin = readFileSync(keyFile, "utf8").trim();
const shots = process.env.SHOTS;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const wrong = [];
page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
page.on("pageerror", (error) => wrong.push(String(error)));
page.on("dialog", (dialog) => dialog.accept());
const shot = async (name) => shots && page.screenshot({ path: `${shots}/${name}.png`, fullPage: true, caret: "initial" });
let checks = 0;
const check = async (what, test) => { await test(); checks += 1; console.log(`ok ${what}`); };
const asks = (key, path) => fetch(url + path, { headers: { authorization: `Bearer ${key}` } });
const fits = async (name) => {
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await shot(`${name}-${width}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${name} overflows ${width} px`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")}`));
  assert.deepEqual(found, [], name);
};
const signIn = async (key) => {
  await page.fill("input[name=key]", key);
  await page.keyboard.press("Enter");
};

await check("a page leads to the sign-in, and a wrong key is told so", async () => {
  await page.goto(`${url}/search?q=refund`);
  assert.match(page.url(), /\/sign-in\?return=/);
  assert.equal(await page.locator("header nav").count(), 0);
  await signIn("nlac_wrong");
  await page.waitForSelector("[role=alert]:has-text('Unknown key')");
  await fits("sign-in");
});
assert.equal(wrong.splice(0).filter((text) => !text.includes("401")).length, 0);
await check("a right one leads back to where one was, and the page says who is there", async () => {
  await signIn(admin);
  await page.waitForURL(`${url}/search?q=refund`);
  assert.equal((await page.textContent(".who span")).trim(), "admin");
});
await check("a spec that is typed outlives the end of its session", async () => {
  await page.goto(`${url}/jobs/new`);
  const typed = (await page.inputValue("#spec")).replace("name: help-desk", "name: kept");
  await page.context().clearCookies();
  await page.fill("#spec", typed);
  await page.waitForURL(/\/sign-in\?return=/);
  await signIn(admin);
  await page.waitForURL(`${url}/jobs/new`);
  await page.waitForFunction(() => document.querySelector("#spec").value.includes("name: kept"));
  await page.waitForFunction(() => document.querySelector("[name='/name']").value === "kept");
  assert.deepEqual(wrong.splice(0).filter((text) => !text.includes("401")), []);
});
let secret;
await check("a key is made and shown once", async () => {
  await page.click("header nav >> text=Keys");
  await page.fill("input[name=name]", "alice");
  await page.selectOption("select[name=days]", "30");
  await page.click("button:has-text('Create key')");
  secret = await page.textContent("#secret");
  assert.match(secret, /^nlac_[0-9a-f]{64}$/);
  assert.equal((await asks(secret, "/v1/jobs")).status, 200);
  assert.equal((await asks(secret, "/v1/keys")).status, 403);
  await fits("key-made");
  await page.click(".tabs >> text=Keys");
  assert.ok(!(await page.content()).includes(secret));
  const row = page.locator("tr", { hasText: "alice" });
  assert.match(await row.textContent(), /submit/);
  await fits("keys");
});
await check("another person signs in with it and sees no keys", async () => {
  const other = await (await browser.newContext()).newPage();
  await other.goto(url);
  await other.fill("input[name=key]", secret);
  await other.keyboard.press("Enter");
  await other.waitForURL(`${url}/`);
  assert.equal((await other.textContent(".who span")).trim(), "alice");
  assert.equal(await other.locator("header nav >> text=Keys").count(), 0);
  await other.goto(`${url}/keys`);
  assert.match(await other.textContent("main"), /needs the scope admin/);
  await other.goto(url);
  await page.click("button[aria-label='Revoke alice']");
  await page.waitForSelector("summary:has-text('1 ended')");
  assert.equal((await asks(secret, "/v1/jobs")).status, 401);
  // The list polls; the poll finds the session gone.
  await other.waitForURL(/\/sign-in/, { timeout: 10000 });
});
await check("the audit log names who did what", async () => {
  await page.click(".tabs >> text=Audit log");
  const rows = await page.locator("tbody tr").allTextContents();
  assert.ok(rows.some((row) => row.includes("admin") && row.includes("POST /keys/{id}/revoke")), rows.join("\n"));
  assert.ok(rows.some((row) => row.includes("unknown") && row.includes("/sign-in") && row.includes("401")));
  await fits("audit");
  await page.click("#theme");
  await fits("audit-dark");
  await page.click(".tabs >> text=Keys");
  await fits("keys-dark");
});
await check("signed out, nothing is shown", async () => {
  await page.click("text=Sign out");
  await page.waitForURL(`${url}/sign-in`);
  await page.goto(`${url}/keys`);
  assert.match(page.url(), /\/sign-in\?return=%2Fkeys/);
  await fits("signed-out-dark");
});
await check("no console error", async () => assert.deepEqual(wrong, []));
await browser.close();
console.log(`${checks} passed, 0 failed`);
