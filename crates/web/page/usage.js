// Usage: the tokens and the money that sessions and runs used, added up by what is chosen.

import { html, useState } from './vendor/htm-preact.js';
import { part } from './api.js';
import { Problem, State, Table, Text, useAnswer } from './parts.js';
import { money } from './words.js';

const concerns = (event) => event.kind.startsWith('run') || event.kind.startsWith('session');
const BY = ['session', 'item', 'day', 'agent'];
const SINCE = ['1d', '7d', '30d'];
/** What belongs to none of them. */
const NONE = { session: 'runs without a session', item: 'no item' };

/** A session is a link, unless it was forgotten: then its name is its id. @param {{row: import('schema').SpendRow, by: string}} of */
function Name({ row, by }) {
  if (row.name === null) return NONE[by] ?? '-';
  if (!row.session || row.session === row.name) return html`<${Text} of=${row.name} />`;
  return html`<a href=${`#fleet/${part(row.name)}`}><${Text} of=${row.name} /></a>`;
}

function Choice({ label, all, chosen, choose }) {
  return html`<label>${label} <select value=${chosen} onChange=${(event) => choose(event.target.value)}>${all.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
}

export function Usage() {
  const [by, setBy] = useState('session');
  const [since, setSince] = useState('7d');
  const [answer, error] = useAnswer('usage', { by, since }, concerns);
  /** @type {import('schema').Spend | undefined} */
  const usage = answer?.usage;
  const total = usage?.rows.length && usage.total;
  /** @type {Array<[string, (row: import('schema').SpendRow) => any, string?]>} */
  const columns = [
    ['Name', (row) => html`<${Name} row=${row} by=${usage.by} />`],
    ['Tokens in', (row) => row.used.tokens_in.toLocaleString(), 'number'],
    ['Tokens out', (row) => row.used.tokens_out.toLocaleString(), 'number'],
    ['Cost', (row) => money(row.used.cost), 'number'],
  ];
  return html`<section aria-label="Usage"><div class="filters" role="group" aria-label="Filters">
      <${Choice} label="By" all=${BY} chosen=${by} choose=${setBy} /><${Choice} label="Since" all=${SINCE} chosen=${since} choose=${setSince} /></div>
    <${Problem} error=${error} />
    ${(usage?.past_budgets ?? []).map((past) => html`<p key=${past}><${State} word="limited" label="used up" />: <${Text} of=${past} /></p>`)}
    ${total ? html`<p>All since ${usage.since}: ${total.tokens_in.toLocaleString()} tokens in, ${total.tokens_out.toLocaleString()} out, cost ${money(total.cost)}</p>` : ''}
    <${Table} label="Usage" columns=${columns} rows=${usage?.rows ?? []} id=${(row) => row.session ?? row.name ?? ''}
      empty=${usage ? `No usage counted since ${usage.since}.` : '…'} /></section>`;
}
