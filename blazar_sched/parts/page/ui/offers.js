// SPDX-License-Identifier: Apache-2.0
// The offers that are held for the project, until they lapse.

import { $, arrange, h } from './dom.js';
import { content } from './leases.js';
import * as times from './times.js';

// The cards that are shown, by the id of the offer: a card stays as it is, so
// that nobody loses the name that is being typed.
let cards = new Map();

/** Return a held offer of the API with its times as numbers. */
export function read(offer) {
  return {
    ...offer, start: times.parse(offer.start_date),
    end: times.parse(offer.end_date), until: times.parse(offer.held_until),
  };
}

/** Tell whether an administrator has to approve an offer first. */
export function isWaiting(offer) {
  return Boolean(offer.needs_approval) && !offer.approved_by;
}

/**
 * Show the offers that are held.
 *
 * @param {Object} on `take(offer, name)` makes a lease of an offer and
 *   `release(offer)` gives it up, each with a promise; `show(offer)`;
 *   `name()` returns the name that is proposed for a lease
 */
export function draw(offers, selected, on) {
  const list = $('offers');
  const drawn = new Map(offers.map(
    (offer) => [offer.id, cards.get(offer.id) ?? card(offer, on)]));
  cards = drawn;
  arrange(list, [...cards.values()]);
  for (const offer of offers) {
    const element = cards.get(offer.id);
    element.classList.toggle('selected', offer.id === selected);
    passed(element, offer);
  }
  list.hidden = offers.length === 0;
}

/** Show the time that is left, and whether the offer can be accepted. */
function passed(element, offer) {
  const { start, end, until } = offer;
  const window = element.querySelector('time');
  window.textContent = times.windowOf(start, end);
  window.title = times.windowInUtc(start, end);
  const left = times.lengthOf(until - times.now());
  element.querySelector('.until').textContent =
    `held until ${times.short(until)}, for another ${left}`;
  const waiting = isWaiting(offer);
  const approval = element.querySelector('.approval');
  approval.hidden = !waiting;
  approval.textContent = `An administrator has to approve the offer: ${
    offer.needs_approval}.`;
  element.querySelector('.primary').disabled = waiting;
}

function card(offer, on) {
  const what = content(offer);
  const name = h('input', {
    value: on.name(), maxlength: 80, size: 12, spellcheck: 'false',
  });
  const take = h('button.primary', {
    type: 'button', 'aria-label': `Accept: ${what}`,
    onclick: () => on.take(offer, name.value.trim() || 'lease'),
  }, 'Accept');
  const release = h('button', {
    type: 'button', 'aria-label': `Release: ${what}`,
    onclick: () => on.release(offer),
  }, 'Release');
  return h('li.card.held', { 'data-offer': offer.id },
    h('div.head', {},
      h('button.link.name', {
        type: 'button', title: 'Show in the timeline',
        onclick: () => on.show(offer),
      }, what),
      h('span.status', {}, 'held offer')),
    h('p', {}, h('time', { datetime: times.iso(offer.start) })),
    h('p.until'),
    h('p.approval', { hidden: true }),
    h('label', {}, 'named ', name),
    h('div.actions', {}, take, release));
}
