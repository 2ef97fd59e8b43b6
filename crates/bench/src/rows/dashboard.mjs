// Opens the dashboard and a plain HTML table with the same rows, in turns, and prints how long each takes until its rows
// are painted, and how many bytes a browser loads of the page.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const { chromium } = createRequire(`${process.env.TENURE_WEB_TOOLS}/`)('playwright-core');
const { address, token, chromium: executablePath, profile, rows, rounds } = JSON.parse(process.argv[2]);
const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank'];
const browser = await chromium.launch({ executablePath, ignoreDefaultArgs: true, args });
const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });

// Set at the end of the first frame that has the rows.
await context.addInitScript(([token, rows]) => {
  if (location.protocol === 'http:') localStorage.setItem('tenure.token', token);
  const look = () => {
    if (document.querySelectorAll('tbody tr').length < rows) return void requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => { window.paintedAt = performance.now(); }));
  };
  requestAnimationFrame(look);
}, [token, rows]);

/** Opens an address in a new tab; answers when its rows were painted, counted from the start of the navigation. */
async function open(url, then = async (_page) => {}) {
  const page = await context.newPage();
  await page.goto(url);
  const painted = await page.waitForFunction(() => window.paintedAt, undefined, { polling: 50 });
  const took = await painted.jsonValue();
  await then(page);
  await page.close();
  return took;
}

const dashboard = `http://${address}/`;
const files = [];
let bytes = 0;
let cells = [];
const counting = (response) => {
  if (response.url().startsWith(dashboard) && !response.url().includes('/api/')) files.push(response.body());
};
context.on('response', counting);
await open(dashboard, async (page) => {
  for (const file of await Promise.all(files)) bytes += file.length;
  cells = await page.$$eval('table.fleet tbody tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
});
context.off('response', counting);

const escaped = (text) => text.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);
const table = cells.map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`).join('\n');
const document = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>plain</title></head><body><table><tbody>${table}</tbody></table></body></html>`;
const server = createServer((_, answer) => answer.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(document));
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const plain = `http://127.0.0.1:${server.address().port}/`;

const times = { page: [], plain: [] };
await open(plain);
for (let round = 0; round < rounds; round++) {
  times.page.push(await open(dashboard));
  times.plain.push(await open(plain));
}
process.stdout.write(JSON.stringify({ bytes, ...times }));
server.close();
await browser.close();
