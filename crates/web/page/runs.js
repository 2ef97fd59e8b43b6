// Unattended runs: how each ended, the log of one as it is written, and stopping it.

import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { part, request } from './api.js';
import { Age, Command, Problem, State, Table, Text, may, open, useAnswer } from './parts.js';
import { clean, money } from './words.js';

const concerns = (event) => event.kind.startsWith('run');
/** How much of a log is drawn. */
const MAX_LINES = 500;

export function Runs({ chosen, go }) {
  const [failed, setFailed] = useState(false);
  const [answer, error] = useAnswer('runs', { limit: '1000', failed: failed && 'true' }, concerns);
  /** @type {Array<[string, (run: import('schema').Run) => any, string?]>} */
  const columns = [
    ['Run', (run) => html`<${Text} of=${run.id} />`],
    ['State', (run) => html`<${State} word=${run.outcome ?? run.state} />`],
    ['Agent', (run) => html`<${Text} of=${run.role ? `${run.agent} as ${run.role}` : run.agent} />`],
    ['Item', (run) => html`<${Text} of=${run.item} />`],
    ['Started', (run) => html`<${Age} at=${run.begun_at ?? run.created_at} />`],
    ['Cost', (run) => money(run.usage.cost), 'number'],
    ['Why', (run) => html`<${Text} of=${run.why ?? run.waiting?.why ?? ''} />`],
  ];
  return html`<div class=${chosen ? 'split' : ''}><section aria-label="Runs">
    <p class="filters"><label><input type="checkbox" checked=${failed} onChange=${(event) => setFailed(event.target.checked)} /> Only failed ones</label></p>
    <${Problem} error=${error} />
    <${Table} label="Runs" columns=${columns} rows=${answer?.runs ?? []} id=${(run) => run.id} chosen=${chosen}
      choose=${(run) => go('runs', run.id === chosen ? null : run.id)} empty=${answer ? 'No runs.' : '…'} />
    </section>${chosen && html`<${Run} key=${chosen} name=${chosen} close=${() => go('runs', null)} />`}</div>`;
}

function Run({ name, close }) {
  const [answer, error] = useAnswer(`runs/${part(name)}`, {}, concerns);
  /** @type {import('schema').Run | undefined} */
  const run = answer?.run;
  const stop = () => open({
    title: `Stop run ${name}`, verb: 'Stop', path: `runs/${part(name)}/stop`, done: `run ${name} is stopped`,
    says: 'Its agent and what it started are ended. Its claim is freed.',
  });
  const tokens = run && (run.usage.tokens_in || run.usage.tokens_out) && `${run.usage.tokens_in ?? 0} in, ${run.usage.tokens_out ?? 0} out`;
  const fields = run ? [
    ['state', html`<${State} word=${run.outcome ?? run.state} />`], ['why', run.why && html`<${Text} of=${run.why} />`],
    ['item', html`<${Text} of=${run.item} />`], ['session', run.session && html`<a href=${`#fleet/${part(run.session)}`}><${Text} of=${run.session} /></a>`],
    ['directory', html`<${Text} of=${run.dir} />`], ['tokens', tokens], ['cost', run.usage.cost !== null && money(run.usage.cost)],
    ['stop', run.stop_asked && html`asked <${Age} at=${run.stop_asked.at} /> ago: <${Text} of=${run.stop_asked.why} />`],
  ] : [];
  return html`<aside class="detail" aria-labelledby="run-head"><div class="head"><h2 id="run-head">Run <${Text} of=${name} /></h2>
    <button type="button" onClick=${close} aria-label="Close the details">Close</button></div>
    <${Problem} error=${error} />
    ${run && run.state !== 'ended' && may('act') && html`<p class="buttons"><button type="button" onClick=${stop}>Stop…</button></p>`}
    ${run?.state === 'ended' && run.outcome !== 'done' && html`<p>Resume it: <${Command} line=${`tenure runs resume ${run.id}`} /></p>`}
    <dl>${fields.filter(([, value]) => value).map(([label, value]) => html`<div key=${label}><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
    ${may('logs') && html`<h3>Log</h3><${Tail} name=${name} />`}</aside>`;
}

/** What an agent's line says: its text where it has one, else the line. */
function said(data) {
  if (typeof data === 'string') return data;
  const text = data?.text ?? data?.message?.content ?? data?.result ?? data?.message;
  return typeof text === 'string' ? text : JSON.stringify(data);
}

/** The log of a run, followed until its end or until nobody looks. */
function Tail({ name }) {
  const [lines, setLines] = useState([]);
  const [error, setError] = useState(null);
  const box = useRef(null);
  const follows = useRef(true);
  useEffect(() => {
    const stopped = new AbortController();
    follow(name, stopped.signal, (line) => setLines((all) => [...all.slice(1 - MAX_LINES), line]))
      .catch((failed) => stopped.signal.aborted || setError(failed));
    return () => stopped.abort();
  }, [name]);
  useEffect(() => { if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight; }, [lines]);
  const scrolled = () => { follows.current = box.current.scrollTop + box.current.clientHeight > box.current.scrollHeight - 8; };
  return html`<${Problem} error=${error} /><div class="tail" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label="Log of the run">
    ${lines.map((line) => html`<div key=${line.at}><bdi>${clean(line.text)}</bdi></div>`)}${!lines.length && !error && 'nothing yet'}</div>`;
}

async function follow(name, signal, take) {
  const response = await request(`/api/v1/runs/${part(name)}/log`, { signal, headers: { Accept: 'text/event-stream' } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const field = (start) => block.split('\n').find((line) => line.startsWith(start))?.slice(start.length).trim();
      if (field('event:') === 'end') return;
      const data = field('data:');
      if (data) take({ at: field('id:'), text: said(JSON.parse(data).data) });
    }
  }
}
