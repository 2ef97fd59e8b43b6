// The log: what changed, who did it, on what evidence; live.

import { html, useState } from './vendor/htm-preact.js';
import { part } from './api.js';
import { Problem, Table, Text, useAnswer } from './parts.js';
import { state } from './store.js';
import { clock } from './words.js';

const Name = ({ of }) => (of ? html`<a href=${`#fleet/${part(of.handle)}`}><${Text} of=${of.handle} /></a>` : '-');

/** @typedef {[string, (event: import('schema').Event) => any, string?]} Column */
/** @type {Column} */
const AT = ['At', (event) => html`<time datetime=${event.at} title=${event.at}>${clock(event.at)}</time>`];
/** @type {Column} */
const WHAT = ['What', (event) => html`<${Text} of=${event.kind} />`];
/** @type {Column} */
const SESSION = ['Session', (event) => html`<${Name} of=${event.session} />`];
/** @type {Column} */
const BY = ['By', (event) => html`<${Name} of=${event.actor} />`];
/** @type {Column} */
const KEY = ['Key', (event) => event.key && html`<${Text} of=${event.key} />${event.epoch ? ` (${event.epoch})` : ''}`];
/** @type {Column} */
const WHY = ['Why', (event) => html`<${Text} of=${event.reason ?? event.evidence} />`];

/** Events, the newest first. */
export function Events({ all, brief = false }) {
  const columns = brief ? [AT, WHAT, KEY, WHY] : [AT, WHAT, SESSION, BY, KEY, WHY];
  return html`<${Table} label="Log" columns=${columns} rows=${all} id=${(event) => event.cursor} empty="No events." />`;
}

export function Log() {
  const [session, setSession] = useState('');
  const [text, setText] = useState('');
  const [answer, error] = useAnswer('events', { limit: '500' }, () => false);
  const first = state.log[0]?.cursor ?? Infinity;
  const older = (answer?.events ?? []).filter((event) => event.cursor < first);
  const all = [...older, ...state.log].reverse();
  const wanted = text.toLowerCase();
  const fits = (event) => (!session || event.session?.handle === session || event.actor?.handle === session)
    && (!wanted || [event.kind, event.key, event.reason, event.evidence].some((one) => one?.toLowerCase().includes(wanted)));
  const names = [...new Set(all.flatMap((event) => [event.session?.handle, event.actor?.handle]).filter(Boolean))].sort();
  return html`<section aria-label="Log"><div class="filters" role="group" aria-label="Filters">
      <label>Session <select value=${session} onChange=${(event) => setSession(event.target.value)}><option value="">all</option>${names.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <label>Contains <input type="search" value=${text} onInput=${(event) => setText(event.target.value)} /></label></div>
    <${Problem} error=${error} /><${Events} all=${all.filter(fits)} /></section>`;
}
