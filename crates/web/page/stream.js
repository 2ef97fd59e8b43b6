// One stream for all tabs of a browser: the tab that has the lock reads it and tells the others.

import { forget, login, onToken, request, token } from './api.js';
import { apply, doubted, dump, restore, set, silent, state } from './store.js';

const RETRY = [500, 1_000, 2_000, 5_000];

const others = new BroadcastChannel('tenure');
const tell = (message) => others.postMessage(message);

/** Set while this tab reads the stream. */
let leader = null;

/** Begins: exchanges the code of a login, then follows or reads the stream. */
export async function start() {
  others.onmessage = ({ data }) => receive(data);
  document.addEventListener('visibilitychange', look);
  addEventListener('online', look);
  setInterval(look, 5_000);
  let problem = null;
  const first = await login().catch((error) => { problem = error; return null; });
  if (first) {
    set({ heard: Date.now(), link: 'live' });
    apply('snapshot', first);
  } else if (!token()) {
    set({ link: 'login', problem });
  }
  tell({ hello: true });
  lead(false);
}

/** Becomes the tab that reads the stream as soon as no other does; with `steal`, at once. */
function lead(steal) {
  if (!navigator.locks) {
    // Not a secure context: each tab reads its own.
    leader = new Leader();
    leader.run();
    return;
  }
  const options = steal ? { steal: true } : {};
  const held = navigator.locks.request('tenure.stream', options, () => {
    leader = new Leader();
    return leader.run();
  });
  // Another tab took over: this one waits for its turn again.
  held.catch(() => {
    leader?.end();
    leader = null;
    lead(false);
  });
}

/** Checks whether the stream is still alive. */
function look() {
  const since = Date.now() - state.heard;
  if (leader) {
    leader.look(since);
  } else if (!document.hidden && state.link !== 'login' && since > silent() + RETRY.at(-1)) {
    // The tab that reads it does not answer.
    lead(true);
  } else if (!document.hidden && since > doubted()) {
    tell({ look: true });
  }
}

function receive(message) {
  if (leader) {
    if (message.hello) tell({ state: dump() });
    if (message.look) leader.look(Date.now() - state.heard, true);
    if (message.rows > state.rows) leader.keep(message.rows);
    return;
  }
  if (message.state && (message.state.link === 'live' || !state.loaded)) restore(message.state);
  if (message.heard) set({ heard: message.heard, link: message.link ?? state.link });
  if (message.name) apply(message.name, message.data);
  if (message.link) set({ link: message.link });
}

/** Has the stream keep this many rows. */
export function keep(rows) {
  if (rows <= state.rows) return;
  if (leader) leader.keep(rows);
  else tell({ rows });
}

class Leader {
  constructor() {
    this.last = null;
    this.tries = 0;
    this.ended = false;
    this.abort = new AbortController();
    this.wake = () => {};
    onToken(() => this.again());
  }

  async run() {
    while (!this.ended) {
      const used = token();
      if (!used) {
        this.link('login');
        await this.pause(null);
        continue;
      }
      this.abort = new AbortController();
      this.timer = setInterval(() => this.look(Date.now() - this.heard), 5_000);
      this.heard = Date.now();
      try {
        await this.read(used);
        if (state.link === 'live') this.link('lost');
      } catch (error) {
        if (error.status === 401) this.refused(used);
        else if (state.link !== 'over') this.link('lost');
      }
      clearInterval(this.timer);
      if (this.ended || !token()) continue;
      await this.pause(RETRY[Math.min(this.tries, RETRY.length - 1)]);
      this.tries += 1;
    }
  }

  async read(used) {
    const headers = { Accept: 'text/event-stream', Authorization: `Bearer ${used}` };
    if (this.last !== null) headers['Last-Event-ID'] = String(this.last);
    const path = `/api/v1/events?rows=${state.rows}`;
    const response = await request(path, { headers, signal: this.abort.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.ended) return;
      this.hear();
      const blocks = (text + value).split('\n\n');
      text = blocks.pop();
      for (const block of blocks) this.take(block, used);
    }
  }

  /** One message; a comment is only a beat. */
  take(block, used) {
    let name = 'message';
    let data = '';
    for (const line of block.split('\n')) {
      if (line.startsWith('event:')) name = line.slice(6).trim();
      else if (line.startsWith('data:')) data += line.slice(5).trimStart();
      else if (line.startsWith('id:')) this.last = Number(line.slice(3));
    }
    if (!data) return;
    if (name === 'bye') return this.link('over');
    if (name === 'login_over') return this.refused(used);
    const message = { name, data: JSON.parse(data) };
    this.tries = 0;
    if (name === 'snapshot') {
      if (this.last === null) this.last = message.data.cursor;
      this.link('live');
    }
    apply(message.name, message.data);
    tell(message);
  }

  hear() {
    this.heard = Date.now();
    set({ heard: this.heard });
    tell({ heard: this.heard });
  }

  link(link) {
    set({ link });
    tell({ link });
  }

  refused(used) {
    forget(used);
    // Another store may be served next.
    this.last = null;
    this.link('login');
  }

  /** Ends a stream that was silent for too long, or the wait for the next try. */
  look(since, asked = false) {
    const limit = document.hidden && !asked ? silent() : doubted();
    const connecting = Date.now() - this.heard < 1_000;
    if (since > limit && !connecting) this.again();
  }

  keep(rows) {
    set({ rows });
    this.again();
  }

  again() {
    this.tries = 0;
    this.abort.abort();
    this.wake();
  }

  end() {
    this.ended = true;
    this.again();
  }

  pause(time) {
    return new Promise((done) => {
      this.wake = () => done(null);
      if (time !== null) setTimeout(this.wake, time);
    });
  }
}
