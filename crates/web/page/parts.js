// What every view is made of: ages, texts of agents, tables, copied commands, the dialog of an act.

import { Component, html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { get, post } from './api.js';
import { follow, now, set, state } from './store.js';
import { clean, command, mark, span, tone } from './words.js';

const ticking = new Set();
setInterval(() => { for (const age of ticking) age.tick(); }, 1_000);

/** How long ago something happened; only its own text changes. */
export class Age extends Component {
  componentDidMount() { ticking.add(this); }
  componentWillUnmount() { ticking.delete(this); }
  text() { return this.props.at ? span(now() - Date.parse(this.props.at)) : '-'; }
  tick() { if (this.text() !== this.shown) this.setState({}); }
  render() {
    const { at } = this.props;
    this.shown = this.text();
    return at ? html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${this.shown}</time>` : '-';
  }
}

/** Text that somebody else wrote: on one line, isolated, never markup. */
export const Text = ({ of }) => html`<bdi>${clean(of)}</bdi>`;

/** A state as mark and word. */
export const State = ({ word, label }) => html`
  <span class=${`state ${tone(word)}`}><span class="mark" aria-hidden="true">${mark(word)}</span> ${label ?? word}</span>`;

/** A command with a button that copies it. */
export function Command({ line }) {
  const [copied, setCopied] = useState(false);
  const code = useRef(null);
  const copy = async (event) => {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(line);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
    } catch {
      getSelection().selectAllChildren(code.current);
    }
  };
  return html`<span class="command"><code ref=${code}><bdi>${clean(line)}</bdi></code>
    <button type="button" class="small" onClick=${copy} aria-label=${`Copy ${clean(line)}`}>${copied ? 'copied' : 'copy'}</button></span>`;
}

/** What went wrong, with the commands that help. */
export const Problem = ({ error }) => error && html`<div class="problem"><p><${Text} of=${error.message} /></p>
  ${(error.hints ?? []).map((hint) => html`<p>${hint.verb ? html`run <code><bdi>${clean(command(hint))}</bdi></code>` : ''} <${Text} of=${hint.why ?? hint.for} /></p>`)}</div>`;

/** A table; `columns` are [head, cell, class]. A row that is chosen shows more at the side. */
export function Table({ label, columns, rows, id, chosen, choose, empty }) {
  const [drawn, setDrawn] = useState(100);
  if (!rows.length) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll"><table aria-label=${label}>
    <thead><tr>${columns.map(([head, , kind]) => html`<th scope="col" class=${kind}>${head}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, drawn).map((row) => html`
      <tr key=${id(row)} class=${chosen === id(row) ? 'chosen' : ''} onClick=${choose && ((event) => outside(event) && choose(row))}>
        ${columns.map(([, cell, kind], at) => at === 0 && choose
          ? html`<th scope="row" class=${kind}><button type="button" class="link" aria-expanded=${chosen === id(row)} onClick=${() => choose(row)}>${cell(row)}</button></th>`
          : html`<td class=${kind}>${cell(row)}</td>`)}
      </tr>`)}</tbody></table></div>
    ${rows.length > drawn && html`<p><button type="button" onClick=${() => setDrawn(drawn + 100)}>Show 100 more of ${rows.length - drawn}</button></p>`}`;
}

/** Whether a click is for the row, not for a button in it. */
export const outside = (event) => !event.target.closest('button, a, code, input, select');

const NOTHING = { value: null, error: null };

/**
 * An answer of the server, asked again after events that `matters`, when `stamp` changes, and every so many milliseconds
 * if `every` is given.
 */
export function useAnswer(path, parameters = {}, matters = (_event) => true, { stamp = '', every = 0 } = {}) {
  const [answer, setAnswer] = useState(NOTHING);
  const query = JSON.stringify(parameters);
  useEffect(() => {
    if (!path) {
      setAnswer(NOTHING);
      return;
    }
    let ended = false;
    let timer = null;
    let asked = 0;
    const ask = () => {
      timer = null;
      asked = Date.now();
      get(path, JSON.parse(query)).then(
        (value) => ended || setAnswer({ value, error: null }),
        (error) => ended || setAnswer((last) => ({ value: error.status === 404 ? null : last.value, error })),
      );
    };
    const soon = () => {
      // At most once a second, and not while nobody looks.
      if (!timer && !document.hidden) timer = setTimeout(ask, Math.max(50, asked + 1_000 - Date.now()));
    };
    ask();
    const again = every ? setInterval(soon, every) : null;
    const stop = follow((event) => { if (!event || matters(event)) soon(); });
    const seen = () => { if (!document.hidden) soon(); };
    document.addEventListener('visibilitychange', seen);
    return () => {
      ended = true;
      clearTimeout(timer);
      clearInterval(again);
      stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }, [path, query, stamp, every]);
  return [answer.value, answer.error];
}

/** Whether this login may do it. */
export const may = (scope) => state.scopes === null || state.scopes.includes(scope);

/**
 * Opens the dialog of an act.
 * @param act {{title: string, says: unknown, shown?: string, verb: string, path: string, body?: object, reason?: boolean,
 *   fields?: Array<{name: string, label: string, options?: string[], lines?: number, optional?: boolean}>, shape?: (values: any) => object,
 *   done: string}}
 */
export const open = (act) => set({ act });

/** The one dialog: it says what will happen, asks for a reason, and sends it once. */
export function Dialog() {
  const dialog = useRef(null);
  const [error, setError] = useState(null);
  const [sending, setSending] = useState(false);
  const act = state.act;
  useEffect(() => {
    if (!act || dialog.current.open) return;
    setError(null);
    dialog.current.showModal();
    dialog.current.querySelector('textarea, select, input')?.focus();
  }, [act]);
  const close = () => { dialog.current.close(); };
  const send = async (event) => {
    event.preventDefault();
    if (sending) return;
    const values = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ''));
    setSending(true);
    try {
      await post(act.path, { ...act.body, ...(act.shape ? act.shape(values) : values) });
      set({ said: act.done });
      close();
    } catch (failed) {
      setError(failed);
    }
    setSending(false);
  };
  if (!act) return html`<dialog ref=${dialog}></dialog>`;
  const fields = [...(act.fields ?? []), ...(act.reason === false ? [] : [{ name: 'reason', label: 'Reason (logged)', lines: 2 }])];
  return html`<dialog ref=${dialog} aria-labelledby="act-title" onClose=${() => set({ act: null })}>
    <form onSubmit=${send} key=${act.path}>
      <h2 id="act-title">${act.title}</h2>
      <p>${act.says}</p>
      ${act.shown && html`<pre class="asked">${act.shown}</pre>`}
      ${fields.map((field) => html`<label>${field.label} <${Field} field=${field} /></label>`)}
      <${Problem} error=${error} />
      <p class="buttons"><button type="submit" class="main" disabled=${sending}>${act.verb}</button>
        <button type="button" onClick=${close}>Cancel</button></p>
    </form></dialog>`;
}

function Field({ field }) {
  if (field.options) {
    return html`<select name=${field.name} required>${field.options.map((one) => html`<option value=${one}>${clean(one)}</option>`)}</select>`;
  }
  return html`<textarea name=${field.name} required=${!field.optional} maxlength="1000" rows=${field.lines ?? 2}></textarea>`;
}
