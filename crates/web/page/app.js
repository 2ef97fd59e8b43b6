// The page: its views, what is known of the server, and the one live region.

import { html, render, useEffect, useState } from './vendor/htm-preact.js';
import { get } from './api.js';
import { Claims } from './claims.js';
import { Fleet, counted } from './fleet.js';
import { Log } from './log.js';
import { Missions } from './missions.js';
import { Command, Dialog, Problem, Text } from './parts.js';
import { Queue } from './queue.js';
import { Runs } from './runs.js';
import { doubted, set, state, watch } from './store.js';
import { start } from './stream.js';
import { Timeline } from './timeline-view.js';
import { Usage } from './usage.js';
import { span } from './words.js';

const VIEWS = [
  ['fleet', 'Fleet', Fleet], ['timeline', 'Timeline', Timeline], ['claims', 'Claims', Claims], ['missions', 'Missions', Missions], ['runs', 'Runs', Runs],
  ['usage', 'Usage', Usage], ['queue', 'Queue', Queue], ['log', 'Log', Log],
];
const OPEN = 'tenure serve --open';

/** The view of the address, and what is chosen in it. */
function place() {
  const [view, ...rest] = location.hash.slice(1).split('/');
  const known = VIEWS.some(([name]) => name === view);
  return { view: known ? view : 'fleet', chosen: known && rest.length ? decodeURIComponent(rest.join('/')) : null };
}

function go(view, chosen) {
  location.hash = chosen ? `${view}/${encodeURIComponent(chosen)}` : view;
}

/** What is known of the server; its line is always there, so that nothing moves when it changes. */
function Link() {
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick(Date.now()), 1_000); return () => clearInterval(timer); }, []);
  const age = Date.now() - state.heard;
  const old = state.link !== 'live' || age > doubted();
  const data = `data is ${span(age)} old`;
  if (!old && state.away) return html`<p class="link-state warn">the store cannot be read: <bdi>${state.away}</bdi></p>`;
  if (!old) return html`<p class="link-state">live</p>`;
  if (state.link === 'login') return html`<p class="link-state bad">${data}; this login is over. Log in again: <${Command} line=${OPEN} /></p>`;
  if (state.link === 'over') return html`<p class="link-state bad">${data}; the server has ended. Start it again: <${Command} line=${OPEN} /></p>`;
  return html`<p class="link-state bad">${data}; ${state.link === 'starting' ? 'connecting' : 'no connection to the server, trying again'}</p>`;
}

/** Says the counts when they change, and what an act did; the only thing that is read aloud by itself. */
function Spoken() {
  const counts = counted(state.counts);
  const [said, say] = useState('');
  useEffect(() => { const timer = setTimeout(() => say(counts), 1_000); return () => clearTimeout(timer); }, [counts]);
  useEffect(() => { if (state.said) { say(state.said); set({ said: null }); } }, [state.said]);
  return html`<p class="spoken" role="status" aria-live="polite">${said}</p>`;
}

function App() {
  const [, redraw] = useState(0);
  const [{ view, chosen }, move] = useState(place());
  useEffect(() => {
    let pending = false;
    const stop = watch(() => {
      if (pending) return;
      pending = true;
      // Several changes at once are drawn once; a hidden page too, for its title.
      setTimeout(() => { pending = false; redraw((n) => n + 1); }, 0);
    });
    const moved = () => move(place());
    addEventListener('hashchange', moved);
    return () => { stop(); removeEventListener('hashchange', moved); };
  }, []);
  useEffect(() => {
    if (state.link === 'login' && state.scopes) set({ scopes: null });
    if (state.link !== 'live' || state.scopes) return;
    get('me').then(({ me, server }) => set({ scopes: me.scopes, host: server.host }), () => {});
  }, [state.link]);
  const waiting = state.counts.waiting ?? 0;
  document.title = waiting ? `(${waiting}) tenure` : 'tenure';
  if (!state.loaded) {
    if (state.link !== 'login') return html`<main class="alone"><p>…</p></main>`;
    return html`<main class="alone"><h1 class="spoken">tenure</h1>${state.problem && html`<${Problem} error=${state.problem} />`}<p>Not logged in. Run <${Command} line=${OPEN} /></p></main>`;
  }
  const [, name, View] = VIEWS.find(([one]) => one === view);
  return html`<header><h1>tenure</h1>${state.host && html`<p class="host">on <${Text} of=${state.host} /></p>`}
      <nav aria-label="Views">${VIEWS.map(([one, label]) => html`<a key=${one} href=${`#${one}`} aria-current=${one === view ? 'page' : null}>${label}</a>`)}</nav>
      <${Link} /></header>
    <main aria-label=${name}><${View} key=${view} chosen=${chosen} go=${go} /></main>
    <${Spoken} /><${Dialog} />`;
}

render(html`<${App} />`, document.getElementById('app'));
start();
