// SPDX-License-Identifier: Apache-2.0
// The lease requests of the project, which wait for room.

import { $, arrange, h, twice } from './dom.js';
import * as times from './times.js';

// The requests whose estimates are read, and the seconds after which an
// estimate, which takes the service a search, is read again.
const ESTIMATED = 5;
const OLD = times.MINUTE;
// Seconds for which a request is shown that has waited in vain.
const SHOWN = times.DAY;

// The requests with their estimates, by id.
let known = new Map();
// The cards that are shown, by all that they show.
let cards = new Map();

const isWaiting = ({ status }) => status === 'WAITING';

/** Return the requests that wait, or have just waited in vain, with estimates
 * and with times as numbers. */
export async function read(api, requests) {
  const shown = requests.map((request) => ({
    ...request, start: times.parse(request.start_date),
    latest: times.parse(request.latest_start_date),
    until: times.parse(request.wait_until),
  })).filter((request) => isWaiting(request)
    || (request.status === 'LAPSED' && request.until > times.now() - SHOWN));
  const waiting = shown.filter(isWaiting).slice(0, ESTIMATED);
  known = new Map(await Promise.all(waiting.map(async ({ id, position }) => {
    const old = known.get(id);
    if (old?.position === position && times.now() - old.read < OLD) {
      return [id, old];
    }
    const request = await api.get(`/requests/${id}`).then(
      (answer) => answer.request, (error) => {
        // It has been removed since the list was read.
        if (error.status !== 404) throw error;
      });
    return [id, { position, read: times.now(),
      estimate: times.parse(request?.estimate) }];
  })));
  return shown.map((request) => (
    { ...request, estimate: known.get(request.id)?.estimate }));
}

/**
 * Show requests.
 *
 * @param {Object} on `drop(request)` cancels a request, with a promise
 */
export function draw(requests, on) {
  cards = new Map(requests.map((request) => {
    const key = JSON.stringify([request, times.getZone()]);
    return [key, cards.get(key) ?? card(request, on)];
  }));
  arrange($('requests'), [...cards.values()]);
  $('requests').hidden = cards.size === 0;
}

function card(request, on) {
  const { name, start, latest, duration, until, position } = request;
  const waits = isWaiting(request);
  return h('li.card.waiting', {},
    h('div.head', {}, h('strong.name', {}, name),
      h('span.status', {}, waits ? `waiting, position ${position}`
        : 'has waited in vain')),
    h('p', {}, `for ${times.lengthOf(duration)}, to start `,
      h('time', {
        ...times.hover(start), title: times.windowInUtc(start, latest),
      }, times.windowOf(start, latest))),
    waits ? h('p.quiet', {}, expected(request), until < latest
      ? ` It waits until ${times.short(until)}.` : '') : null,
    waits ? h('div.actions', {}, twice('Drop', name, 'Drop it: sure?',
      () => on.drop(request))) : null);
}

function expected({ estimate, latest }) {
  if (estimate === undefined) return '';
  if (estimate === null) return 'When there will be room is not known.';
  return estimate > latest
    ? `Room is expected ${times.short(estimate)}, which is too late.`
    : `Room is expected ${times.short(estimate)}.`;
}
