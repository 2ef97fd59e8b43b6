// The timeline of claims: who held which item from when to when. Drawn from the answer of `tenure timeline --json`.
//
// A module without dependencies, for the dashboard and for the file that `tenure timeline --html` writes. Names and reasons
// come from agents: they are set as text, never as markup. Every bar is also a row of the table below the drawing.

/** How a hold ends: what is said, and the mark at the end of its bar, so that colour alone says nothing. */
export const ENDS = {
  held: ["still held", ""],
  suspect: ["holder suspect", ""],
  release: ["released", "○"],
  done: ["done", "✓"],
  end: ["session ended", "■"],
  death: ["holder died", "✕"],
  lease: ["lease expired", "?"],
  taken: ["taken over", "!"],
  handoff: ["handed over", "→"],
};

/** A lane with more bars than this is drawn as sums. */
export const MAX_BARS = 2000;
const MAX_LANES = 100;
const MAX_ROWS = 200;
const BAR = 14;
const ROW = 20;
const SECOND = 1000;
const STEPS = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 86400, 604800, 2592000].map((s) => s * SECOND);
const SVG = "http://www.w3.org/2000/svg";

/** The holds as bars in milliseconds; `now` is where what is still held ends. */
export function barsOf(holds, now) {
  return holds.map((hold) => {
    const from = Date.parse(hold.from);
    const to = hold.to ? Date.parse(hold.to) : Math.max(now, from);
    const end = hold.ended_by || (hold.suspect_since ? "suspect" : "held");
    const suspect = !hold.ended_by && hold.suspect_since ? Date.parse(hold.suspect_since) : null;
    return { hold, from, to: Math.max(to, from), end: ENDS[end] ? end : "end", suspect };
  });
}

/** Lanes of bars, the latest first. Bars that overlap, as those of a session do, are put in rows below each other. */
export function lanesOf(bars, by) {
  const lanes = new Map();
  for (const bar of bars) {
    const id = by === "session" ? bar.hold.session.id : bar.hold.key;
    const name = by === "session" ? bar.hold.session.handle : bar.hold.key;
    if (!lanes.has(id)) lanes.set(id, { id, name, bars: [], rows: 1, last: 0 });
    const lane = lanes.get(id);
    lane.bars.push(bar);
    lane.last = Math.max(lane.last, bar.to);
  }
  for (const lane of lanes.values()) {
    lane.bars.sort((a, b) => a.from - b.from || a.hold.epoch - b.hold.epoch);
    lane.isSummed = lane.bars.length > MAX_BARS;
    const free = [];
    for (const bar of lane.isSummed ? [] : lane.bars) {
      const row = free.findIndex((at) => at <= bar.from);
      bar.row = row < 0 ? free.length : row;
      free[bar.row] = bar.to;
    }
    lane.rows = Math.max(1, free.length);
  }
  return [...lanes.values()].sort((a, b) => b.last - a.last || (a.name < b.name ? -1 : 1));
}

/** Which pixels of a lane were held, and by how many bars each stretch. */
export function sumsOf(bars, view, width) {
  const scale = width / (view.to - view.from);
  const sums = [];
  for (const bar of bars) {
    if (bar.to < view.from || bar.from > view.to) continue;
    const from = Math.max(0, Math.floor((bar.from - view.from) * scale));
    const to = Math.min(width, Math.max(from + 1, Math.ceil((bar.to - view.from) * scale)));
    const last = sums[sums.length - 1];
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.count += 1;
    } else {
      sums.push({ from, to, count: 1 });
    }
  }
  return sums;
}

/** A length in words: 4s, 12m, 3h 5m. */
export function lengthOf(millis) {
  const s = Math.max(0, Math.floor(millis / SECOND));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

/** How a hold ended, for people. */
export function endingOf(bar) {
  const { hold } = bar;
  let said = ENDS[bar.end][0];
  if (hold.passed_to) said += ` ${bar.end === "taken" ? "by" : "to"} ${hold.passed_to.handle}`;
  return hold.ended_why ? `${said}: ${hold.ended_why}` : said;
}

function make(name, attributes = {}, ...children) {
  const element = name.startsWith("svg:")
    ? document.createElementNS(SVG, name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const bdi = (text) => make("bdi", {}, text);

function stamp(millis, span) {
  const date = new Date(millis);
  /** @type {Intl.DateTimeFormatOptions} */
  const day = { month: "short", day: "numeric" };
  /** @type {Intl.DateTimeFormatOptions} */
  const time = { hour: "2-digit", minute: "2-digit", ...(span < 600 * SECOND ? { second: "2-digit" } : {}) };
  return date.toLocaleString(undefined, span > 2 * 86400 * SECOND ? day : span > 86400 * SECOND ? { ...day, ...time } : time);
}

/**
 * Draws a timeline into an element and keeps it there.
 *
 * @param {HTMLElement} root where to draw; what is in it is replaced
 * @param {{now: string, since?: string|null, holds: object[]}} data an answer of `tenure timeline --json`
 * @param {{by?: "key"|"session", now?: () => number}} [options] `now` makes it live: its right edge follows that clock
 * @returns {{update(data: object): void, destroy(): void}}
 */
export function timeline(root, data, options = {}) {
  let { by = "key" } = options;
  let bars = [];
  let start = 0;
  let now = 0;
  let view = null; // null: everything, up to now
  let rows = MAX_ROWS;
  let lanesShown = MAX_LANES;
  let timer = 0;

  const chart = make("div", {
    class: "tl-chart",
    tabindex: "0",
    role: "group",
    "aria-label": "Timeline. Plus and minus zoom, arrow keys move, Home shows all, End shows now. The table below has the same.",
    keydown: pressed,
  });
  const body = make("tbody");
  const count = make("p", { class: "tl-count" });
  const more = make("button", { type: "button", click: () => ((rows = Infinity), table()) }, "Show all rows");
  const lanesBy = make(
    "select",
    { "aria-label": "Lanes", change: (event) => ((by = event.target.value), draw()) },
    make("option", { value: "key" }, "Lanes: items"),
    make("option", { value: "session" }, "Lanes: sessions"),
  );
  lanesBy.value = by;
  const button = (label, act) => make("button", { type: "button", click: act }, label);
  const bar = make(
    "div",
    { class: "tl-bar" },
    lanesBy,
    button("Zoom in", () => zoom(0.5)),
    button("Zoom out", () => zoom(2)),
    button("All", () => ((view = null), draw())),
    legend(),
  );
  const heads = ["Item", "Epoch", "Session", "From", "To", "Length", "How it ended"];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  root.replaceChildren(
    bar,
    chart,
    count,
    make("div", { class: "tl-scroll", tabindex: "0", role: "region", "aria-label": "Claims as a table" },
      make("table", { class: "tl-table" },
        make("caption", {}, "Claims, newest end first"), make("thead", {}, head), body)),
    more,
  );
  chart.addEventListener("wheel", wheeled, { passive: false });
  chart.addEventListener("pointerdown", dragged);
  const sized = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => draw());
  sized?.observe(chart);

  function legend() {
    const items = Object.entries(ENDS).map(([end, [said, mark]]) =>
      make("li", {}, make("span", { class: `tl-key tl-${end}`, "aria-hidden": "true" }, mark || " "), ` ${said}`));
    return make("ul", { class: "tl-legend", "aria-label": "How a claim ended" }, ...items);
  }

  function take(next) {
    data = next;
    now = options.now ? options.now() : Date.parse(data.now);
    bars = barsOf(data.holds, now);
    const first = bars.reduce((least, one) => Math.min(least, one.from), now);
    start = data.since ? Math.max(Date.parse(data.since), first) : first;
    if (start >= now) start = now - 60 * SECOND;
  }

  function shown() {
    return view ?? { from: start, to: now + (now - start) * 0.02 };
  }

  function zoom(factor, at = null) {
    const { from, to } = shown();
    const middle = at ?? (from + to) / 2;
    const least = SECOND / (to - from);
    const by = Math.max(factor, least);
    set(middle - (middle - from) * by, middle + (to - middle) * by);
  }

  function set(from, to) {
    const span = Math.min(to - from, (now - start) * 4 + 60 * SECOND);
    view = { from, to: from + span };
    draw();
  }

  function pressed(event) {
    const { from, to } = shown();
    const step = (to - from) / 8;
    const acts = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      ArrowLeft: () => set(from - step, to - step), ArrowRight: () => set(from + step, to + step),
      Home: () => ((view = null), draw()), End: () => set(now - (to - from) * 0.95, now + (to - from) * 0.05),
    };
    const act = !event.ctrlKey && !event.metaKey && !event.altKey && acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function plot() {
    const drawn = chart.querySelector("svg");
    return drawn ? drawn.getBoundingClientRect() : chart.getBoundingClientRect();
  }

  function wheeled(event) {
    if (!event.deltaY) return;
    event.preventDefault();
    const area = plot();
    const { from, to } = shown();
    const at = from + ((event.clientX - area.left) / area.width) * (to - from);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
  }

  function dragged(event) {
    if (event.button !== 0) return;
    const area = plot();
    const { from, to } = shown();
    const move = (moved) => {
      const by = ((event.clientX - moved.clientX) / area.width) * (to - from);
      set(from + by, to + by);
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  }

  function draw() {
    const lanes = lanesOf(bars, by);
    const width = Math.max(120, Math.floor(chart.clientWidth - Math.min(220, chart.clientWidth * 0.35)));
    const seen = shown();
    const parts = [axis(seen, width)];
    for (const lane of lanes.slice(0, lanesShown)) parts.push(drawLane(lane, seen, width));
    if (lanes.length > lanesShown) {
      const rest = `Show ${lanes.length - lanesShown} more lanes`;
      parts.push(button(rest, () => ((lanesShown = Infinity), draw())));
    }
    chart.replaceChildren(...parts);
    clearTimeout(timer);
    if (options.now && !document.hidden) {
      // A bar that grows is drawn again when it is a pixel longer.
      const wait = Math.max(SECOND, (seen.to - seen.from) / width);
      timer = setTimeout(() => (take(data), draw()), Math.min(wait, 60 * SECOND));
    }
  }

  function line(name, svg, isHead) {
    return make("div", { class: isHead ? "tl-lane tl-axis" : "tl-lane" }, make("div", { class: "tl-name" }, name), svg);
  }

  function axis(seen, width) {
    const span = seen.to - seen.from;
    const step = STEPS.find((one) => (one / span) * width >= 90) ?? span / 4;
    const svg = make("svg:svg", { width, height: ROW, "aria-hidden": "true" });
    for (let at = Math.ceil(seen.from / step) * step; at <= seen.to; at += step) {
      const x = ((at - seen.from) / span) * width;
      svg.append(
        make("svg:line", { class: "tl-tick", x1: x, x2: x, y1: 0, y2: ROW }),
        make("svg:text", { class: "tl-time", x: x + 3, y: 13 }, stamp(at, span)),
      );
    }
    return line("", svg, true);
  }

  function drawLane(lane, seen, width) {
    const height = lane.rows * ROW;
    const svg = make("svg:svg", { width, height, "aria-hidden": "true" });
    const scale = width / (seen.to - seen.from);
    if (lane.isSummed) {
      for (const sum of sumsOf(lane.bars, seen, width)) {
        const box = make("svg:rect", { class: "tl-sum", x: sum.from, y: 3, width: sum.to - sum.from, height: BAR });
        box.append(make("svg:title", {}, `${sum.count} claims`));
        svg.append(box);
      }
      return line(bdi(`${lane.name} (${lane.bars.length} claims, summed)`), svg);
    }
    for (const one of lane.bars) {
      if (one.to < seen.from || one.from > seen.to) continue;
      const x = Math.max(-2, (one.from - seen.from) * scale);
      const right = Math.min(width + 2, (one.to - seen.from) * scale);
      svg.append(drawBar(one, x, Math.max(2, right - x), one.row * ROW + 3, seen, scale));
    }
    return line(bdi(lane.name), svg);
  }

  function drawBar(one, x, wide, y, seen, scale) {
    const { hold } = one;
    const group = make("svg:g", { class: `tl-one tl-${one.end}` });
    const box = make("svg:rect", { class: "tl-box", x, y, width: wide, height: BAR, rx: 2 });
    group.append(make("svg:title", {}, said(one)), box);
    if (one.suspect !== null) {
      const from = Math.max(x, (one.suspect - seen.from) * scale);
      for (let at = from; at < x + wide; at += 6) {
        const to = Math.min(at + 6, x + wide);
        group.append(make("svg:line", { class: "tl-hatch", x1: at, y1: y + BAR, x2: to, y2: y }));
      }
    }
    const text = by === "session" ? hold.key : hold.session.handle;
    const label = `${text} · ${hold.epoch}`;
    const mark = ENDS[one.end][1];
    if (wide > label.length * 6.5 + 18) group.append(make("svg:text", { class: "tl-label", x: x + 4, y: y + 11 }, label));
    if (mark && wide > 9) group.append(make("svg:text", { class: "tl-mark", x: x + wide - 11, y: y + 11 }, mark));
    return group;
  }

  function said(one) {
    const { hold } = one;
    const note = hold.note ? `\n${hold.note}` : "";
    return `${hold.key} · epoch ${hold.epoch}\n${hold.session.handle}\n${new Date(one.from).toLocaleString()}, ` +
      `${lengthOf(one.to - one.from)}\n${endingOf(one)}${note}`;
  }

  function table() {
    const all = bars.slice(0, rows);
    body.replaceChildren(...all.map((one) => {
      const { hold } = one;
      const mark = make("span", { class: `tl-key tl-${one.end}`, "aria-hidden": "true" }, ENDS[one.end][1] || " ");
      const when = (text) => make("time", { datetime: text }, new Date(text).toLocaleString());
      const cells = [
        bdi(hold.key), String(hold.epoch), bdi(hold.session.handle), when(hold.from),
        hold.to ? when(hold.to) : "–", lengthOf(one.to - one.from),
      ];
      const end = make("td", {}, mark, " ", bdi(endingOf(one)));
      return make("tr", {}, ...cells.map((cell) => make("td", {}, cell)), end);
    }));
    more.hidden = bars.length <= rows;
    const held = bars.filter((one) => !one.hold.ended_by).length;
    count.textContent = `${bars.length} claims, ${held} still held` + (bars.length > rows ? `; ${rows} rows shown` : "");
  }

  function update(next) {
    take(next);
    draw();
    table();
  }

  update(data);
  return {
    update,
    destroy() {
      clearTimeout(timer);
      sized?.disconnect();
      root.replaceChildren();
    },
  };
}
