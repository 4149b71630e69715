// SPDX-License-Identifier: Apache-2.0
// The leases of the project: what they have, and what happens at their end.

import { $, arrange, h, twice } from './dom.js';
import { amount } from './finder.js';
import * as series from './series.js';
import * as times from './times.js';

const OVER = new Set(['TERMINATED', 'ERROR']);
const AT_END = {
  delete: 'servers are deleted', shelve: 'servers are shelved',
  keep: 'servers stay',
};
const BEFORE_END = {
  snapshot: 'images of the servers are made', email: 'you get an e-mail',
  webhook: 'the operator is notified',
};
const TYPES = {
  'physical:host': 'host', 'virtual:floatingip': 'floating IP',
  'instance:lifetime': 'server',
};

/** Return a lease of the API with its times as numbers. */
export function read(lease) {
  const before = lease.events?.find(
    ({ event_type: type }) => type === 'before_end_lease');
  return {
    ...lease, start: times.parse(lease.start_date),
    end: times.parse(lease.end_date), beforeEnd: times.parse(before?.time),
  };
}

export const isOver = (lease) => OVER.has(lease.status);

/** Say what a lease or a held offer has, such as "2 hosts". */
export function content(lease) {
  return lease.reservations.map(size).join(', ') || 'nothing';
}

/** Say what a reservation has. */
function size(each) {
  const count = each.available ?? each.hosts?.length ?? each.amount
    ?? each.max ?? 1;
  return amount(Number(count), TYPES[each.resource_type] ?? 'instance');
}

const lends = (lease) => lease.reservations.some(({ lend }) => lend);

/** Say what a lease lends, null for nothing. */
function lending(lease, started) {
  const said = lease.reservations.filter(({ lend, lent }) => lend || lent)
    .map((each) => `${each.lent} of ${size(each)}`).join(', ');
  if (!said) return null;
  if (!started) return h('p.quiet', {}, 'What is not used will be lent.');
  const what = lends(lease) ? 'Lent now' : 'Being recalled';
  return h('p', {}, `${what}: ${said}.`);
}

/** Say what happens at the end of a lease. */
function atEnd(lease) {
  const said = new Set();
  for (const each of lease.reservations) {
    if (BEFORE_END[each.before_end]) said.add(BEFORE_END[each.before_end]);
  }
  for (const each of lease.reservations) {
    if (AT_END[each.on_end]) said.add(AT_END[each.on_end]);
  }
  return [...said].join(', then ');
}

const NOTHING = h('li.empty', {}, 'Nothing is booked. Ask above for what you '
  + 'need, or drag over free time in the timeline.');

/**
 * Show the leases; those of a series are in the card of the series.
 *
 * @param {Object} on `prolong(lease, seconds)`, `show(lease)`; `recall(lease)`
 *   and `end(lease, started)`, each with a promise; and as in `series.card`
 */
export function draw(leases, allSeries, selected, on) {
  const current = leases.filter((lease) => !isOver(lease))
    .sort((a, b) => a.start - b.start);
  const drawn = new Map();
  const listed = [];
  const recurring = new Map(allSeries.map(
    (each) => [each.id, { each, own: [], inner: [] }]));
  // A card whose button asks whether to end the lease stays as it is.
  const asking = $('leases').querySelector('.danger')?.closest('.card');
  for (const lease of current) {
    const key = JSON.stringify([lease, lease.id === selected,
      lease.start <= times.now(), times.getZone()]);
    const kept = asking?.dataset.lease === lease.id ? asking : null;
    const element = kept ?? cards.get(key)
      ?? card(lease, lease.id === selected, on);
    drawn.set(key, element);
    passed(element, lease);
    const group = recurring.get(lease.series_id);
    group?.own.push(lease);
    group?.inner.push(element);
    if (!group) listed.push([lease.start, element]);
  }
  cards = drawn;
  for (const { each, own: [next], inner } of recurring.values()) {
    listed.push([next?.start ?? Infinity, series.card(each, next
      ? `${content(next)}, next ${times.windowOf(next.start, next.end)}`
      : 'No lease is booked.', inner, on)]);
  }
  series.keep(allSeries);
  listed.sort(([one], [other]) => one - other);
  arrange($('leases'),
    listed.length ? listed.map(([, element]) => element) : [NOTHING]);
}

// The cards that are shown, by all that they show but for the time that has
// passed.
let cards = new Map();

/** Show the time that has passed. */
function passed(element, lease) {
  const now = times.now();
  const left = element.querySelector('.left');
  if (!left) return;
  left.firstChild.value = now - lease.start;
  left.lastChild.data = `${times.lengthOf(lease.end - now)} left`;
}

function card(lease, isSelected, on) {
  const started = lease.start <= times.now();
  return h(isSelected ? 'li.card.selected' : 'li.card', {
    'data-lease': lease.id,
  },
  h('div.head', {},
    h('button.link.name', {
      type: 'button', title: 'Show in the timeline',
      onclick: () => on.show(lease),
    }, lease.name),
    h(`span.status.${started ? 'active' : 'pending'}`, {},
      lease.status.toLowerCase())),
  lease.degraded ? h('p.bad', {},
    'Degraded: something is missing or in the way.') : null,
  h('p', {}, `${content(lease)}, `,
    h('time', {
      ...times.hover(lease.start),
      title: times.windowInUtc(lease.start, lease.end),
    }, times.windowOf(lease.start, lease.end))),
  started && lease.end !== null ? h('div.left', {},
    h('progress', {
      max: lease.end - lease.start, 'aria-label': 'Time that has passed',
    }), ' ') : null,
  lending(lease, started),
  ending(lease),
  h('div.actions', {},
    lease.end === null ? null : h('button', {
      type: 'button', onclick: () => on.prolong(lease, times.HOUR),
      'aria-label': `+1 h: prolong ${lease.name}`,
    }, '+1 h'),
    started && lends(lease) ? twice('Recall', lease.name, 'Recall all: sure?',
      () => on.recall(lease)) : null,
    started ? twice('End now', lease.name, 'End it: sure?',
      () => on.end(lease, started))
      : twice('Cancel', lease.name, 'Cancel it: sure?',
        () => on.end(lease, started))));
}

function ending(lease) {
  const said = atEnd(lease);
  if (lease.end === null || !said) return null;
  const announced = lease.beforeEnd && lease.beforeEnd > times.now()
    ? `, announced ${times.short(lease.beforeEnd)}` : '';
  return h('p.quiet', {}, `At the end ${said}${announced}.`);
}
