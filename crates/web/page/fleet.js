// The fleet: every session in the order of the server, counts above, one in full at the side.

import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact.js';
import { get } from './api.js';
import { Age, Command, Problem, State, Text, outside, useAnswer } from './parts.js';
import { now, pinned, state } from './store.js';
import { keep } from './stream.js';
import { Detail } from './detail.js';
import { clean, evidence, held, remarks, since, uncertain, where, word } from './words.js';

const STEP = 100;

/**
 * The counts on top: the rank, its words, and whether it is shown when nobody has it.
 * @type {Array<[string, string, boolean?]>}
 */
const COUNTS = [
  ['waiting', 'wait for you', true], ['died_with_work', 'died with work', true], ['failed', 'failed'],
  ['limited', 'limited'], ['lost_claim', 'lost a claim'], ['collides', 'collide'], ['stalled', 'stalled'],
  ['retrying', 'retrying'], ['suspended', 'suspended'], ['finished', 'finished'], ['starting', 'starting'],
  ['busy', 'busy', true], ['idle', 'idle', true],
];
const WORDS = { waiting: 'asks', died_with_work: 'cut off', lost_claim: 'lost' };

/** The counts as one sentence. */
export const counted = (counts) => COUNTS.filter(([rank, , always]) => always || counts[rank])
  .map(([rank, words]) => `${counts[rank] ?? 0} ${words}`).join(', ');

function Counts({ counts, rank, choose }) {
  return html`<ul class="counts" aria-label="Sessions by state">${COUNTS.filter(([name, , always]) => always || counts[name]).map(([name, words]) => html`
    <li key=${name}><button type="button" aria-pressed=${rank === name} class=${counts[name] ? '' : 'none'} onClick=${() => choose(rank === name ? null : name)}>
      <${State} word=${WORDS[name] ?? name} label=${html`<b>${counts[name] ?? 0}</b> ${words}`} /></button></li>`)}</ul>`;
}

/** @typedef {import('schema').Session} Session */

/** The rows in the server's order, but those under the cursor and with the focus stay in their places. */
function settle(rows, still) {
  const settled = [...rows];
  for (const { id, at } of still.filter(Boolean).sort((a, b) => a.at - b.at)) {
    const found = settled.findIndex((row) => row.id === id);
    if (found < 0 || found === at) continue;
    const [row] = settled.splice(found, 1);
    settled.splice(Math.min(at, settled.length), 0, row);
  }
  return settled;
}

/** Each repository's rows together, the repositories in the order of their first rows. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) {
    const name = row.repo ?? row.dir;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups];
}

/** @param {{row: Session, since: Map<string, string>}} shown */
function Holds({ row, since: times }) {
  const all = held(row);
  const wait = row.waits_for?.[0];
  if (!all.length && !wait) return '-';
  return html`<div>${all.length > 0 && html`${row.resume ? 'held ' : ''}<${Text} of=${all[0].key} />${times.has(all[0].key) && !row.resume ? html` <${Age} at=${times.get(all[0].key)} />` : ''}${all.length > 1 ? ` and ${all.length - 1} more` : ''}`}</div>
    ${wait && html`<div class="sub">waits for <${Text} of=${wait.key} /> <${Age} at=${wait.since} /></div>`}`;
}

/** @param {{row: Session, at: number, times: Map<string, string>, chosen: boolean, choose: (row: Session) => void, hold: Function}} shown */
function Row({ row, at, times, chosen, choose, hold }) {
  const name = word(row);
  const said = remarks(row, now());
  const proof = evidence(row);
  const command = row.resume?.command;
  return html`<tr id=${`row-${row.id}`} class=${`${chosen ? 'chosen' : ''} ${name === 'asks' ? 'asks' : ''}`} onClick=${(event) => outside(event) && choose(row)}
      onMouseEnter=${() => hold('mouse', { id: row.id, at })} onfocusin=${() => hold('focus', { id: row.id, at })}>
    <td class="what"><div class="line"><${State} word=${name} label=${uncertain(row) ? `${name}?` : name} /> <span class="age"><${Age} at=${since(row)} /></span></div>
      <div class="sub" title=${said}>${command ? html`<${Command} line=${command} />` : ''}<bdi>${said}</bdi></div></td>
    <th scope="row"><div class="line"><button type="button" class="link" aria-expanded=${chosen} onClick=${() => choose(row)}><${Text} of=${row.handle} /></button></div>
      <div class="sub title" title=${clean(row.title)}><${Text} of=${row.title ?? ''} /></div>
      ${held(row).length + (row.waits_for?.length ?? 0) > 0 && html`<div class="sub narrow"><${Holds} row=${row} since=${times} /></div>`}</th>
    <td><div class="line" title=${where(row)}><${Text} of=${where(row)} /></div><div class="sub"><${Text} of=${row.place ?? ''} /></div></td>
    <td class="keys"><${Holds} row=${row} since=${times} /></td>
    <td class="proof"><div class="line" title=${proof.text}><bdi>${proof.text}</bdi></div><div class="sub"><${Age} at=${proof.at} /> ago</div></td>
  </tr>`;
}

const Head = () => html`<thead><tr><th scope="col" class="what">State</th><th scope="col">Session</th><th scope="col">Where</th>
  <th scope="col" class="keys">Holds</th><th scope="col" class="proof">Evidence</th></tr></thead>`;

/** What the table does so that nothing moves away from a cursor or the focus. */
function useStill() {
  const still = useRef({ mouse: null, focus: null });
  const body = useRef(null);
  const before = useRef(null);
  // While the page is drawn: where the row under the cursor is, and what has the focus.
  const row = still.current.mouse && document.getElementById(`row-${still.current.mouse.id}`);
  before.current = { row, top: row?.getBoundingClientRect().top, focus: document.activeElement };
  useLayoutEffect(() => {
    const { row, top, focus } = before.current;
    if (row?.isConnected) {
      const moved = row.getBoundingClientRect().top - top;
      if (moved) scrollBy(0, moved);
    }
    if (focus?.isConnected && focus !== document.activeElement && body.current?.contains(focus)) focus.focus({ preventScroll: true });
  });
  const hold = (by, what) => { still.current[by] = what; };
  return { body, hold, pins: () => [still.current.mouse, still.current.focus] };
}

function Filters({ filter, change, rows, missions }) {
  const names = (of) => [...new Set(rows.map(of).filter(Boolean))].sort();
  const select = (name, label, options) => html`<label>${label} <select value=${filter[name] ?? ''} onChange=${(event) => change({ ...filter, [name]: event.target.value || null })}>
    <option value="">all</option>${options.map((one) => html`<option value=${one}>${clean(one)}</option>`)}</select></label>`;
  return html`<div class="filters" role="group" aria-label="Filters">
    ${select('repo', 'Repository', names((row) => row.repo))} ${select('agent', 'Agent', names((row) => row.agent))}
    ${missions.length > 0 && select('mission', 'Mission', missions.map((one) => one.id))}
    <label><input type="checkbox" checked=${filter.group} onChange=${(event) => change({ ...filter, group: event.target.checked })} /> Group by repository</label></div>`;
}

export function Fleet({ chosen, go }) {
  const [filter, change] = useState({ repo: null, agent: null, mission: null, rank: null, group: false });
  const [drawn, setDrawn] = useState(STEP);
  const [claims] = useAnswer('claims', { limit: '1000' }, (event) => event.key);
  const [missions] = useAnswer('missions', {}, (event) => event.kind.startsWith('mission'));
  const [mission] = useAnswer(filter.mission && `missions/${encodeURIComponent(filter.mission)}`);
  const { body, hold, pins } = useStill();
  const isFiltered = filter.repo || filter.agent || filter.mission || filter.rank;
  useEffect(() => { if (state.more && (isFiltered || drawn > state.sessions.length)) keep(isFiltered ? 10_000 : drawn); });
  const times = new Map((claims?.claims ?? []).map((claim) => [claim.key, claim.acquired_at]));
  const members = filter.mission && new Set((mission?.participants ?? []).map((one) => one.session.handle));
  const fits = (row) => (!filter.repo || row.repo === filter.repo) && (!filter.agent || row.agent === filter.agent)
    && (!filter.rank || row.rank === filter.rank) && (!members || members.has(row.handle));
  const top = pinned();
  const all = state.sessions.filter(fits);
  const ordered = top.size ? [...all.filter((row) => top.has(row.id)), ...all.filter((row) => !top.has(row.id))] : all;
  const rows = (filter.group ? ordered : settle(ordered, pins())).slice(0, drawn);
  const choose = (row) => go('fleet', row.handle === chosen ? null : row.handle);
  let at = 0;
  const line = (row) => html`<${Row} key=${row.id} row=${row} at=${at++} times=${times} chosen=${row.handle === chosen || row.id === chosen} choose=${choose} hold=${hold} />`;
  const left = all.length - rows.length + state.more;
  return html`<div class=${chosen ? 'split' : ''}>
    <section aria-label="Fleet">
      <${Counts} counts=${state.counts} rank=${filter.rank} choose=${(rank) => change({ ...filter, rank })} />
      <${Filters} filter=${filter} change=${change} rows=${state.sessions} missions=${missions?.missions ?? []} />
      ${state.sessions.length === 0 && state.loaded ? html`<${Nobody} unmanaged=${state.unmanaged} />` : html`
      <div class="scroll"><table class="fleet" aria-label="Sessions"><${Head} />
        ${filter.group ? grouped(rows).map(([name, group]) => html`<tbody key=${name} ref=${body} onMouseLeave=${() => hold('mouse', null)}>
            <tr class="group"><th colspan="5" scope="rowgroup"><${Text} of=${name} /> <span class="sub">${group.length}</span></th></tr>${group.map(line)}</tbody>`)
          : html`<tbody key="all" ref=${body} onMouseLeave=${() => hold('mouse', null)} onfocusout=${(event) => !body.current?.contains(event.relatedTarget) && document.hasFocus() && event.relatedTarget && hold('focus', null)}>${rows.map(line)}</tbody>`}
      </table></div>
      ${!rows.length && html`<p class="empty">No session fits these filters.</p>`}
      ${left > 0 && html`<p><button type="button" onClick=${() => setDrawn(drawn + STEP)}>Show ${Math.min(STEP, left)} more of ${left}</button></p>`}
      ${state.unmanaged.length > 0 && html`<h2>Agents that are not registered</h2><${Unmanaged} all=${state.unmanaged} />`}`}
      <${Ended} go=${go} />
    </section>
    ${chosen && html`<${Detail} key=${chosen} name=${chosen} close=${() => go('fleet', null)} />`}</div>`;
}

const Unmanaged = ({ all }) => html`<div class="scroll"><table aria-label="Agents that are not registered">
  <thead><tr><th scope="col">Agent</th><th scope="col">Directory</th><th scope="col">Why</th><th scope="col">Register it</th></tr></thead>
  <tbody>${all.map((one) => html`<tr key=${one.pid}><th scope="row"><${Text} of=${one.agent} /> (pid ${one.pid})</th><td><${Text} of=${one.dir ?? '-'} /></td>
    <td><${Text} of=${one.why} /></td><td><${Command} line=${`tenure adopt ${one.pid}`} /></td></tr>`)}</tbody></table></div>`;

/** The first look: nobody is registered yet. */
const Nobody = ({ unmanaged }) => html`<div class="nobody"><h2>No sessions yet</h2>
  ${unmanaged.length > 0 ? html`<p>${unmanaged.length === 1 ? 'One agent runs' : `${unmanaged.length} agents run`} on this machine without being registered.</p><${Unmanaged} all=${unmanaged} />`
    : html`<p>No coding agent was found running on this machine.</p>`}
  <${Hooks} /></div>`;

const INSTALLED = { installed: 'installed', outdated: 'outdated', not_installed: 'not installed', not_found: 'not found', unreadable: 'cannot be read' };

/** Which agents register their sessions, as `tenure install --check` says it, and the command where one helps. */
function Hooks() {
  const [answer, error] = useAnswer('agents', {}, () => false);
  /** @type {import('schema').AgentHooks[]} */
  const agents = answer?.agents ?? [];
  if (!answer) return error ? html`<${Problem} error=${error} />` : html`<p>Looking for agents…</p>`;
  if (!agents.length) return html`<p>No coding agent is installed here. Set one up before you install it: <${Command} line="tenure install claude" /></p>`;
  return html`<h3>Hooks</h3><p>An agent with hooks registers its sessions by itself.</p>
    <div class="scroll"><table aria-label="Hooks of agents"><thead><tr><th scope="col">Agent</th><th scope="col">Hooks</th><th scope="col">Settings</th><th scope="col">What helps</th></tr></thead>
    <tbody>${agents.map((one) => html`<tr key=${one.agent + one.file}><th scope="row"><${Text} of=${one.agent} /></th>
      <td><${State} word=${one.state} label=${INSTALLED[one.state] ?? one.state} /></td><td><${Text} of=${one.file} /></td>
      <td>${one.command ? html`<${Command} line=${one.command} />` : html`<${Text} of=${one.notes.join('; ') || '-'} />`}</td></tr>`)}</tbody></table></div>
    ${agents.some((one) => one.command) ? html`<p>All of them: <${Command} line="tenure install" /></p>` : html`<p>Start an agent: its session is shown here.</p>`}`;
}

/** Sessions that ended, read when somebody wants them. */
function Ended({ go }) {
  const [pages, setPages] = useState(null);
  const [error, setError] = useState(null);
  const more = async () => {
    const after = pages?.next;
    try {
      const page = await get('sessions', { all: 'true', state: 'ended,dead', limit: String(STEP), after });
      setPages({ rows: [...(pages?.rows ?? []), ...page.sessions], next: page.next });
      setError(null);
    } catch (failed) {
      setError(failed);
    }
  };
  return html`<div class="ended"><p><button type="button" aria-expanded=${pages !== null} onClick=${() => (pages ? setPages(null) : more())}>${pages ? 'Hide ended sessions' : 'Show ended sessions'}</button></p>
    <${Problem} error=${error} />
    ${pages && (pages.rows.length ? html`<div class="scroll"><table aria-label="Ended sessions"><thead><tr><th scope="col">Session</th><th scope="col">Title</th><th scope="col">Where</th><th scope="col">Ended</th><th scope="col">Why</th></tr></thead>
      <tbody>${pages.rows.map((row) => html`<tr key=${row.id}><th scope="row"><button type="button" class="link" onClick=${() => go('fleet', row.handle)}><${Text} of=${row.handle} /></button></th>
        <td><${Text} of=${row.title ?? '-'} /></td><td><${Text} of=${where(row)} /></td><td><${Age} at=${row.ended_at ?? row.last_seen_at} /></td><td><${Text} of=${row.end_reason ?? row.why} /></td></tr>`)}</tbody></table></div>
      ${pages.next && html`<p><button type="button" onClick=${more}>Show ${STEP} more</button></p>`}` : html`<p class="empty">No session has ended.</p>`)}</div>`;
}

