// The timeline in the dashboard: who held what when, drawn by timeline.js and read again after each change of a claim.

import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { get } from './api.js';
import { Problem } from './parts.js';
import { follow, now } from './store.js';
import { timeline } from './timeline.js';

/** How much is read at most; older holds are left out. */
const MAX_PAGES = 10;
const PAGE = '1000';

async function read(since) {
  const holds = new Map();
  /** @type {any} */
  let page = null;
  for (let n = 0; n < MAX_PAGES && (!page || page.next); n += 1) {
    page = (await get('timeline', { since, limit: PAGE, after: page?.next }));
    // One that ended while the pages were read is there twice; the later one counts.
    for (const hold of page.holds) holds.set(`${hold.key} ${hold.epoch}`, hold);
  }
  return { now: page.now, since: page.since, holds: [...holds.values()], cut: Boolean(page.next) };
}

export function Timeline() {
  const [since, setSince] = useState('24h');
  const [error, setError] = useState(null);
  const [cut, setCut] = useState(false);
  const root = useRef(null);
  useEffect(() => {
    let drawn = null;
    let timer = null;
    let ended = false;
    const draw = async () => {
      timer = null;
      try {
        const data = await read(since);
        if (ended) return;
        if (drawn) drawn.update(data);
        else drawn = timeline(root.current, data, { now });
        setCut(data.cut);
        setError(null);
      } catch (failed) {
        if (!ended) setError(failed);
      }
    };
    const soon = () => { if (!timer && !document.hidden) timer = setTimeout(draw, 1_000); };
    draw();
    const stop = follow((event) => { if (!event || event.key) soon(); });
    document.addEventListener('visibilitychange', soon);
    return () => {
      ended = true;
      clearTimeout(timer);
      stop();
      document.removeEventListener('visibilitychange', soon);
      drawn?.destroy();
    };
  }, [since]);
  return html`<section aria-label="Timeline"><p class="filters"><label>Since <select value=${since} onChange=${(event) => setSince(event.target.value)}>
      ${[['1h', 'an hour ago'], ['24h', 'a day ago'], ['7d', 'a week ago'], ['30d', 'a month ago']].map(([value, words]) => html`<option value=${value}>${words}</option>`)}</select></label>
      ${cut && html` <span class="sub">only the newest are shown</span>`}</p>
    <${Problem} error=${error} /><div ref=${root}></div></section>`;
}
