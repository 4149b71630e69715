// SPDX-License-Identifier: Apache-2.0
// What an administrator looks after: hosts, and leases with a problem.

import { $, fill, h } from './dom.js';
import { content, read } from './leases.js';
import * as times from './times.js';

// The most leases of other projects to choose from.
const MAX_LEASES = 500;

/** Show the leases of other projects to choose from, of which one is
 * `selected`. */
export function offer(leases, selected) {
  const list = $('any_lease');
  // Nobody loses what is being chosen.
  if (document.activeElement === list) return;
  const chosen = list.value || selected;
  const choice = leases.length > MAX_LEASES
    ? `Choose one of the first ${MAX_LEASES} of ${leases.length} leases`
    : 'Choose a lease';
  fill(list, h('option', { value: '' },
    leases.length ? choice : 'There is none'),
  leases.slice(0, MAX_LEASES).map((lease) => h('option', {
    value: lease.id, selected: lease.id === chosen,
  }, `${lease.name}, project ${lease.project_id}`)));
}

/**
 * Show the held offers of all projects that wait for approval.
 *
 * @param {Object} on `approve(offer)` and `refuse(offer)`
 */
export function drawApprovals(held, on) {
  const list = $('approvals');
  fill(list, held.length ? held.map((offer) => approval(offer, on))
    : h('li.empty', {}, 'No held offer waits for approval.'));
}

function approval(offer, on) {
  const what = `${content(offer)} of project ${offer.project_id}`;
  return h('li', {}, h('strong', {}, what), ', ',
    h('time', times.hover(offer.start),
      times.windowOf(offer.start, offer.end)),
    `, held until ${times.short(offer.until)}: ${offer.needs_approval} `,
    h('button.primary', {
      type: 'button', 'aria-label': `Approve: ${what}`,
      onclick: () => on.approve(offer),
    }, 'Approve'), ' ',
    h('button', {
      type: 'button', 'aria-label': `Refuse: ${what}`,
      onclick: () => on.refuse(offer),
    }, 'Refuse'));
}

/** Show the problems of all projects, and the hosts. */
export function draw(hosts, leases, rows) {
  const bad = leases.map(read).filter(
    (lease) => lease.degraded || lease.status === 'ERROR');
  fill($('problems'), bad.length ? bad.map((lease) => problem(lease))
    : h('li.empty', {}, 'No lease is degraded.'));
  const inTheWay = rows.flatMap((row) => row.bars
    .filter(({ blocks }) => blocks).map((bar) => crossing(row, bar)));
  fill($('crossings'), inTheWay.length ? inTheWay
    : h('li.empty', {}, 'No server is in the way of a lease of a whole '
      + 'host.'));
  $('crossings').previousElementSibling.hidden = !rows.some(
    (row) => row.host);
  $('crossings').hidden = $('crossings').previousElementSibling.hidden;
  fill($('hosts'),
    h('thead', {}, h('tr', {}, ['Host', 'Zone', 'vCPUs', 'Memory', 'Disk',
      'New leases'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, hosts.map((host) => h('tr', {},
      h('th', { scope: 'row' }, host.hypervisor_hostname),
      h('td', {}, host.availability_zone ?? '–'),
      h('td', {}, String(host.vcpus)),
      h('td', {}, `${Math.round(host.memory_mb / 1024)} GB`),
      h('td', {}, `${host.local_gb} GB`),
      h('td', {}, host.reservable === false ? 'no' : 'yes')))));
}

function problem(lease) {
  const missing = lease.reservations.filter((each) => each.missing_resources);
  return h('li', {}, h('strong', {}, lease.name),
    ` (${lease.status.toLowerCase()}), project ${lease.project_id}: `,
    missing.length ? 'lacks resources; ' : '', content(lease), ', ',
    h('time', times.hover(lease.start),
      times.windowOf(lease.start, lease.end)));
}

function crossing(row, { server, end, blocks }) {
  return h('li', {}, `${row.label}: server ${server} `,
    end === null ? 'without an end' : `until ${times.short(end)}`,
    ` is in the way of ${blocks.label} from `,
    h('time', times.hover(blocks.start), times.short(blocks.start)));
}
