// SPDX-License-Identifier: Apache-2.0
// Maintenances, which administrators plan once they have seen, by a dry run,
// who is in the way.

import { $, amount, arrange, h, twice } from './dom.js';
import { edit } from './editor.js';
import { ids } from './leases.js';
import * as times from './times.js';

const WHY = {
  servers: 'has servers there', no_room: 'has no room elsewhere',
  changing: 'is being started or ended',
};
const OVER = 'OVER';
// The most leases in the way, and hosts, that are named.
const MAX_NAMED = 10;

// The lines that are shown, by all that they show.
let lines = new Map();

/** Show maintenances; `on.end(maintenance)` ends one, with a promise. */
export function draw(maintenances, on) {
  lines = new Map(maintenances.filter(({ status }) => status !== OVER).map(
    (each) => {
      const key = JSON.stringify([each, times.getZone()]);
      return [key, lines.get(key) ?? line(each, on)];
    }));
  arrange($('maintenances'), lines.size ? [...lines.values()] : [NOTHING]);
}

const NOTHING = h('li.empty', {}, 'No maintenance is planned.');

function line(each, on) {
  const planned = each.status === 'PLANNED';
  return h('li', {}, h('strong', {}, each.name),
    ` (${each.status.toLowerCase()}), ${named(each.hosts)}, `,
    windowOf(each), each.reason ? `: ${each.reason} ` : ' ',
    twice(planned ? 'Cancel' : 'End', each.name,
      planned ? 'Cancel it: sure?' : 'End it: sure?', () => on.end(each)));
}

function windowOf({ start_date: from, end_date: until }) {
  const [start, end] = [from, until].map(times.parse);
  return h('time', {
    ...times.hover(start), title: times.windowInUtc(start, end),
  }, times.windowOf(start, end));
}

/** Return some of the names, and the number of the others. */
function named(names) {
  const more = names.length - MAX_NAMED;
  return names.slice(0, MAX_NAMED).join(', ')
    + (more > 0 ? ` and ${more} more` : '');
}

/** Ask for a maintenance; `look(values, refuse)` shows what it concerns. */
export function plan(look) {
  edit('Plan a maintenance', [
    { name: 'name', label: 'Name' },
    { name: 'reason', label: 'Reason', required: false },
    { name: 'start_date', label: 'From (now, if empty)', required: false,
      type: 'datetime-local' },
    { name: 'end_date', label: 'Until (not known yet, if empty)',
      required: false, type: 'datetime-local' },
    { name: 'hosts', label: 'Hosts, by their names', required: false },
    { name: 'resource_properties', required: false,
      label: 'or those that meet, such as ["==", "$rack", "7"]' },
  ], 'Look who is in the way', (values, refuse) => {
    const asked = Object.entries(values).filter(([, value]) => value).map(
      ([name, value]) => [name, name.endsWith('_date')
        ? times.iso(times.fromInput(value))
        : name === 'hosts' ? ids(value) : value]);
    return look(Object.fromEntries(asked), refuse);
  });
}

/** Say what a maintenance concerns; `leases` are those of all projects. */
export function concerned(maintenance, leases) {
  const { hosts, moved = [], in_the_way: left, servers } = maintenance;
  const known = new Map(leases.map((lease) => [lease.id, lease]));
  const who = left.map(({ lease_id: id, why }) => {
    const { name = id, project_id: project } = known.get(id) ?? {};
    return `${name}${project ? ` of ${project}` : ''} ${WHY[why] ?? ''}`;
  });
  return h('p', {}, `${maintenance.name}, `, windowOf(maintenance),
    `: ${amount(hosts.length, 'host')} (${named(hosts)}), `
    + `${amount(moved.length, 'reservation')} to move, `
    + `${amount(servers, 'server')} to leave, and `,
    left.length ? h('span.bad', {}, `in the way: ${named(who)}.`)
      : h('span.good', {}, 'no reservation in the way.'));
}
