// SPDX-License-Identifier: Apache-2.0
// The leases of the project: what they have, and what happens at their end.

import { $, amount, arrange, fill, h, twice } from './dom.js';
import { edit } from './editor.js';
import * as series from './series.js';
import * as times from './times.js';

const OVER = new Set(['TERMINATED', 'ERROR']);
// The most leases that have ended that are shown.
const MAX_ENDED = 50;
export const AT_END = {
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
export function size(each) {
  const count = each.available ?? each.hosts?.length ?? each.amount
    ?? each.max ?? 1;
  if (each.product) return `${count} × ${each.product}`;
  return amount(Number(count), TYPES[each.resource_type] ?? 'instance');
}

/** Return the ids in a text. */
export const ids = (text) => text.split(/[\s,]+/).filter(Boolean);

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
 * Show the leases; those of a series are in the card of the series, and one
 * that `isForeign` is among what an administrator looks after.
 *
 * @param {Object} on `prolong(lease, seconds)`, `show(lease)`; `end(lease,
 *   started)`, with a promise; and as in `series.card`
 */
export function draw(leases, allSeries, selected, on) {
  const current = leases.filter((lease) => !isOver(lease))
    .sort((a, b) => a.start - b.start);
  const drawn = new Map();
  const listed = [];
  const foreign = [];
  const recurring = new Map(allSeries.map(
    (each) => [each.id, { each, own: [], inner: [] }]));
  // A card whose button asks whether to end the lease stays as it is.
  const asking = document.querySelector('.cards .danger')?.closest('.card');
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
    if (lease.isForeign) foreign.push(element);
    else if (!group) listed.push([lease.start, element]);
  }
  arrange($('foreign'), foreign);
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

/** Show the last leases that have ended. */
export function drawEnded(leases) {
  const ended = leases.filter(isOver).sort((a, b) => b.end - a.end);
  $('ended').hidden = !ended.length;
  $('ended').firstElementChild.textContent = `Ended leases: ${ended.length}`;
  fill($('ended').lastElementChild, ended.slice(0, MAX_ENDED).map((lease) =>
    h('li', {}, h('strong', {}, lease.name),
      ` (${lease.status.toLowerCase()}): ${content(lease)}, `,
      h('time', times.hover(lease.start),
        times.windowOf(lease.start, lease.end)))));
}

/** Show the limits of which the project uses something. */
export function drawLimits(limits) {
  $('limits').textContent = limits
    .filter(({ limit, used }) => limit >= 0 && used)
    .map(({ unit, limit, used }) =>
      `${Number(used.toFixed(1))} of ${limit} ${unit}`)
    .join(', ');
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
  lease.isForeign ? h('p.quiet', {}, `Project ${lease.project_id}`) : null,
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
  ending(lease),
  sharing(lease),
  h('div.actions', {},
    lease.end === null ? null : [h('button', {
      type: 'button', onclick: () => on.prolong(lease, times.HOUR),
      'aria-label': `+1 h: prolong ${lease.name}`,
    }, '+1 h'), h('button', {
      type: 'button', onclick: () => on.prolongFarthest(lease),
      'aria-label': `Longest: prolong ${lease.name} as far as possible`,
    }, 'Longest')],
    h('button', {
      type: 'button', onclick: () => change(lease, started, on),
      'aria-label': `Change: ${lease.name}`,
    }, 'Change'),
    started ? twice('End now', lease.name, 'End it: sure?',
      () => on.end(lease, started))
      : twice('Cancel', lease.name, 'Cancel it: sure?',
        () => on.end(lease, started))));
}

/** Show a dialog with what of a lease can be changed. */
function change(lease, started, on) {
  const old = {
    name: lease.name, start: times.toInput(lease.start),
    end: lease.end === null ? '' : times.toInput(lease.end),
  };
  const of = (each) => lease.reservations.length > 1 ? ` (${size(each)})` : '';
  const fields = lease.reservations.flatMap((each) => {
    const most = each.max ?? each.amount;
    // The lifetime of a server has no number.
    if (most === undefined) return [];
    old[`count ${each.id}`] = String(most);
    const count = { name: `count ${each.id}`, type: 'number', min: 1,
      label: `How many${of(each)}`, value: old[`count ${each.id}`] };
    if (!AT_END[each.on_end] || !each.projects) return [count];
    old[`on_end ${each.id}`] = each.on_end;
    old[`projects ${each.id}`] = each.projects.join(', ');
    return [count, {
      name: `on_end ${each.id}`, label: `At the end${of(each)}`,
      value: each.on_end, choices: Object.entries(AT_END),
    }, {
      name: `projects ${each.id}`, required: false,
      label: `Shared with projects, by their ids${of(each)}`,
      value: old[`projects ${each.id}`],
    }];
  });
  edit(`Change ${lease.name}`, [
    { name: 'name', label: 'Name', value: old.name, maxlength: 80 },
    ...(started ? [] : [{ name: 'start', label: 'From', value: old.start,
      type: 'datetime-local' }]),
    { name: 'end', label: 'Until (without an end, if empty)', value: old.end,
      type: 'datetime-local', required: false },
    ...fields,
  ], 'Change', (values, refuse) =>
    on.update(lease, changed(lease, old, values), refuse));
}

/** Return the changes of a lease, as the API reads them. */
function changed(lease, old, values) {
  const has = (name) => values[name] !== undefined
    && values[name] !== old[name];
  const iso = (text) => text ? times.iso(times.fromInput(text)) : null;
  const reservations = lease.reservations.map((each) => {
    const count = Number(values[`count ${each.id}`]);
    return {
      ...(has(`count ${each.id}`) && (each.max === undefined
        ? { amount: count } : { min: each.min === each.max ? count
          : Math.min(each.min, count), max: count })),
      ...(has(`on_end ${each.id}`)
        && { on_end: values[`on_end ${each.id}`] }),
      ...(has(`projects ${each.id}`)
        && { projects: ids(values[`projects ${each.id}`]) }),
      id: each.id,
    };
  }).filter((each) => Object.keys(each).length > 1);
  return {
    ...(has('name') && { name: values.name }),
    ...(has('start') && { start_date: iso(values.start) }),
    ...(has('end') && { end_date: iso(values.end) }),
    ...(reservations.length && { reservations }),
  };
}

/** Say with whom a lease is shared. */
function sharing(lease) {
  const others = new Set(lease.reservations.flatMap(
    ({ projects }) => projects ?? []));
  return others.size
    ? h('p.quiet', {}, `Shared with ${[...others].join(', ')}.`) : null;
}

function ending(lease) {
  const said = atEnd(lease);
  if (lease.end === null || !said) return null;
  const announced = lease.beforeEnd && lease.beforeEnd > times.now()
    ? `, announced ${times.short(lease.beforeEnd)}` : '';
  return h('p.quiet', {}, `At the end ${said}${announced}.`);
}
