// How the page talks to the server it came from: one token in this origin's storage, sent as a header.

const KEY = 'tenure.token';
const waiting = new Set();

/** The token of this browser's login, or null. */
export const token = () => localStorage.getItem(KEY);

/** Calls `then` each time a login brings a new token, here or in another tab. */
export function onToken(then) {
  waiting.add(then);
}

const announce = () => { if (token()) for (const then of waiting) then(); };
addEventListener('storage', (event) => { if (event.key === KEY) announce(); });

/** Removes a token that the server refused; one that came meanwhile stays. */
export function forget(refused) {
  if (token() === refused) localStorage.removeItem(KEY);
}

/** An error as the server describes it: kind, message and hints. */
export class Problem extends Error {
  constructor(status, error) {
    super(error?.message ?? `the server answered ${status}`);
    this.kind = error?.kind ?? 'unknown';
    this.status = status;
    this.hints = error?.hints ?? [];
  }
}

/** @param {RequestInit & {headers?: Record<string, string>}} [options] */
export async function request(path, options = {}) {
  const used = token();
  const headers = { ...options.headers };
  if (used) headers.Authorization = `Bearer ${used}`;
  const response = await fetch(path, { ...options, headers, cache: 'no-store' });
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  const problem = new Problem(response.status, body?.error);
  if (response.status === 401 && used) forget(used);
  throw problem;
}

export async function get(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const all = query.toString();
  return (await request(`/api/v1/${path}${all && `?${all}`}`)).json();
}

export async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' };
  const response = await request(`/api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.json();
}

/** Exchanges the code that `tenure serve --open` put into the address; answers the first snapshot. */
export async function login() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (!code) return null;
  // The code is in no history and no copied address.
  history.replaceState(null, '', location.pathname);
  const answer = await post('login', { code });
  localStorage.setItem(KEY, answer.token);
  announce();
  return answer.first;
}

/** Part of an address. */
export const part = (text) => encodeURIComponent(text);
