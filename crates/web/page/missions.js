// Missions: who takes part, on what, and who is in whose way.

import { html } from './vendor/htm-preact.js';
import { part } from './api.js';
import { Age, Problem, State, Table, Text, useAnswer } from './parts.js';

const concerns = (event) => event.kind.startsWith('mission') || event.kind.startsWith('session');

export function Missions({ chosen, go }) {
  const [answer, error] = useAnswer('missions', {}, concerns);
  /** @type {Array<[string, (one: import('schema').Mission) => any, string?]>} */
  const columns = [
    ['Mission', (one) => html`<${Text} of=${one.id} />`],
    ['Live', (one) => `${one.live} of ${one.participants}`, 'number'],
    ['Active on a focus', (one) => one.driving, 'number'],
    ['Last active', (one) => html`<${Age} at=${one.last_activity_at} />`],
    ['Created', (one) => html`<${Age} at=${one.created_at} />`],
  ];
  return html`<section aria-label="Missions"><${Problem} error=${error} />
    <${Table} label="Missions" columns=${columns} rows=${answer?.missions ?? []} id=${(one) => one.id} chosen=${chosen}
      choose=${(one) => go('missions', one.id === chosen ? null : one.id)} empty=${answer ? 'No mission.' : '…'} />
    ${chosen && html`<${Roster} key=${chosen} name=${chosen} />`}</section>`;
}

function Roster({ name }) {
  const [answer, error] = useAnswer(`missions/${part(name)}`, {}, concerns);
  /** @type {Array<[string, (one: import('schema').Participant) => any, string?]>} */
  const columns = [
    ['Session', (one) => html`<a href=${`#fleet/${part(one.session.handle)}`}><${Text} of=${one.session.handle} /></a>`],
    ['State', (one) => html`<${State} word=${one.state} />`],
    ['Role', (one) => html`<${Text} of=${one.role} />`],
    ['Focus', (one) => html`<${Text} of=${one.focus ?? '-'} />`],
    ['Drive', (one) => one.drive],
    ['Collides with', (one) => html`<${Text} of=${one.collides_with.join(', ') || '-'} />`],
    ['Last active', (one) => html`<${Age} at=${one.last_activity_at} />`],
  ];
  return html`<h2><${Text} of=${name} /></h2><${Problem} error=${error} />
    <${Table} label="Participants" columns=${columns} rows=${answer?.participants ?? []} id=${(one) => one.participant_id} empty="Nobody takes part." />`;
}
