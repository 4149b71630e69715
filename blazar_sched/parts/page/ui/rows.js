// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline, read page by page from the API.

import * as times from './times.js';

const PAGE = 500;
// Parts of the window of rows that are groups.
const PARTS = 150;
// The window that is read is the view, and as much before and after it; it is
// read again when the view is far smaller.
const MARGIN = 1;
const COARSEST = 9;

const KINDS = {
  lease: 'lease', offer: 'held offer', cleaning: 'cleaning',
  maintenance: 'maintenance', closed: 'closed', server: 'server without a lease',
  preemptible: 'preemptible server', relocation: 'place of a server to move',
};

/** Say what a bar is; kinds may be new. */
export function kindOf({ kind, blocks }) {
  return (KINDS[kind] ?? 'taken') + (blocks ? ', in the way of a lease' : '');
}

export class Rows {
  /** @param {function(Array)} shown gets the rows, page by page */
  constructor(api, shown) {
    this.api = api;
    this.shown = shown;
    this.forget();
  }

  forget() {
    this.loading?.abort();
    this.query = null;
    this.etag = null;
    this.rows = [];
  }

  covers(view) {
    const { query } = this;
    return query !== null && query.group_by === view.groupBy
      && query.resource_class === classOf(view)
      && (this.start <= view.start || view.groupBy === 'flavor')
      && this.end >= view.end
      && this.end - this.start <= COARSEST * view.span * (1 + 2 * MARGIN);
  }

  /** Read what is in view, if it is not known, or if it may have changed. */
  async load(view, again) {
    if (this.covers(view)) {
      // The pages are read one after another.
      if (again && !this.loading) await this.read(this.query, this.etag);
      return;
    }
    const pad = MARGIN * view.span;
    this.start = Math.floor((view.start - pad) / 60) * 60;
    this.end = Math.ceil((view.end + pad) / 60) * 60;
    if (view.groupBy === 'flavor') {
      // What would fit in the past is not known.
      this.start = Math.max(this.start, times.now());
      this.end = Math.max(this.end, this.start + times.HOUR);
    }
    this.query = {
      start_date: times.iso(this.start), end_date: times.iso(this.end),
      group_by: view.groupBy, limit: view.groupBy === 'flavor' ? 50 : PAGE,
      ...(view.groupBy !== 'host' && { parts: PARTS }),
      ...(classOf(view) && { resource_class: classOf(view) }),
    };
    await this.read(this.query, null);
  }

  async read(query, etag) {
    this.loading?.abort();
    const loading = this.loading = new AbortController();
    const old = this.rows;
    const rows = [];
    let marker = null;
    try {
      do {
        const answer = await this.api.get('/timeline', { ...query, marker }, {
          signal: loading.signal, etag: marker === null ? etag : null,
        });
        if (answer === null) return;
        const { timeline } = answer.document;
        if (marker === null) this.etag = answer.etag;
        for (const row of timeline.rows) {
          rows.push(rowOf(row, timeline, rows.length));
        }
        marker = timeline.marker;
        this.rows = marker === null ? rows
          : [...rows, ...old.slice(rows.length)];
        this.shown(this.rows);
      } while (marker !== null);
    } finally {
      if (this.loading === loading) this.loading = null;
    }
  }
}

/** Return the resource class of the shares; rows of flavors have none. */
function classOf({ groupBy, resourceClass }) {
  return groupBy !== 'flavor' && resourceClass || undefined;
}

function rowOf(row, { group_by: by, parts }, index) {
  const name = row.name ?? (by === 'host' ? `Host ${index + 1}` : 'without');
  const size = by === 'host' || by === 'flavor' ? '' : ` (${row.hosts})`;
  const hint = [name, row.zone && `zone ${row.zone}`,
    row.available ? '' : 'takes no new leases'].filter(Boolean).join(', ');
  return {
    key: row.key, label: name + size, hint, host: by === 'host',
    off: !row.available, requirement: requirement(row, by),
    heat: heat(row, parts),
    bars: blocking(row.bars.map(barOf)), leftOut: row.bars_left_out,
  };
}

function requirement(row, by) {
  if (row.name === null || by === 'flavor') return null;
  const name = { host: 'hypervisor_hostname', zone: 'availability_zone' }[by]
    ?? by.replace(/^\$/, '');
  return ['==', `$${name}`, row.name];
}

function barOf(bar) {
  const held = bar.mine && bar.kind === 'offer' ? 'held for you' : null;
  return {
    start: times.parse(bar.start_date), end: times.parse(bar.end_date),
    kind: KINDS[bar.kind] ? bar.kind : 'taken', mine: bar.mine,
    share: bar.share, label: bar.name || held, degraded: bar.degraded === true,
    state: bar.status?.toLowerCase() ?? '', project: bar.project_id,
    // A held offer becomes a lease with the same id.
    id: ['lease', 'offer'].includes(bar.kind) ? bar.lease_id : null,
    server: bar.server_id,
  };
}

/**
 * Return the bars of a row; a server that is there in the window of a lease of
 * the whole host has the bar of the lease as `blocks`.
 */
function blocking(bars) {
  const now = times.now();
  const leases = bars.filter(({ kind, share, end }) =>
    kind === 'lease' && share >= 1 && (end ?? Infinity) > now);
  return bars.map((bar) => bar.kind !== 'server' ? bar : {
    ...bar,
    blocks: leases.find(({ start }) => start < (bar.end ?? Infinity)),
  });
}

/**
 * Return the free share of a group over time: {start, end, level, count,
 * text}. Parts that show the same are one.
 */
function heat({ free, free_hosts: hosts, instances, hosts: all }, parts) {
  const most = instances ? Math.max(...instances, 1) : 1;
  const found = [];
  parts.forEach((part, index) => {
    const share = instances ? instances[index] / most : free[index];
    const [start, end] = [part.start_date, part.end_date].map(times.parse);
    const text = instances ? `${instances[index]} instances fit`
      : `${Math.round(share * 100)} % free, ${hosts[index]} of ${all} `
        + 'hosts as a whole';
    if (found.at(-1)?.text === text) {
      found.at(-1).end = end;
      return;
    }
    found.push({
      start, end, text,
      level: share <= 0 ? 0 : Math.min(1 + Math.floor(share * 4), 4),
      count: instances ? instances[index] : hosts[index],
    });
  });
  return found;
}
