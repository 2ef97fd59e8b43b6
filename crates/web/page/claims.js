// Every claim: who holds it, who waits for it, and why it is in its state.

import { html, useState } from './vendor/htm-preact.js';
import { part } from './api.js';
import { free, give } from './detail.js';
import { Age, Problem, State, Table, Text, may, useAnswer } from './parts.js';
import { clean, command } from './words.js';

const concerns = (event) => Boolean(event.key) || event.kind.startsWith('session');

export function Claims({ chosen, go }) {
  const [all, setAll] = useState(false);
  const [answer, error] = useAnswer('claims', { limit: '1000', all: all && 'true' }, concerns);
  const [lines] = useAnswer('lines', {}, concerns);
  const waiters = new Map((lines?.lines ?? []).map((line) => [line.key, line.waiters]));
  /** @type {Array<[string, (claim: import('schema').Claim) => any, string?]>} */
  const columns = [
    ['Key', (claim) => html`<${Text} of=${claim.key} />`],
    ['State', (claim) => html`<${State} word=${claim.state} />`],
    ['Holder', (claim) => claim.holder && html`<${Holder} of=${claim.holder} />`],
    ['Since', (claim) => html`<${Age} at=${claim.acquired_at} />`],
    ['Epoch', (claim) => claim.epoch, 'number'],
    ['Waiting', (claim) => (waiters.get(claim.key) ?? []).map((one) => html`<div><${Text} of=${one.session ?? `pid ${one.pid}`} /> <${Age} at=${one.since} /></div>`)],
    ['Note', (claim) => html`<${Text} of=${claim.note ?? ''} />`],
  ];
  return html`<div class=${chosen ? 'split' : ''}><section aria-label="Claims">
    <p class="filters"><label><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} /> Also free and done ones</label></p>
    <${Problem} error=${error} />
    <${Table} label="Claims" columns=${columns} rows=${answer?.claims ?? []} id=${(claim) => claim.key} chosen=${chosen}
      choose=${(claim) => go('claims', claim.key === chosen ? null : claim.key)} empty=${answer ? 'Nothing is claimed.' : '…'} />
    </section>${chosen && html`<${Why} key=${chosen} name=${chosen} close=${() => go('claims', null)} />`}</div>`;
}

/** @param {{of: import('schema').Session}} session */
const Holder = ({ of }) => html`<a href=${`#fleet/${part(of.handle)}`}><${Text} of=${of.handle} /></a> <span class="sub"><${Text} of=${of.title ?? ''} /></span>`;

function Why({ name, close }) {
  const [answer, error] = useAnswer(`claims/${part(name)}`, {}, concerns);
  /** @type {import('schema').Claim | undefined} */
  const claim = answer?.claim;
  /** @type {import('schema').Why | undefined} */
  const why = answer?.why;
  return html`<aside class="detail" aria-labelledby="why-head"><div class="head"><h2 id="why-head"><${Text} of=${name} /></h2>
    <button type="button" onClick=${close} aria-label="Close the details">Close</button></div>
    <${Problem} error=${error} />
    ${claim && html`<dl><div><dt>state</dt><dd><${State} word=${claim.state} /></dd></div>
      ${claim.holder && html`<div><dt>holder</dt><dd><${Holder} of=${claim.holder} /></dd></div>`}
      <div><dt>epoch</dt><dd>${claim.epoch}</dd></div></dl>
      ${claim.holder && may('act') && html`<p class="buttons"><button type="button" onClick=${() => free(claim.key, claim.epoch, claim.holder)}>Free…</button>
        <button type="button" onClick=${() => give(claim.key, claim.epoch, claim.holder)}>Give…</button></p>`}`}
    ${why && html`<h3>Why</h3><ul>${why.because.map((line) => html`<li><${Text} of=${line} /></li>`)}</ul>
      ${why.waiters.length > 0 && html`<h3>Line</h3><ol>${why.waiters.map((one) => html`<li><${Text} of=${one.session ?? `pid ${one.pid}`} />, <${Age} at=${one.since} /></li>`)}</ol>`}
      ${why.hints.map((hint) => hint.verb && html`<p class="sub"><code><bdi>${clean(command(hint))}</bdi></code> <${Text} of=${hint.why ?? ''} /></p>`)}`}</aside>`;
}
