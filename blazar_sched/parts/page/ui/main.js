// SPDX-License-Identifier: Apache-2.0
// The page: who is signed in, what is in view, and what is read again when.

import * as admin from './admin.js';
import { Api, Away } from './api.js';
import { $, debounced, fill, h } from './dom.js';
import { Finder } from './finder.js';
import * as leases from './leases.js';
import * as maintenance from './maintenance.js';
import * as offers from './offers.js';
import { Proposal } from './proposal.js';
import * as requests from './requests.js';
import { kindOf, Rows } from './rows.js';
import { SignIn } from './sign_in.js';
import * as strip from './strip.js';
import * as table from './table.js';
import { Timeline } from './timeline.js';
import * as times from './times.js';
import { View } from './view.js';

// Milliseconds between two looks for changes, and of quiet before what is in
// view is read.
const POLL = 10_000;
const QUIET = 200;
// The prefix of the property with the amount of a resource class, and the
// classes without such a property.
const RESOURCES = 'resources:';
const USUAL_CLASSES = ['VCPU', 'MEMORY_MB', 'DISK_GB'];
// Milliseconds between two looks at the clock.
const TICK = 1000;

class Page {
  constructor() {
    this.session = null;
    this.leases = [];
    this.held = [];
    this.offers = [];
    this.requests = [];
    this.series = [];
    this.hosts = null;
    this.api = new Api({
      expired: () => this.signIn('Your session has ended.'),
      away: (seconds) => this.away(seconds), back: () => this.back(),
    });
    this.view = new View(() => this.viewed());
    this.zone = this.view.zone;
    this.rows = new Rows(this.api, (rows) => this.show(rows));
    this.timeline = new Timeline(
      { axis: $('axis'), rows: $('rows'), sheet: $('sheet') }, this.view, {
        describe: (bar) => describe(bar),
        select: (bar) => this.select(bar.id),
        accept: (ghost) => this.proposal.accept(ghost),
        drag: (selection) => this.proposal.drag(selection),
        dropped: () => this.proposal.dropped(),
        pull: (bar, end) => this.proposal.pull(bar, end),
        shift: (bar, start) => this.proposal.shift(bar, start),
        pulled: () => this.proposal.dropped(),
        cancel: () => this.proposal.clear(),
      });
    this.finder = new Finder({
      search: (body, signal) => this.api.post('/offers', body, { signal }),
      book: (order, key) => this.proposal.book(order, key),
      wait: (body, key) => this.proposal.wait(body, key),
      hold: (body, key, text) => this.hold(body, key, text),
      changed: () => this.readCapacity(),
    });
    this.proposal = new Proposal(
      this.api, this.timeline, this.finder, () => this.refresh());
    this.dialog = new SignIn();
    this.read = debounced(() => this.attempt(() => this.load(false)), QUIET);
    this.readCapacity = debounced(
      () => this.attempt(() => this.loadCapacity()), QUIET);
    this.listen();
  }

  listen() {
    const acts = {
      earlier: () => this.view.move(-0.5), later_view: () => this.view.move(0.5),
      today: () => this.view.showNow(),
      closer: () => this.view.zoom(0.5), wider: () => this.view.zoom(2),
    };
    for (const [id, act] of Object.entries(acts)) {
      $(id).addEventListener('click', act);
    }
    for (const button of document.querySelectorAll('[data-span]')) {
      button.addEventListener('click', () => {
        const span = times.readLength(button.dataset.span);
        this.view.show(times.now() - span / 12, span);
      });
    }
    $('group').addEventListener('change', ({ target }) =>
      this.view.setGroupBy(target.value));
    $('resource_class').addEventListener('change', ({ target }) =>
      this.view.setResourceClass(target.value));
    $('zone').addEventListener('change', ({ target }) => this.view.setZone(
      target.value === 'UTC' ? 'UTC' : times.localZone()));
    $('project').addEventListener('change', ({ target }) =>
      this.enter(target.value));
    $('leave').addEventListener('click', () => this.leave());
    $('show_lease').addEventListener('click', () => {
      if ($('any_lease').value) this.select($('any_lease').value);
    });
    $('plan').addEventListener('click', () => maintenance.plan(
      (values, refuse) => this.proposal.look(values, refuse, this.all)));
    $('as_table').addEventListener('click', () => this.toggleTable());
    setInterval(() => this.poll(), POLL);
    setInterval(() => this.drawOffers(), TICK);
    document.addEventListener('visibilitychange', () => this.poll());
  }

  async start() {
    fill($('zone'), h('option', { value: '' }, times.localZone()),
      h('option', { value: 'UTC' }, 'UTC'));
    this.showZone();
    await this.signIn('');
  }

  // Who is signed in.

  /** Ask who it is; what is shown stays until another user signs in. */
  signIn(reason) {
    this.signingIn ??= this.dialog.ask(reason, this.session).then(
      (session) => {
        this.signingIn = null;
        this.adopt(session);
      });
    return this.signingIn;
  }

  adopt(session) {
    const old = this.session;
    this.session = session;
    this.api.token = session.token;
    this.api.scope = `${session.user.id} ${session.project.id}`;
    const same = old?.user.id === session.user.id
      && old?.project.id === session.project.id;
    if (!same) this.clear();
    $('user').textContent = session.user.name;
    fill($('project'), session.projects.map(({ id, name }) =>
      h('option', { value: id, selected: id === session.project.id }, name)));
    $('bar').hidden = false;
    $('main').hidden = false;
    clearTimeout(this.expiry);
    const left = (session.expires - times.now()) * 1000;
    if (left < 2 ** 31) {
      this.expiry = setTimeout(
        () => this.signIn('Your session has ended.'), Math.max(left, 0));
    }
    if (!same) this.attempt(() => this.open());
  }

  async enter(projectId) {
    try {
      this.adopt(await this.session.enter(projectId));
    } catch (error) {
      $('project').value = this.session.project.id;
      this.proposal.tell(error.message, 'bad');
    }
  }

  async leave() {
    const { session } = this;
    this.clear();
    this.session = null;
    this.api.token = null;
    this.api.scope = null;
    clearTimeout(this.expiry);
    $('bar').hidden = true;
    $('main').hidden = true;
    await session.end();
    this.signIn('');
  }

  /** Take everything of a project out of the page. */
  clear() {
    this.api.known.clear();
    this.rows.forget();
    this.leases = [];
    this.held = [];
    this.offers = [];
    this.requests = [];
    this.series = [];
    this.drawOffers();
    this.all = [];
    this.hosts = null;
    this.capacity = null;
    this.proposal.clear();
    this.timeline.forget();
    strip.draw(null, this.timeline);
    leases.drawEnded([]);
    leases.drawLimits([]);
    for (const id of ['now', 'leases', 'requests', 'table', 'problems', 'hosts',
      'crossings', 'any_lease', 'foreign', 'maintenances', 'found', 'others',
      'values', 'flavor_id', 'product_name', 'network']) fill($(id));
    $('admin').hidden = true;
    $('editor').close();
  }

  // What is read.

  async open() {
    await this.offer();
    this.finder.search();
    await this.load(true);
    await this.loadHosts();
  }

  /** Offer to choose from what there is now. */
  async offer() {
    const [{ zones, properties }, flavors, floatingIps] = await Promise.all([
      this.api.get('/properties'), this.readAllowed('flavors'),
      this.readAllowed('floatingips')]);
    this.finder.offerProperties(properties.map(
      ({ property, values }) => ({ name: property, values })));
    this.finder.offerFlavors(flavors ?? []);
    this.finder.offerNetworks(floatingIps ?? []);
    await this.offerProducts();
    this.offerGroups(zones, properties);
    this.offerClasses(properties);
  }

  async offerProducts() {
    this.finder.offerProducts(await this.readAllowed('products') ?? []);
  }

  offerGroups(zones, properties) {
    const groups = [['host', 'host'],
      ...(zones.length > 1 ? [['zone', 'zone']] : []),
      ...properties.filter(({ values }) => values.length > 1)
        .map(({ property }) => [`$${property}`, property]),
      ['flavor', 'flavor']];
    const known = groups.some(([value]) => value === this.view.groupBy);
    if (!known) this.view.groupBy = 'host';
    fill($('group'), groups.map(([value, label]) => h('option', {
      value, selected: value === this.view.groupBy,
    }, label)));
  }

  /** Offer the resource classes, if hosts have others than the usual ones. */
  offerClasses(properties) {
    const others = properties.map(({ property }) => property)
      .filter((name) => name.startsWith(RESOURCES))
      .map((name) => name.slice(RESOURCES.length));
    const classes = others.length ? [...USUAL_CLASSES, ...others] : [];
    if (!classes.includes(this.view.resourceClass)) {
      this.view.resourceClass = '';
    }
    const select = $('resource_class');
    select.parentElement.hidden = !classes.length;
    fill(select, [['', 'the fullest class'],
      ...classes.map((name) => [name, name])].map(([value, label]) =>
      h('option', { value, selected: value === this.view.resourceClass },
        label)));
  }

  /** Read what is in view; `again` also what is known already. */
  async load(again) {
    if (!this.session) return;
    try {
      await Promise.all([
        this.rows.load(this.view, again), this.loadCapacity(),
        again ? this.loadOwn() : null, again ? this.offerProducts() : null,
        again && this.hosts ? this.loadMaintenances() : null,
      ]);
    } catch (error) {
      if (!await this.leaveClass(error)) throw error;
      await this.load(again);
      return;
    }
    this.draw();
  }

  /** Leave a resource class that no host has any more; tell whether so. */
  async leaveClass({ status }) {
    const { resourceClass } = this.view;
    if (status !== 400 || !resourceClass) return false;
    await this.offer();
    this.view.keep();
    return this.view.resourceClass !== resourceClass;
  }

  async loadCapacity() {
    if (!this.session) return;
    this.timeline.measure();
    const { capacity: asked } = this.finder;
    const query = strip.query(this.view, this.timeline.width, asked);
    const token = this.capacityAsked = {};
    const present = await this.api.get('/capacity', {
      ...asked, end_date: times.iso(times.now() + 5 * times.MINUTE),
    });
    const shown = query && await this.api.get('/capacity', query);
    if (this.capacityAsked !== token) return;
    const { resourceClass } = this.view;
    strip.drawNow(present.capacity, resourceClass);
    this.capacity = shown?.capacity ?? null;
    strip.draw(this.capacity, this.timeline, resourceClass);
  }

  /** Read what the project has. */
  async loadOwn() {
    const token = this.ownAsked = {};
    const ofProject = (each) => each.project_id === this.session.project.id;
    const [all, held, recurring, waiting, limits] = await Promise.all(
      ['leases', 'offers', 'series', 'requests', 'limits'].map(
        async (noun) => await this.readAllowed(noun) ?? []));
    const estimated = await requests.read(
      this.api, waiting.filter(ofProject));
    // What was read later is newer.
    if (this.ownAsked !== token) return;
    this.all = all.map(leases.read);
    this.leases = this.all.filter(ofProject);
    this.held = held.map(offers.read);
    this.offers = this.held.filter(
      (offer) => ofProject(offer) && offer.until > times.now());
    this.series = recurring.filter(ofProject);
    this.requests = estimated;
    leases.drawLimits(limits);
  }

  /** Read a list, null if the policy forbids it or its part does not run. */
  async readAllowed(noun) {
    try {
      return (await this.api.get(`/${noun}`))[noun.replace('os-', '')];
    } catch (error) {
      if (![403, 404].includes(error.status)) throw error;
      return null;
    }
  }

  async loadHosts() {
    const { project } = this.session;
    const hosts = await this.readAllowed('os-hosts');
    if (!hosts) return;
    await this.loadMaintenances();
    if (project !== this.session?.project) return;
    this.hosts = hosts;
    this.draw();
  }

  async loadMaintenances() {
    this.maintenances = await this.readAllowed('maintenances') ?? [];
  }

  /** Return the occurrences of a series, also those without room. */
  async occurrences({ id }) {
    let found = [];
    await this.attempt(async () => {
      found = (await this.api.get(`/series/${id}`)).series.leases;
    });
    return found;
  }

  refresh() {
    this.finder.search();
    return this.attempt(() => this.load(true));
  }

  poll() {
    if (this.session && !document.hidden && !this.api.isAway
      && !this.signingIn) {
      this.timeline.redraw();
      this.finder.again();
      this.attempt(() => this.load(true));
    }
  }

  async attempt(act) {
    try {
      await act();
      if (this.failing) this.proposal.clear();
      this.failing = false;
    } catch (error) {
      if (error.name === 'AbortError' || error instanceof Away) return;
      this.failing = true;
      this.proposal.tell(error.message, 'bad');
    }
  }

  // Held offers. The user is led to the card of what has been made.

  async hold(body, key, text) {
    const id = await this.proposal.hold(body, key, text);
    if (id !== null) this.select(id);
  }

  async take(offer, name) {
    if (await this.proposal.take(offer, name)) this.select(offer.id);
  }

  // The service away and back.

  away(seconds) {
    $('away').hidden = false;
    clearTimeout(this.retrying);
    this.retrying = setTimeout(
      () => this.attempt(() => this.load(true)), seconds * 1000);
  }

  back() {
    $('away').hidden = true;
    clearTimeout(this.retrying);
    this.refresh();
  }

  // What is drawn.

  viewed() {
    if (this.zone !== this.view.zone) {
      this.zone = this.view.zone;
      this.finder.redraw();
      this.proposal.redraw();
    }
    this.timeline.redraw();
    this.draw();
    this.read();
    this.showZone();
  }

  showZone() {
    $('zone').value = this.view.zone === 'UTC' ? 'UTC' : '';
  }

  show(rows) {
    this.timeline.show(rows);
    $('legend_heat').hidden = !rows.some(({ heat }) => heat.length);
    this.drawTable();
  }

  /** Return the current leases of other projects, for an administrator. */
  get others() {
    return this.hosts === null ? [] : this.all.filter((lease) =>
      lease.project_id !== this.session.project.id && !leases.isOver(lease));
  }

  draw() {
    if (!this.session) return;
    const { selected } = this.timeline;
    const foreign = this.others.filter(({ id }) => id === selected)
      .map((lease) => ({ ...lease, isForeign: true }));
    leases.draw([...this.leases, ...foreign], this.series, selected, {
      prolong: (lease, seconds) => this.proposal.prolong(lease, seconds),
      prolongFarthest: (lease) => this.attempt(
        () => this.proposal.prolongFarthest(lease)),
      update: (lease, values, refuse) =>
        this.proposal.update(lease, values, refuse),
      end: (lease, started) => this.proposal.end(lease, started),
      show: (lease) => this.focus(lease),
      changeAll: (series, values, refuse) =>
        this.proposal.changeAll(series, values, refuse),
      endAll: (series) => this.proposal.endAll(series),
      occurrences: (series) => this.occurrences(series),
    });
    leases.drawEnded(this.leases);
    requests.draw(this.requests, {
      drop: (request) => this.proposal.drop(request),
    });
    this.drawOffers();
    $('admin').hidden = this.hosts === null;
    if (this.hosts) {
      admin.draw(this.hosts, this.all, this.rows.rows);
      admin.offer(this.others, selected);
      admin.drawApprovals(this.held.filter(
        (offer) => offers.isWaiting(offer) && offer.until > times.now()), {
        approve: (offer) => this.proposal.approve(offer),
        refuse: (offer) => this.proposal.release(offer),
      });
      maintenance.draw(this.maintenances, {
        end: (each) => this.proposal.open(each),
      });
    }
    this.drawTable();
    this.timeline.measure();
    strip.draw(this.capacity, this.timeline, this.view.resourceClass);
  }

  /** Show the held offers; an offer that has lapsed goes. */
  drawOffers() {
    const held = this.offers.filter(({ until }) => until > times.now());
    const lapsed = this.offers.length - held.length;
    this.offers = held;
    offers.draw(held, this.timeline.selected, {
      name: () => this.finder.name, show: (offer) => this.focus(offer),
      take: (offer, name) => this.take(offer, name),
      release: (offer) => this.proposal.release(offer),
    });
    if (!lapsed) return;
    if (!this.proposal.now) this.proposal.tell('A held offer has lapsed.');
    this.refresh();
  }

  toggleTable() {
    const shown = $('picture').hidden;
    $('picture').hidden = !shown;
    $('table_box').hidden = shown;
    $('as_table').setAttribute('aria-pressed', String(!shown));
    this.drawTable();
    this.timeline.redraw();
  }

  drawTable() {
    if (!$('table_box').hidden) table.draw(this.rows.rows, this.view);
  }

  select(id) {
    this.timeline.select(id);
    this.draw();
    const card = document.querySelector('.card.selected');
    const series = card?.closest('details');
    if (series) series.open = true;
    card?.scrollIntoView({ block: 'nearest' });
    card?.querySelector('.name').focus({ preventScroll: true });
  }

  /** Show a lease or a held offer in the timeline. */
  focus(lease) {
    this.timeline.select(lease.id);
    const length = (lease.end ?? lease.start + times.WEEK) - lease.start;
    this.view.show(lease.start - length / 2, length * 2);
    const row = this.rows.rows.findIndex(
      (each) => each.bars.some((bar) => bar.id === lease.id));
    if (row >= 0) this.timeline.reveal(row);
  }
}

/** Say what a bar is, for who hovers. */
function describe(bar) {
  if (bar.level !== undefined) {
    return `${bar.text}\n${times.windowOf(bar.start, bar.end)}`;
  }
  const name = bar.label ? `${bar.label}: ` : '';
  const share = bar.share < 1 ? `, ${Math.round(bar.share * 100)} %` : '';
  return `${name}${bar.mine ? 'own ' : ''}${kindOf(bar)}${share}\n`
    + `${times.windowOf(bar.start, bar.end)}\n`
    + times.windowInUtc(bar.start, bar.end);
}

new Page().start();
