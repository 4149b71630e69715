// SPDX-License-Identifier: Apache-2.0
// Series: leases that recur. The leases of a series are shown as one thing.

import { amount, arrange, h, twice } from './dom.js';
import { edit } from './editor.js';
import * as times from './times.js';

// The rules that the page offers; others are shown as they are.
const RULES = {
  'FREQ=DAILY': 'every day',
  'FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR': 'Monday to Friday',
  'FREQ=WEEKLY': 'every week',
  'FREQ=WEEKLY;INTERVAL=2': 'every two weeks',
  'FREQ=MONTHLY': 'every month',
};
// A start that is now is so many minutes ahead: occurrences have full minutes.
const AHEAD = 2;

/** Return the choices of how a lease recurs: [value, label]. */
export const rules = () => Object.entries(RULES);

/** Return a rule that ends after `count` times, if there is a count. */
export const rule = (frequency, count) =>
  frequency && count ? `${frequency};COUNT=${count}` : frequency;

/** Return the fields of a series whose first start is at `start`. */
export function recurrence(rrule, start) {
  const least = (Math.floor(times.now() / times.MINUTE) + AHEAD)
    * times.MINUTE;
  return {
    rrule, time_zone: times.getZone(), start: times.toInput(Math.max(
      Math.ceil(start / times.MINUTE) * times.MINUTE, least)),
    if_no_room: 'refuse',
  };
}

/** Return the rule of a series without its count, and the count. */
function parts({ rrule }) {
  const [, count = ''] = rrule.match(/;COUNT=(\d+)/) ?? [];
  return { frequency: rrule.replace(/;COUNT=\d+/, ''), count };
}

/** Say when a series recurs. */
function words(series) {
  const { frequency, count } = parts(series);
  const zone = series.time_zone === times.getZone()
    ? '' : ` (${series.time_zone})`;
  return `${RULES[frequency] ?? frequency} at ${series.start.slice(11, 16)}${zone}, for `
    + times.lengthOf(series.duration)
    + (count ? `, ${count} times` : '');
}

/** Say how many occurrences a new or changed series has. */
export function booked(series) {
  const found = series.leases.filter((each) => each.lease_id).length;
  const missing = series.leases.length - found;
  return `${series.name}: ${amount(found, 'lease')} booked`
    + (missing ? `, ${missing} without room.` : '.');
}

// The cards that are shown, by the id of the series, with what they show.
let cards = new Map();

/** Forget the cards of series that are not among `all`. */
export function keep(all) {
  const ids = new Set(all.map(({ id }) => id));
  cards = new Map([...cards].filter(([id]) => ids.has(id)));
}

/**
 * Return the card of a series.
 *
 * @param {string} next says which lease is the next one
 * @param {Array} inner the cards of the leases of the series
 * @param {Object} on `occurrences(series)` returns a promise of all
 *   occurrences, `endAll(series)` and `changeAll(series, values, refuse)` of
 *   whether it was done
 */
export function card(series, next, inner, on) {
  const key = JSON.stringify([series, times.getZone()]);
  let known = cards.get(series.id);
  if (known?.key !== key) {
    const isOpen = known?.element.querySelector('details').open;
    known = { key, element: made(series, on) };
    known.element.querySelector('details').open = isOpen ?? false;
    cards.set(series.id, known);
  }
  const { element } = known;
  element.querySelector('.next').textContent = next;
  element.querySelector('summary').textContent = amount(inner.length, 'lease');
  arrange(element.querySelector('ul'), inner);
  return element;
}

function made(series, on) {
  const missing = h('p.bad', { hidden: true });
  return h('li.card.series', {},
    h('div.head', {}, h('strong.name', {}, series.name),
      h('span.status', {}, 'series')),
    h('p', {}, words(series)),
    h('p.quiet.next'),
    h('details', {
      ontoggle: async ({ target }) => {
        if (!target.open) return;
        const without = (await on.occurrences(series))
          .filter((each) => each.lease_id === null)
          .map((each) => times.short(times.parse(each.start_date)));
        missing.hidden = without.length === 0;
        missing.textContent = `Without room: ${without.join('; ')}.`;
      },
    }, h('summary'), missing, h('ul.cards')),
    h('div.actions', {},
      h('button', {
        type: 'button', 'aria-label': `Change all: ${series.name}`,
        onclick: () => change(series, on),
      }, 'Change all'),
      twice('End all', series.name, 'End all: sure?',
        () => on.endAll(series))));
}

function change(series, on) {
  const { frequency, count } = parts(series);
  edit(`Change ${series.name}`, [
    { name: 'name', label: 'Name', value: series.name, maxlength: 60 },
    { name: 'frequency', label: 'Repeated', value: frequency,
      choices: RULES[frequency] ? rules()
        : [[frequency, frequency], ...rules()] },
    { name: 'count', label: 'Times (no end, if empty)', type: 'number',
      value: count, min: 1, required: false },
    { name: 'at', label: `At (${series.time_zone})`, type: 'time',
      value: series.start.slice(11, 16) },
    { name: 'length', label: 'For', value: times.lengthOf(series.duration) },
    { name: 'from', label: 'From this day on (from now on, if empty)',
      type: 'date', required: false },
  ], 'Change', (values, refuse) => {
    const asked = {
      name: values.name,
      rrule: rule(values.frequency, values.count),
      start: `${series.start.slice(0, 11)}${values.at}`,
      duration: values.length === times.lengthOf(series.duration)
        ? series.duration : times.readLength(values.length) ?? values.length,
      from: values.from,
    };
    // What is not changed is left out: a name alone changes no lease.
    const changed = Object.entries(asked).filter(([name, value]) =>
      value && value !== (name === 'start' ? series.start.slice(0, 16)
        : series[name]));
    return on.changeAll(series, Object.fromEntries(changed), refuse);
  });
}
