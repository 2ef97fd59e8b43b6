// One session in full, and what a person can do about it.

import { html, useEffect, useRef } from './vendor/htm-preact.js';
import { part } from './api.js';
import { Events } from './log.js';
import { Age, Command, Problem, State, Text, may, open, useAnswer } from './parts.js';
import { pin, pinned, state } from './store.js';
import { clean, uncertain, where, word } from './words.js';

/** Frees a claim for its holder; it fails if somebody else has it by then. */
export const free = (key, epoch, holder) => open({
  title: `Free ${clean(key)}`, verb: 'Free', path: `claims/${part(key)}/free`, body: { holder: holder.id, epoch },
  says: `${clean(holder.handle)} loses it and is told. Anybody can claim it then.`, done: `${clean(key)} is free`,
});

/** Hands a claim to another live session. */
export function give(key, epoch, holder) {
  const others = state.sessions.filter((row) => row.state === 'live' && row.id !== holder.id);
  open({
    title: `Give ${clean(key)}`, verb: 'Give', path: `claims/${part(key)}/give`, body: { holder: holder.id, epoch },
    says: `${clean(holder.handle)} loses it to the session that you choose. Both are told.`,
    fields: [{ name: 'to', label: 'To', options: others.map((row) => row.handle) }], done: `${clean(key)} was given`,
  });
}

/** @param {import('schema').Session} row @returns {Array<[string, any]>} */
const acts = (row) => /** @type {any} */ ([
  row.state !== 'ended' && ['Tell…', {
    title: `Tell ${row.handle}`, verb: 'Send', path: `sessions/${part(row.id)}/tell`, reason: false,
    says: 'It sees the message at its next prompt or tool call.', done: `the message to ${row.handle} is sent`,
    fields: [{ name: 'message', label: 'Message', lines: 4 }],
  }],
  row.resume && ['Dismiss…', {
    title: `Dismiss ${row.handle}`, verb: 'Dismiss', path: `sessions/${part(row.id)}/dismiss`,
    says: 'It is taken off the list of sessions that were cut off.', done: `${row.handle} is dismissed`,
  }],
  !row.ended_at && ['End…', {
    title: `End ${row.handle}`, verb: 'End', path: `sessions/${part(row.id)}/end`,
    says: 'Its claims are free then. Its process goes on running, but is no session any more.', done: `${row.handle} is ended`,
  }],
].filter(Boolean));

/** What a session asks, whole, and the answers to it: each for the question that is shown here, by its id. */
function Question({ of, session }) {
  const answer = { path: `sessions/${part(session.id)}/answer`, reason: false, done: `the answer to ${clean(session.handle)} is sent` };
  const shown = of.shown.map(clean).join('\n');
  const deny = { ...answer, shown, title: `Deny what ${clean(session.handle)} asks`, verb: 'Deny', body: { id: of.id, answer: 'deny' },
    says: 'Nothing runs. The model reads what you write.', fields: [{ name: 'message', label: 'Message (optional)', lines: 2, optional: true }] };
  const allow = { ...answer, shown, title: `Allow one call of ${clean(of.tool)}`, verb: 'Allow', body: { id: of.id, answer: 'allow' },
    says: `${clean(session.handle)} may do this once, in ${clean(of.dir)}.` };
  const texts = { ...answer, title: `Answer ${clean(session.handle)}`, verb: 'Answer', body: { id: of.id },
    says: 'One of the answers that it offers, or your own words.',
    fields: of.questions.map((one, at) => ({ name: `text${at}`, label: `${clean(one.question)} (${one.options.map(clean).join(', ')})` })),
    shape: (values) => ({ texts: of.questions.map((_, at) => values[`text${at}`]) }) };
  const both = /** @type {any} */ ([of.kind === 'permission' ? ['Allow…', allow] : ['Answer…', texts], ['Deny…', deny]]);
  return html`<section aria-label="Question"><h3>Asks for ${of.kind === 'permission' ? html`permission for <${Text} of=${of.tool} />` : 'an answer'}</h3>
    <p>in <${Text} of=${of.dir} /></p><pre class="asked">${shown}</pre>
    <p class="buttons">${both.map(([label, act]) => html`<button type="button" key=${label} onClick=${() => open(act)}>${label}</button>`)}</p></section>`;
}

const counted = (count, one) => `${count} ${one}${count === 1 ? '' : 's'}`;

/** How a worktree stands: what is not committed, and what it has beyond the branch that others build on. */
function Changes({ of }) {
  const said = [];
  if (of.conflicts) said.push(`${counted(of.conflicts, 'file')} in conflict`);
  if (of.uncommitted) said.push(`${counted(of.uncommitted, 'file')} not committed`);
  if (of.files) said.push(`${counted(of.files, 'file')} +${of.added} −${of.removed}`);
  if (of.ahead) said.push(`${of.ahead} ahead`);
  if (of.behind) said.push(`${of.behind} behind`);
  if (of.pushed === false) said.push('not pushed');
  if (said.length === 0) said.push('none');
  return html`${said.join(', ')}${of.base && html`, against <${Text} of=${of.base} />`}`;
}

/** How often the questions of a session that waits are asked for again, in milliseconds: they are files, which no event announces. */
const QUESTIONS_EVERY = 2_000;

export function Detail({ name, close }) {
  const heading = useRef(null);
  const row = state.sessions.find((one) => one.handle === name || one.id === name);
  const concerns = (event) => [event.session, event.actor].some((one) => one && (one.handle === name || one.id === name));
  const [answer, error] = useAnswer(`sessions/${part(name)}`, {}, concerns);
  const [log] = useAnswer('events', { session: name, limit: '30' }, concerns);
  const [stands] = useAnswer(`sessions/${part(name)}/changes`, {}, concerns);
  const waits = row?.activity === 'waiting' && !row.host && may('act') && may('logs');
  const [asked] = useAnswer(waits ? `sessions/${part(name)}/questions` : '', {}, concerns,
    { stamp: `${row?.asks} ${row?.activity_since}`, every: QUESTIONS_EVERY });
  /** @type {import('schema').Session | undefined} */
  const session = answer ? { ...answer.session, ...row } : row;
  useEffect(() => { heading.current?.focus(); }, [Boolean(session)]);
  const leave = (event) => {
    if (event.key !== 'Escape' || state.act) return;
    close();
    const back = document.querySelector(`#row-${CSS.escape(session?.id ?? '')} button.link`);
    if (back instanceof HTMLElement) setTimeout(() => back.focus());
  };
  if (!session) return html`<aside class="detail" aria-label="Session"><button type="button" onClick=${close}>Close</button><${Problem} error=${error} />${!error && html`<p>…</p>`}</aside>`;
  const fields = [
    ['state', html`<${State} word=${word(session)} label=${uncertain(session) ? `${word(session)}?` : word(session)} />`],
    ['evidence', html`<${Text} of=${session.why} />`],
    ['title', session.title && html`<${Text} of=${session.title} />`],
    ['asks', session.asks && html`<${Text} of=${session.asks} />`],
    ['agent', html`<${Text} of=${session.agent} />`],
    ['host', session.host ? html`<${Text} of=${session.host} />, not the machine of this server` : state.host && html`<${Text} of=${state.host} />, where this server runs`],
    ['where', html`<${Text} of=${where(session)} />`],
    ['directory', html`<${Text} of=${session.dir} />`],
    ['window', session.place && html`<${Text} of=${session.place} />`],
    ['started', html`<${Age} at=${session.started_at} /> ago`],
    ['last seen', html`<${Age} at=${session.last_seen_at} /> ago`],
    ['ended', session.ended_at && html`<${Age} at=${session.ended_at} /> ago: <${Text} of=${session.end_reason ?? session.end_kind ?? ''} />`],
    ['process', session.process?.pid && html`pid ${session.process.pid}${session.process.life > 1 ? `, process ${session.process.life} of this session` : ''}${session.process.verified ? '' : ', not verified'}`],
    ['parent', session.parent && html`<${Text} of=${session.parent} />`],
    ['conversations', session.native_ids?.length > 0 && html`<ol class="plain">${session.native_ids.map((one) => html`<li key=${one.native_id}><code><${Text} of=${one.native_id} /></code> ${one.owned ? '' : '(visited) '}<${Age} at=${one.at} /></li>`)}</ol>`],
    ['changes', stands?.changes && html`<${Changes} of=${stands.changes} />`],
    ['asked', session.last_words?.prompt && html`<${Text} of=${session.last_words.prompt} />`],
    ['said', session.last_words?.words && html`<${Text} of=${session.last_words.words} />`],
    ['still runs', session.survivors?.length > 0 && html`<ul class="plain">${session.survivors.map((one) => html`<li key=${one.pid}>pid ${one.pid} <code><${Text} of=${one.command ?? ''} /></code></li>`)}</ul>`],
    ...Object.entries(answer?.meta ?? {}).map(([key, value]) => [clean(key), html`<${Text} of=${value} />`]),
  ];
  const command = session.resume?.command ?? answer?.command;
  return html`<aside class="detail" aria-labelledby="detail-head" onKeyDown=${leave}>
    <div class="head"><h2 id="detail-head" tabindex="-1" ref=${heading}><${Text} of=${session.handle} /></h2>
      <button type="button" onClick=${() => pin(session.id)} aria-pressed=${pinned().has(session.id)}>Pin</button>
      <button type="button" onClick=${close} aria-label="Close the details">Close</button></div>
    <${Problem} error=${error} />
    ${command && html`<p>Resume it: <${Command} line=${command} /></p>`}
    ${may('act') && html`<p class="buttons">${acts(session).map(([label, act]) => html`<button type="button" key=${label} onClick=${() => open(act)}>${label}</button>`)}</p>`}
    ${waits && asked?.questions.map((one) => html`<${Question} key=${one.id} of=${one} session=${session} />`)}
    <dl>${fields.filter(([, value]) => value).map(([label, value]) => html`<div key=${label}><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
    ${session.claims?.length > 0 && html`<h3>Holds</h3><table aria-label="Claims of this session"><thead><tr><th scope="col">Key</th><th scope="col">Epoch</th><th scope="col">Acts</th></tr></thead>
      <tbody>${session.claims.map((claim) => html`<tr key=${claim.key}><th scope="row"><${Text} of=${claim.key} /></th><td>${claim.epoch}</td>
        <td>${may('act') && html`<button type="button" class="small" aria-label=${`Free ${clean(claim.key)}`} onClick=${() => free(claim.key, claim.epoch, session)}>Free…</button>
          <button type="button" class="small" aria-label=${`Give ${clean(claim.key)}`} onClick=${() => give(claim.key, claim.epoch, session)}>Give…</button>`}</td></tr>`)}</tbody></table>`}
    <h3>Log</h3><${Events} all=${[...(log?.events ?? [])].reverse()} brief /></aside>`;
}
