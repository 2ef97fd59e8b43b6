// Jobs of the queue, and the deliveries that asked for them.

import { html, useState } from './vendor/htm-preact.js';
import { Age, Problem, State, Table, Text, useAnswer } from './parts.js';

const concerns = (event) => ['job', 'delivery', 'run', 'queue', 'dispatch'].some((kind) => event.kind.startsWith(kind));

/** @type {Array<[string, (job: import('schema').Job) => any, string?]>} */
const JOBS = [
  ['Job', (job) => html`<${Text} of=${job.id} />`],
  ['State', (job) => html`<${State} word=${job.outcome ?? job.state} />`],
  ['Agent', (job) => html`<${Text} of=${job.role ? `${job.agent} as ${job.role}` : job.agent} />`],
  ['Item', (job) => html`<${Text} of=${job.item} />`],
  ['Rule', (job) => html`<${Text} of=${job.rule ?? 'a command'} />`],
  ['Trust', (job) => html`<${Text} of=${job.trust} />`],
  ['Asked', (job) => html`<${Age} at=${job.created_at} />`],
  ['Why', (job) => html`<${Text} of=${job.unpublished ?? job.parked?.why ?? job.why ?? job.failure ?? ''} />`],
];

/** @type {Array<[string, (one: import('schema').Delivery) => any, string?]>} */
const DELIVERIES = [
  ['Delivery', (one) => one.id],
  ['Verdict', (one) => html`<${Text} of=${one.verdict} />`],
  ['Rule', (one) => html`<${Text} of=${one.rule ?? '-'} />`],
  ['Event', (one) => html`<${Text} of=${one.event} />`],
  ['Item', (one) => html`<${Text} of=${one.item ?? one.repo ?? '-'} />`],
  ['Author', (one) => html`<${Text} of=${one.author ?? '-'} />`],
  ['Received', (one) => html`<${Age} at=${one.received_at} />`],
  ['Why', (one) => html`<${Text} of=${one.why} />`],
];

export function Queue() {
  const [all, setAll] = useState(false);
  const [jobs, error] = useAnswer('jobs', { limit: '1000', all: all && 'true' }, concerns);
  const [deliveries, late] = useAnswer('deliveries', { limit: '200' }, concerns);
  return html`<section aria-label="Queue and deliveries"><h2>Queue</h2>
    <p class="filters"><label><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.target.checked)} /> Also ended ones</label></p>
    <${Problem} error=${error} />
    <${Table} label="Jobs" rows=${jobs?.jobs ?? []} id=${(job) => job.id} empty=${jobs ? 'The queue is empty.' : '…'} columns=${JOBS} />
    <h2>Deliveries</h2><${Problem} error=${late} />
    <${Table} label="Deliveries" rows=${deliveries?.deliveries ?? []} id=${(one) => one.id} empty=${deliveries ? 'No deliveries.' : '…'} columns=${DELIVERIES} /></section>`;
}
