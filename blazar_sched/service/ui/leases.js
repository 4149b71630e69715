// SPDX-License-Identifier: Apache-2.0
// The leases of the project: what they have, and what happens at their end.

import { $, fill, h } from './dom.js';
import { amount } from './finder.js';
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

/**
 * Show the leases.
 *
 * @param {Object} on `prolong(lease, seconds)`, `show(lease)`; `recall(lease)`
 *   and `end(lease, started)`, each with a promise
 */
export function draw(leases, selected, on) {
  const current = leases.filter((lease) => !isOver(lease))
    .sort((a, b) => a.start - b.start);
  const drawn = new Map();
  // A card whose button asks whether to end the lease stays as it is.
  const asking = $('leases').querySelector('.danger')?.closest('.card');
  for (const lease of current) {
    const key = JSON.stringify([lease, lease.id === selected,
      lease.start <= times.now(), times.getZone()]);
    const kept = asking?.dataset.lease === lease.id ? asking : null;
    drawn.set(key,
      kept ?? cards.get(key) ?? card(lease, lease.id === selected, on));
    passed(drawn.get(key), lease);
  }
  const shown = $('leases').children;
  const same = drawn.size > 0 && drawn.size === shown.length
    && [...drawn.values()].every((each, index) => each === shown[index]);
  cards = drawn;
  // An element that is moved loses the focus.
  if (same) return;
  const focus = document.activeElement?.getAttribute('aria-label');
  fill($('leases'), current.length ? [...drawn.values()]
    : h('li.empty', {}, 'Nothing is booked. Ask above for what you need, or '
      + 'drag over free time in the timeline.'));
  if (focus) {
    [...$('leases').querySelectorAll('button')].find(
      (button) => button.getAttribute('aria-label') === focus)?.focus();
  }
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
    started && lends(lease) ? twice('Recall', lease, 'Recall all: sure?',
      () => on.recall(lease)) : null,
    started ? twice('End now', lease, 'End it: sure?',
      () => on.end(lease, started))
      : twice('Cancel', lease, 'Cancel it: sure?',
        () => on.end(lease, started))));
}

/** Return a button that has to be pressed twice. */
function twice(text, lease, question, act) {
  let asked = false;
  const say = (said, label) => {
    button.textContent = said;
    button.setAttribute('aria-label', label);
    button.classList.toggle('danger', asked);
  };
  const forget = () => {
    asked = false;
    say(text, `${text}: ${lease.name}`);
  };
  const button = h('button', {
    type: 'button',
    onclick: async () => {
      if (!asked) {
        asked = true;
        say(question, question);
        return;
      }
      forget();
      button.disabled = true;
      await act();
      button.disabled = false;
    },
    onblur: forget,
  });
  forget();
  return button;
}

function ending(lease) {
  const said = atEnd(lease);
  if (lease.end === null || !said) return null;
  const announced = lease.beforeEnd && lease.beforeEnd > times.now()
    ? `, announced ${times.short(lease.beforeEnd)}` : '';
  return h('p.quiet', {}, `At the end ${said}${announced}.`);
}
