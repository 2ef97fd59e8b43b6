// What the page knows, and who is told when that changes. The server decides the order; nothing here does.

/** How many events of the log a page keeps. */
const MAX_LOG = 1000;

/**
 * @type {{link: string, heard: number, beat: number, skew: number, sessions: import('schema').Session[], unmanaged: import('schema').Unmanaged[],
 *   more: number, counts: Record<string, number>, loaded: boolean, away: string | null, log: import('schema').Event[], rows: number,
 *   scopes: string[] | null, host: string | null, act?: any, said?: string | null, problem?: any}}
 */
export const state = {
  /** `starting`, `live`, `lost`, `login` (a new one is needed) or `over` (the server ended). */
  link: 'starting',
  /** When the server was last heard of, by this machine's clock. */
  heard: 0,
  /** How often the server says that it is there, in milliseconds; until it told, what it usually is. */
  beat: 10_000,
  /** By how much the server's clock is behind this one. */
  skew: 0,
  sessions: [],
  unmanaged: [],
  more: 0,
  counts: {},
  /** Whether there ever was an answer. */
  loaded: false,
  /** Why the server cannot read its store, if so. */
  away: null,
  log: [],
  /** How many rows the stream keeps. */
  rows: 100,
  /** The scopes of this login, once known. */
  scopes: null,
  /** The machine whose server answers, once known. */
  host: null,
};

const views = new Set();
const followers = new Set();

/** Calls `then` after each change; answers how to stop that. */
export function watch(then) {
  views.add(then);
  return () => views.delete(then);
}

/** Calls `then` with each new event of the log, or with null where some may be missing. */
export function follow(then) {
  followers.add(then);
  return () => followers.delete(then);
}

export function set(change) {
  Object.assign(state, change);
  for (const then of views) then();
}

/** How long the server may say nothing before the line counts as cut: two and a half of its beats. */
export const silent = () => 2.5 * state.beat;

/** After how long the age of the data is shown, and a visible page asks again: one beat did not come. */
export const doubted = () => 1.2 * state.beat;

/** The server's time, drawn by this machine's clock. */
export const now = () => Date.now() - state.skew;

/** Takes a message of the stream. */
export function apply(name, data) {
  if (name === 'snapshot') {
    const { sessions, unmanaged, more, counts } = data;
    const skew = Date.now() - Date.parse(data.at);
    const beat = data.beat_ms;
    set({ sessions, unmanaged, more, counts, skew, beat, loaded: true, away: null });
    tell(null);
  } else if (name === 'fleet') {
    const known = new Map(state.sessions.map((row) => [row.id, row]));
    for (const row of data.changed) known.set(row.id, row);
    const sessions = data.order.map((id) => known.get(id)).filter(Boolean);
    set({ sessions, unmanaged: data.unmanaged, more: data.more, counts: data.counts, away: null });
  } else if (name === 'event') {
    const last = state.log.at(-1);
    if (last && last.cursor >= data.event.cursor) return;
    const log = [...state.log, data.event];
    if (log.length > MAX_LOG) log.splice(0, log.length - MAX_LOG);
    set({ log });
    tell(data.event);
  } else if (name === 'reset') {
    set({ log: [] });
  } else if (name === 'error') {
    set({ away: data.error.message });
  }
}

function tell(event) {
  for (const then of followers) then(event);
}

/** What another tab needs to show the same. */
export function dump() {
  const { link, heard, beat, skew, sessions, unmanaged, more, counts, loaded, away, log, rows } = state;
  return { link, heard, beat, skew, sessions, unmanaged, more, counts, loaded, away, log, rows };
}

/** Takes over what another tab knows. */
export function restore(shared) {
  set({ ...shared });
  tell(null);
}

/** The sessions that this browser keeps at the top of its list. */
export const pinned = () => new Set(JSON.parse(localStorage.getItem('tenure.pinned') ?? '[]'));

/** Keeps a session there, or no longer. */
export function pin(id) {
  const all = pinned();
  if (!all.delete(id)) all.add(id);
  localStorage.setItem('tenure.pinned', JSON.stringify([...all]));
  set({});
}
