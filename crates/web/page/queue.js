// Jobs of the queue, and the deliveries that asked for them.

import { html, useState } from './vendor/htm-preact.js';
import { Age, Problem, State, Table, Text, useAnswer } from './parts.js';

const concerns = (event) => ['job', 'delivery', 'run', 'queue', 'dispatch'].some((kind) => event.kind.startsWith(kind));

export function Queue() {
  const [all, setAll] = useState(false);
  const [jobs, error] = useAnswer('jobs', { limit: '1000', all: all && 'true' }, concerns);
  const [deliveries, late] = useAnswer('deliveries', { limit: '200' }, concerns);
  const waiting = (job) => job.unpublished ?? job.parked?.why ?? job.why ?? job.failure ?? '';
  return html`<section aria-label="Queue and deliveries"><h2>Queue</h2>
    <p class="filters"><label><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} /> Also ended ones</label></p>
    <${Problem} error=${error} />
    <${Table} label="Jobs" rows=${jobs?.jobs ?? []} id=${(job) => job.id} empty=${jobs ? 'The queue is empty.' : '…'} columns=${[
      ['Job', (job) => html`<${Text} of=${job.id} />`],
      ['State', (job) => html`<${State} word=${job.outcome ?? job.state} />`],
      ['Agent', (job) => html`<${Text} of=${job.role ? `${job.agent} as ${job.role}` : job.agent} />`],
      ['Item', (job) => html`<${Text} of=${job.item} />`],
      ['Rule', (job) => html`<${Text} of=${job.rule ?? 'a command'} />`],
      ['Trust', (job) => html`<${Text} of=${job.trust} />`],
      ['Asked', (job) => html`<${Age} at=${job.created_at} />`],
      ['Why', (job) => html`<${Text} of=${waiting(job)} />`],
    ]} />
    <h2>Deliveries</h2><${Problem} error=${late} />
    <${Table} label="Deliveries" rows=${deliveries?.deliveries ?? []} id=${(one) => one.id} empty=${deliveries ? 'No deliveries.' : '…'} columns=${[
      ['Delivery', (one) => html`<${Text} of=${one.id} />`],
      ['Verdict', (one) => html`<${Text} of=${one.verdict ?? one.state ?? '-'} />`],
      ['Rule', (one) => html`<${Text} of=${one.rule ?? '-'} />`],
      ['From', (one) => html`<${Text} of=${[one.forge, one.repo].filter(Boolean).join(' ')} />`],
      ['Event', (one) => html`<${Text} of=${[one.event, one.action].filter(Boolean).join(' ')} />`],
      ['Item', (one) => html`<${Text} of=${one.item ?? '-'} />`],
      ['Received', (one) => html`<${Age} at=${one.received_at ?? one.at} />`],
      ['Why', (one) => html`<${Text} of=${one.why ?? ''} />`],
    ]} /></section>`;
}
