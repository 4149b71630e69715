// SPDX-License-Identifier: Apache-2.0
// Times. A time is a number of seconds since 1970 in UTC; only this module
// knows days, months and time zones. A "wall" time is what a clock on the wall
// shows, as the seconds that UTC would have at this reading.

export const MINUTE = 60;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const WEEK = 7 * DAY;
export const YEAR = 366 * DAY;

// Offsets change at full quarters of an hour only.
const QUARTER = 15 * MINUTE;

const UNITS = { s: 1, m: MINUTE, h: HOUR, d: DAY, w: WEEK };

let zone = 'UTC';
let clock;
let offsets;

/** Return the zone of the browser. */
export const localZone = () =>
  Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/** Show times in a zone of the IANA database from now on. */
export function setZone(name) {
  clock = formatter(name, {
    year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric',
    minute: 'numeric', second: 'numeric', calendar: 'gregory',
    numberingSystem: 'latn',
  });
  zone = name;
  offsets = new Map();
  formats.clear();
}

export const getZone = () => zone;

function formatter(timeZone, options) {
  return new Intl.DateTimeFormat(
    'en-GB', { hourCycle: 'h23', timeZone, ...options });
}

const formats = new Map();

function format(time, options, timeZone = zone) {
  const key = timeZone + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, formatter(timeZone, options));
  return formats.get(key).format(time * 1000);
}

export const now = () => Math.floor(Date.now() / 1000);

/** Return the seconds by which the wall clock is ahead of UTC. */
export function offset(time) {
  const quarter = Math.floor(time / QUARTER) * QUARTER;
  let found = offsets.get(quarter);
  if (found === undefined) {
    const part = {};
    for (const { type, value } of clock.formatToParts(quarter * 1000)) {
      part[type] = Number(value);
    }
    const wall = Date.UTC(part.year, part.month - 1, part.day,
      part.hour, part.minute, part.second) / 1000;
    found = wall - quarter;
    offsets.set(quarter, found);
  }
  return found;
}

export const toWall = (time) => time + offset(time);

/**
 * Return the time at which the clock shows `wall`: the first of two, and the
 * end of the gap if the clock skips this reading.
 */
export function fromWall(wall) {
  const before = offset(wall - DAY - offset(wall - DAY));
  const after = offset(wall + DAY - offset(wall + DAY));
  // After clocks are set back, the greater offset is the first one's.
  const found = [wall - before, wall - after]
    .filter((time) => toWall(time) === wall);
  if (found.length) return Math.min(...found);
  let [low, high] = [wall - DAY - before, wall + DAY - after];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** Return the wall time of midnight before `wall`. */
const dayOf = (wall) => Math.floor(wall / DAY) * DAY;

/** Round to a multiple of `step` seconds on the wall clock. */
export function snap(time, step) {
  const wall = toWall(time);
  if (step <= HOUR) return time - wall + Math.round(wall / step) * step;
  return fromWall(Math.round(wall / step) * step);
}

// The distances of ticks, with the label of a tick and of the larger unit.
const HOURS = { hour: '2-digit', minute: '2-digit' };
const DATE = { weekday: 'short', day: 'numeric', month: 'short' };
const MONTH = { month: 'long', year: 'numeric' };
const STEPS = [
  { step: 5 * MINUTE, label: HOURS, unit: 'day' },
  { step: 15 * MINUTE, label: HOURS, unit: 'day' },
  { step: 30 * MINUTE, label: HOURS, unit: 'day' },
  { step: HOUR, label: HOURS, unit: 'day' },
  { step: 3 * HOUR, label: HOURS, unit: 'day' },
  { step: 6 * HOUR, label: HOURS, unit: 'day' },
  { step: 12 * HOUR, label: HOURS, unit: 'day' },
  { step: DAY, label: { weekday: 'short', day: 'numeric' }, unit: 'month' },
  { step: WEEK, label: { day: 'numeric', month: 'short' }, unit: 'month' },
  { months: 1, step: 30 * DAY, label: { month: 'short' }, unit: 'year' },
  { months: 3, step: 91 * DAY, label: { month: 'short' }, unit: 'year' },
];

/**
 * Return the marks of an axis: {ticks, units}, each with `time` and `label`.
 *
 * @param {number} least seconds between two ticks
 */
export function axis(start, end, least) {
  const chosen = STEPS.find(({ step }) => step >= least) ?? STEPS.at(-1);
  const ticks = marks(start, end, chosen)
    .map((time) => ({ time, label: format(time, chosen.label) }));
  return { ticks, units: units(start, end, chosen.unit) };
}

function marks(start, end, { step, months }) {
  const found = new Set();
  if (months) {
    for (const wall of monthsFrom(toWall(start), toWall(end), months)) {
      found.add(fromWall(wall));
    }
  } else if (step >= DAY) {
    // The first Monday after 1970-01-01 is the fifth day.
    const phase = step === WEEK ? 4 * DAY : 0;
    let wall = Math.floor((toWall(start) - phase) / step) * step + phase;
    for (; wall < toWall(end) + step; wall += step) found.add(fromWall(wall));
  } else {
    let day = dayOf(toWall(start));
    for (; day < toWall(end) + DAY; day += DAY) {
      const [from, to] = [fromWall(day), fromWall(day + DAY)];
      if (step <= HOUR) {
        // An hour that comes twice has two ticks, and one that is skipped
        // has none.
        for (let time = from; time < to; time += step) found.add(time);
      } else {
        for (let wall = day; wall < day + DAY; wall += step) {
          found.add(fromWall(wall));
        }
      }
    }
  }
  return [...found].filter((time) => time >= start && time < end);
}

function units(start, end, unit) {
  const found = [];
  const last = toWall(end);
  if (unit === 'day') {
    for (let wall = dayOf(toWall(start)); wall < last; wall += DAY) {
      const [from, to] = [fromWall(wall), fromWall(wall + DAY)];
      const hours = (to - from) / HOUR;
      // The day on which the clocks are set.
      const odd = hours === 24 ? '' : ` · ${hours} h`;
      found.push({ time: from, end: to, label: format(from, DATE) + odd });
    }
    return found;
  }
  const months = unit === 'month' ? 1 : 12;
  const label = unit === 'month' ? MONTH : { year: 'numeric' };
  const walls = [...monthsFrom(toWall(start), last, months)];
  for (const wall of walls) {
    const at = fromWall(wall);
    found.push({ time: at, label: format(at, label) });
  }
  return found.map((each, index) =>
    ({ ...each, end: found[index + 1]?.time ?? end }));
}

function* monthsFrom(wall, last, months) {
  const date = new Date(wall * 1000);
  let month = date.getUTCMonth();
  month -= month % months;
  for (;;) {
    const at = Date.UTC(date.getUTCFullYear(), month) / 1000;
    if (at > last) return;
    yield at;
    month += months;
  }
}

/** Return the times at which weekends begin and end. */
export function weekends(start, end) {
  const found = [];
  let saturday = Math.floor((toWall(start) - 2 * DAY) / WEEK) * WEEK + 2 * DAY;
  for (; saturday < toWall(end); saturday += WEEK) {
    found.push([fromWall(saturday), fromWall(saturday + 2 * DAY)]);
  }
  return found;
}

/** Show a time as short as possible, beside others of the same days. */
export function short(time) {
  const sameDay = dayOf(toWall(time)) === dayOf(toWall(now()));
  const options = sameDay ? {} : DATE;
  return format(time, { ...options, ...HOURS });
}

/** Show a time with its day. */
export const long = (time) =>
  format(time, { ...DATE, year: 'numeric', ...HOURS, timeZoneName: 'short' });

export const utc = (time) =>
  format(time, { ...DATE, year: 'numeric', ...HOURS }, 'UTC') + ' UTC';

/** Show a window, with the end's day only if it is another day. */
export function windowOf(start, end) {
  if (end === null) return `${short(start)} → without an end`;
  const sameDay = dayOf(toWall(start)) === dayOf(toWall(end));
  return `${short(start)} → ${sameDay ? format(end, HOURS) : short(end)}`;
}

/** Show both ends of a window in UTC. */
export const windowInUtc = (start, end) =>
  end === null ? `from ${utc(start)}` : `${utc(start)} → ${utc(end)}`;

/** Show a length in its two largest units. */
export function lengthOf(seconds) {
  const parts = [];
  let rest = Math.max(0, Math.round(seconds));
  for (const [unit, size] of [['d', DAY], ['h', HOUR], ['min', MINUTE]]) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) parts.push(`${count} ${unit}`);
  }
  return parts.length ? parts.slice(0, 2).join(' ') : `${rest} s`;
}

/** Return the seconds of a text such as "4 h", "2 days" or "1d 12h", else
 * null. A number alone is of hours. */
export function readLength(text) {
  // A unit ends each number but the last one, so that no text is read in many
  // ways.
  const unit = '(?:s|m(?:in)?|h(?:ours?)?|d(?:ays?)?|w(?:eeks?)?)';
  const count = '\\d+(?:\\.\\d+)?\\s*';
  const form = new RegExp(`^\\s*(?:${count}${unit}\\s*)*(?:${count})?$`);
  if (!form.test(text)) return null;
  let seconds = 0;
  for (const [, number, first] of
    text.matchAll(/(\d+(?:\.\d+)?)\s*([smhdw])?/g)) {
    seconds += Number(number) * UNITS[first ?? 'h'];
  }
  return seconds >= 1 ? Math.round(seconds) : null;
}

/** Return a time as the API writes it. */
export const iso = (time) =>
  new Date(time * 1000).toISOString().replace('.000Z', 'Z');

/** Return the time that the API has written, null for none. */
export const parse = (text) =>
  text === null || text === undefined ? null : Date.parse(text) / 1000;

/** Return the value of an <input type="datetime-local">. */
export const toInput = (time) =>
  new Date(toWall(time) * 1000).toISOString().slice(0, 16);

/** Return the time of an <input type="datetime-local">, null for none. */
export const fromInput = (text) =>
  text ? fromWall(Date.parse(`${text}Z`) / 1000) : null;

/** Return a <time>'s attributes: UTC when hovered. */
export const hover = (time) => ({ datetime: iso(time), title: utc(time) });
