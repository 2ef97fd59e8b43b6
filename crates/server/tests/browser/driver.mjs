// Drives Chromium for the tests of the dashboard: reads one JSON object a line, `{"tab": 0, "code": "…"}`, runs the code
// as the body of an async function with `page`, `context`, `pages` and `axe`, and answers with one line.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.env.TENURE_WEB_TOOLS}/`);
const { chromium } = require('playwright-core');
const source = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// Only what a test needs: the package's own flags turn web security off.
const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-dev-shm-usage', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-pipe',
  '--host-resolver-rules=MAP rebound.example 127.0.0.1', `--user-data-dir=${process.argv[2]}`, 'about:blank'];
const browser = await chromium.launch({ executablePath: process.env.TENURE_CHROMIUM, ignoreDefaultArgs: true, args });
const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
context.setDefaultTimeout(20_000);
await context.addInitScript(() => {
  addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
});
const pages = [];
/** What went wrong in any page, but for requests that a test makes fail. */
const problems = [];

async function open() {
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(String(error.stack ?? error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) problems.push(message.text());
  });
  pages.push(page);
  return page;
}
await open();

/** What axe finds in a page, in words. */
async function axe(page) {
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }));
  return violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html}: ${node.failureSummary}`));
}

const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({ input: process.stdin })) {
  const { tab, code } = JSON.parse(line);
  let answer;
  try {
    const page = pages[tab] ?? await open();
    const value = await new AsyncFunction('page', 'context', 'pages', 'axe', 'problems', code)(page, context, pages, axe, problems);
    answer = { value: value ?? null };
  } catch (error) {
    answer = { error: String(error.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
