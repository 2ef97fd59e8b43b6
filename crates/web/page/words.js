// Sessions in words, as the terminal has them: what one does, what it asks, what it collides with.

/** @typedef {import('schema').Session} Session */

/** @type {Array<[number, string]>} */
const SECONDS = [[86_400, 'd'], [3_600, 'h'], [60, 'm']];

/** `3m`, `2h`: one unit. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  for (const [length, unit] of SECONDS) if (seconds >= length) return `${Math.floor(seconds / length)}${unit}`;
  return `${seconds}s`;
}

// What could change how the text around it is read: controls, and marks that turn its direction.
const HIDDEN = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Text of an agent on one line. */
export const clean = (text) => String(text ?? '').replace(HIDDEN, ' ');

/** A mark beside each word; never alone. */
const MARKS = {
  asks: '?', waiting: '?', failed: '✗', limited: '⏲', 'cut off': '✝', lost: '⇄', collides: '⚠', stalled: '…',
  retrying: '↻', suspended: '‖', finished: '✓', starting: '○', busy: '●', idle: '–', ended: '■', dead: '✝',
  unknown: '¿', held: '●', suspect: '¿', free: '○', done: '✓', running: '●', queued: '○', parked: '‖', begun: '●',
  installed: '✓', outdated: '⚠', not_installed: '✗', not_found: '–', unreadable: '✗',
};
export const mark = (word) => MARKS[word] ?? '·';

/** @param {Session} row */
const isCutOff = (row) => Boolean(row.resume) || (row.end_kind === 'cut_off' && row.state === 'dead');

/** What its row begins with. @param {Session} row */
export function word(row) {
  if (row.state === 'live' && row.activity === 'waiting' && row.asks !== null) return 'asks';
  if (row.finished) return 'finished';
  if (isCutOff(row)) return 'cut off';
  return row.state === 'live' ? row.activity ?? row.state : row.state;
}

/** How urgent a word is: it chooses the colour beside the mark. */
export function tone(word) {
  if (['asks', 'waiting'].includes(word)) return 'asks';
  if (['failed', 'cut off', 'lost', 'dead', 'suspect', 'unreadable'].includes(word)) return 'bad';
  if (['limited', 'collides', 'stalled', 'retrying', 'suspended', 'unknown', 'parked', 'outdated', 'not_installed'].includes(word)) return 'warn';
  if (['busy', 'starting', 'held', 'running', 'begun'].includes(word)) return 'busy';
  return 'calm';
}

/** Since when it is in its state. @param {Session} row */
export function since(row) {
  if (row.ended_at) return row.ended_at;
  if (row.state === 'stalled') return row.last_seen_at;
  return row.activity_since ?? row.started_at;
}

/** Whether the state may have changed without a report. @param {Session} row */
export const uncertain = (row) => row.state === 'live' && row.activity && row.activity_by?.certain === false;

/** What a person must know beside the word. @param {Session} row @param {number} now */
export function remarks(row, now) {
  const all = [];
  const names = (list) => list.map(clean).join(', ');
  if (word(row) === 'asks' && row.asks) all.push(clean(row.asks));
  if (row.state === 'live' && ['failed', 'limited', 'retrying'].includes(row.activity)) {
    const until = row.activity_until && Date.parse(row.activity_until);
    if (until > now) all.push(`${row.activity === 'limited' ? 'until' : 'next try at'} ${clock(row.activity_until)}`);
    if (row.activity_why) all.push(clean(row.activity_why));
  }
  if (row.lost?.length) all.push(`lost ${names(row.lost)}`);
  if (row.twins?.length) all.push(`twin of ${names(row.twins)}`);
  const others = (row.collides_with ?? []).filter((other) => !row.twins?.includes(other));
  if (others.length) all.push(`collides with ${names(others)}`);
  if (row.daemon) all.push('the daemon finishes its turn');
  if (row.resume?.problem) all.push(`cannot be resumed: ${clean(row.resume.problem)}`);
  if (row.survivors?.length) {
    const count = row.survivors.length;
    all.push(count === 1 ? '1 process still runs' : `${count} processes still run`);
  }
  return all.join(' · ');
}

/** The evidence for a state and its time. @param {Session} row */
export function evidence(row) {
  const by = row.activity_by;
  if (row.state === 'live' && by) return { text: clean(by.source), at: by.at };
  return { text: clean(row.why), at: row.last_seen_at };
}

/** Where it works: the repository with its branch, or the directory. @param {Session} row */
export function where(row) {
  const host = row.host ? `${clean(row.host)}:` : '';
  const branch = row.branch && clean(row.branch);
  if (row.repo && !row.repo.startsWith('/')) return `${host}${clean(row.repo)} (${branch ?? 'no branch'})`;
  return `${host}${clean(row.dir)}${branch ? ` (${branch})` : ''}`;
}

/** What it holds; of one that was cut off, what it would be granted again. @param {Session} row */
export const held = (row) => [...(row.claims ?? []), ...(row.resume?.held ?? [])];

/** A time on this machine's clock, with the day where it is not today. */
export function clock(at) {
  const time = new Date(at);
  const short = time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });
  const today = new Date().toDateString() === time.toDateString();
  return today ? short : `${time.toLocaleDateString([], { month: 'short', day: 'numeric' })} ${short}`;
}

/** US dollars; only some agents report them. @param {number | null | undefined} cost */
export const money = (cost) => (cost === null || cost === undefined ? '-' : `$${cost.toFixed(2)}`);

/** A command line for a hint. @param {import('schema').Hint} hint */
export const command = (hint) => ['tenure', hint.verb, ...(hint.args ?? [])].filter(Boolean).join(' ');
