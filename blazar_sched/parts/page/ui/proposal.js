// SPDX-License-Identifier: Apache-2.0
// What a drag proposes: a new lease, or another window of a lease. While the
// pointer moves, dry runs tell whether there is room; what is booked in the
// end is what is shown.

import { newKey } from './api.js';
import { $, amount, debounced, fill, h } from './dom.js';
import { dates } from './finder.js';
import { size } from './leases.js';
import { concerned } from './maintenance.js';
import { refusal } from './obstacle.js';
import { isWaiting } from './offers.js';
import { booked } from './series.js';
import * as times from './times.js';

// Milliseconds without a move of the pointer after which a dry run is sent.
const QUIET = 120;
const HINT = 'Drag over free time to book it, an own lease to come to move it, '
  + 'or the end of an own lease to prolong it.';

export class Proposal {
  /**
   * @param {Api} api
   * @param {Timeline} timeline
   * @param {Finder} finder says what is booked, and how many
   * @param {function()} changed is called after a change, and returns a
   *   promise of what is shown then
   */
  constructor(api, timeline, finder, changed) {
    Object.assign(this, { api, timeline, finder, changed });
    this.ask = debounced(() => this.askNow(), QUIET);
    this.clear();
  }

  /** Forget the proposal. */
  clear() {
    this.asking?.abort();
    this.now = null;
    this.timeline.haunt([]);
    fill($('proposal'), h('p.quiet', {}, HINT));
  }

  /** Say something that needs no answer. */
  tell(text, kind = '') {
    fill($('proposal'), h(`p${kind && `.${kind}`}`, {}, text), this.closer());
  }

  closer(text = 'Close') {
    return h('button', { type: 'button', onclick: () => this.clear() }, text);
  }

  // A new lease.

  /** Propose a lease over the rows and the window of a selection. */
  drag(selection) {
    const rows = this.timeline.data.slice(selection.from, selection.to);
    const byHost = rows.every((row) => row.host);
    const hosts = this.finder.noun === 'host';
    const count = byHost && hosts ? rows.length : this.finder.count;
    const key = newKey();
    // A product has its own requirement.
    const required = this.finder.kind === 'product' ? null
      : requirement(rows);
    const reservations = this.finder.reservations(count, required);
    const { rule } = this.finder;
    const order = ({ start, end } = selection) =>
      this.finder.order(start, end, reservations, rule);
    this.propose({
      ...selection,
      text: [...this.finder.further.map(size),
        amount(count, this.finder.noun)].join(', '),
      send: (path, signal, window) => this.api.post(
        path, order(window).body, { signal, key: `${key} ${window?.start}` }),
      order,
      // The service chooses the rows, so it does not choose taken rows.
      isElsewhere: !required && rows.some((row) => row.bars.some(
        ({ start, end }) => start < selection.end
          && (end ?? Infinity) > selection.start)),
      path: order().path, verb: 'Book', isNamed: true,
    });
  }

  /** Book at once what the finder has found. */
  async book(order, key) {
    const { path, body } = order;
    await this.send(() => this.api.post(path, body, { key }),
      (answer) => answer.series ? booked(answer.series)
        : `${body.name} is booked.`, (error) => this.refuseOrder(error, order));
  }

  /** Show the refusal of an order, and its offer. */
  refuseOrder(error, order) {
    const { path, body } = order;
    if (path === '/leases' && !error.body?.offer?.start_date) {
      this.tell(refusal(error), 'bad');
      return;
    }
    const key = newKey();
    this.now = {
      from: 0, to: 1, text: body.name, verb: 'Book', path,
      order: () => order,
      send: (_, signal, window) => this.api.post(path, {
        ...body, ...dates(window.start, window.end),
      }, { signal, key }),
    };
    this.refused(error);
  }

  /** Ask for the lease that waits for room. */
  wait(body, key) {
    return this.send(() => this.api.post('/requests', body, { key }),
      ({ request: { status, position } }) => status === 'BOOKED'
        ? `${body.name} is booked: there is room.`
        : `${body.name} waits for room, at position ${position}.`);
  }

  drop(request) {
    return this.send(() => this.api.delete(`/requests/${request.id}`),
      `${request.name} does not wait any more.`);
  }

  changeAll(series, values, refuse) {
    return this.send(() => this.api.put(`/series/${series.id}`, values),
      (answer) => booked(answer.series), refuse);
  }

  endAll(series) {
    return this.send(() => this.api.delete(`/series/${series.id}`),
      `${series.name} is ended, and its leases to come are cancelled.`);
  }

  // Held offers.

  /** Hold the window of a request for offers; return the id of the offer. */
  async hold(body, key, done) {
    let id = null;
    await this.send(async () => {
      const { offers: [offer] } = await this.api.post(
        '/offers', body, { key });
      if (!offer) throw new Error('This window has been taken meanwhile.');
      ({ id } = offer);
      return offer;
    }, (offer) => isWaiting(offer)
      ? `${done} An administrator has to approve it first.` : done);
    return id;
  }

  take(offer, name) {
    return this.send(
      () => this.api.post('/leases', { name, offer: offer.id }),
      `${name} is booked.`);
  }

  approve(offer) {
    return this.send(
      () => this.api.put(`/offers/${offer.id}`, { approved: true }),
      'The offer is approved.');
  }

  release(offer) {
    return this.send(() => this.api.delete(`/offers/${offer.id}`),
      'The offer is not held any more.');
  }

  // A maintenance.

  /** Show what a maintenance would concern; return the button that plans it.
   */
  async look(body, refuse, leases) {
    try {
      const { maintenance } = await this.api.post(
        '/maintenances?dry_run=true', body);
      const force = maintenance.in_the_way.length > 0;
      const button = h(force ? 'button.danger' : 'button.primary', {
        type: 'button', onclick: () => this.send(
          () => this.api.post('/maintenances', { ...body, force }),
          `${body.name} is planned.`),
      }, force ? 'Plan it all the same' : 'Plan it');
      this.clear();
      fill($('proposal'), concerned(maintenance, leases), button,
        this.closer('Cancel'));
      return button;
    } catch (error) {
      if (error.name !== 'AbortError') refuse(error);
      return false;
    }
  }

  open(maintenance) {
    return this.send(
      () => this.api.delete(`/maintenances/${maintenance.id}`),
      `${maintenance.name} is over, and its hosts are open.`);
  }

  // Another window of a lease.

  /** Propose another end of the lease of a bar. */
  pull(bar, end) {
    this.change(bar, {
      start: bar.start, end, extends: true,
      send: (path, signal, window = { end }) => this.api.put(path, {
        end_date: times.iso(window.end),
      }, { signal }),
      verb: end > bar.end ? 'Prolong' : 'Shorten',
      said: (window) => `${bar.label} ends ${times.short(window.end)}.`,
    });
  }

  /** Propose another start of the lease of a bar that has not started. */
  shift(bar, start) {
    const moved = { start, end: bar.end && bar.end + start - bar.start };
    this.change(bar, {
      ...moved,
      send: (path, signal, window = moved) => this.api.put(
        path, dates(window.start, window.end), { signal }),
      verb: 'Move',
      said: (window) => `${bar.label} begins ${times.short(window.start)}.`,
    });
  }

  change(bar, proposal) {
    const row = this.timeline.data.findIndex(
      (each) => each.bars.some((other) => other.id === bar.id));
    this.propose({
      from: row, to: row + 1, text: bar.label, path: `/leases/${bar.id}`,
      ...proposal,
    });
  }

  prolong(lease, seconds) {
    this.pull({ ...lease, label: lease.name }, lease.end + seconds);
    this.dropped(true);
  }

  /** Propose the latest end that a lease may have, within a year. */
  async prolongFarthest(lease) {
    this.clear();
    const { extension } = await this.api.get(`/leases/${lease.id}/extension`, {
      end_date: times.iso(Math.max(lease.end, times.now()) + times.YEAR),
    });
    // Something else may have been proposed meanwhile.
    if (this.now || this.isSending) return;
    const end = times.parse(extension.end_date);
    if (end <= lease.end) {
      this.tell(`${lease.name} cannot be prolonged.`, 'bad');
      return;
    }
    this.pull({ ...lease, label: lease.name }, end);
    await this.dropped();
  }

  /** Change a lease; `refuse` gets the error of a refusal. */
  update(lease, values, refuse) {
    return this.send(() => this.api.put(`/leases/${lease.id}`, values),
      `${values.name ?? lease.name} is changed.`, refuse);
  }

  // Both.

  propose(proposal) {
    this.now = proposal;
    this.verdict = null;
    this.shown();
    this.ask();
  }

  /** Ask at once, as the pointer is released; book if `atOnce` and possible.
   */
  async dropped(atOnce = false) {
    const proposal = this.now;
    await this.askNow();
    if (this.now === proposal && atOnce && this.verdict === 'yes') {
      await this.accept();
    }
  }

  async askNow() {
    const proposal = this.now;
    // A dry run that began later would end this one without an answer.
    this.ask.cancel();
    this.asking?.abort();
    if (!proposal) return;
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      await proposal.send(`${proposal.path}?dry_run=true`, signal);
      if (this.now !== proposal) return;
      this.verdict = 'yes';
      this.shown();
    } catch (error) {
      if (error.name === 'AbortError' || this.now !== proposal) return;
      this.refused(error);
    }
  }

  /** Show a refusal, with its offer as a ghost that a click books. */
  refused(error) {
    this.verdict = 'no';
    const { offer } = error.body ?? {};
    const [start, end] = [offer?.start_date, offer?.end_date].map(times.parse);
    this.offer = null;
    const recurs = this.now.path === '/series';
    this.skips = recurs && error.status === 409;
    if (this.now.extends && end > this.now.start) {
      this.offer = { start: this.now.start, end };
    } else if (!this.now.extends && !recurs && start) {
      this.offer = { start, end };
    }
    this.shown(error);
  }

  shown(error) {
    this.error = error;
    const {
      start, end, from, to, text, verb, isElsewhere, isNamed,
    } = this.now;
    const offer = this.verdict === 'no' ? this.offer : null;
    const ghosts = [];
    if (start !== undefined && !(isElsewhere && this.verdict === 'yes')) {
      const kind = { yes: 'yes', no: 'no' }[this.verdict] ?? 'wait';
      const said = { yes: 'room', no: 'no room' }[this.verdict] ?? '…';
      ghosts.push({ start, end, from, to, kind,
        label: end === null ? `${text}: ${said}`
          : `${text}, ${times.lengthOf(end - start)}: ${said}` });
    }
    if (offer) {
      ghosts.push({ ...offer, from, to, kind: 'offer', offer: true,
        label: `${verb} ${this.now.extends
          ? `until ${times.short(offer.end)}`
          : `from ${times.short(offer.start)}`} instead` });
    }
    this.timeline.haunt(ghosts);
    fill($('proposal'), this.sentence(error),
      isNamed && this.verdict !== null ? this.namer() : null,
      this.verdict === 'yes' ? this.button(verb, this.now, true) : null,
      offer ? this.button(`${verb} ${
        times.windowOf(offer.start, offer.end)} instead`, offer) : null,
      this.verdict === 'no' && this.skips ? this.skipper(this.now) : null,
      this.closer('Cancel'));
  }

  /** Return a field with the name of the lease, which is the finder's. */
  namer() {
    return h('label', {}, 'named ', h('input', {
      value: this.finder.name, maxlength: 80, size: 12, spellcheck: 'false',
      oninput: ({ target }) => { $('name').value = target.value; },
    }));
  }

  /** Show times in the zone that is chosen now. */
  redraw() {
    if (this.now) this.shown(this.error);
    else this.clear();
  }

  sentence(error) {
    const { start, end, text, isElsewhere } = this.now;
    const window = start === undefined ? '' : h('time', {
      title: times.windowInUtc(start, end), datetime: times.iso(start),
    }, `, ${times.windowOf(start, end)}`);
    if (this.verdict === null) return h('p', {}, text, window, ': asking…');
    return this.verdict === 'yes'
      ? h('p.good', {}, text, window, isElsewhere
        ? ': there is room on other hosts.' : ': there is room.')
      : h('p.bad', {}, text, window, `: ${refusal(error)}`);
  }

  button(text, window, isPrimary = false) {
    return h(isPrimary ? 'button.primary' : 'button.offer', {
      type: 'button', title: times.windowInUtc(window.start, window.end),
      onclick: () => this.accept(window),
    }, text);
  }

  /** Return the button for the occurrences of a series that have room. */
  skipper({ path, order }) {
    const key = newKey();
    return h('button.offer', {
      type: 'button', onclick: () => this.book({
        path, body: { ...order().body, if_no_room: 'skip' },
      }, key),
    }, 'Book what has room');
  }

  /** Book what is proposed, or the window of an offer. */
  async accept(window) {
    const proposal = this.now;
    const whole = { ...proposal, ...window };
    await this.send(() => proposal.send(proposal.path, undefined, whole),
      (answer) => answer.series ? booked(answer.series)
        : proposal.said?.(whole) ?? `${whole.text} booked.`, (error) => {
        this.now = proposal;
        this.refused(error);
      });
  }

  /** Send a change; tell what was done, or why not; return whether it was
   * done. One change is sent at a time. `done` may be a function of the
   * answer. */
  async send(
    change, done, refused = (error) => this.tell(error.message, 'bad')) {
    if (this.isSending) return false;
    this.busy(true);
    try {
      const answer = await change();
      this.clear();
      this.tell(typeof done === 'function' ? done(answer) : done, 'good');
      return true;
    } catch (error) {
      if (error.name === 'AbortError') return false;
      refused(error);
      return false;
    } finally {
      this.busy(false);
      await this.changed();
    }
  }

  /** Have the buttons wait for the answer to a change, and say so. */
  busy(isSending) {
    this.isSending = isSending;
    this.finder.wait(isSending);
    $('main').setAttribute('aria-busy', isSending);
    if (!isSending) return;
    this.asking?.abort();
    this.ask.cancel();
    fill($('proposal'), h('p', {}, 'Waiting for the answer…'));
  }

  end(lease, started) {
    return this.send(
      () => started ? this.api.put(`/leases/${lease.id}`, { end_date: 'now' })
        : this.api.delete(`/leases/${lease.id}`),
      started ? `${lease.name} ends now.` : `${lease.name} is cancelled.`);
  }
}

/** Return what the hosts of any of `rows` have in common. */
function requirement(rows) {
  const known = rows.map((row) => row.requirement).filter(Boolean);
  if (known.length < rows.length) return null;
  return known.length === 1 ? known[0] : ['or', ...known];
}
