// SPDX-License-Identifier: Apache-2.0
// "I need 2 hosts for 4 h": what is needed, and the first windows for it.

import { newKey } from './api.js';
import { $, amount, debounced, fill, h } from './dom.js';
import { AT_END, ids, size } from './leases.js';
import * as series from './series.js';
import * as times from './times.js';

const OFFERS = 4;
// Milliseconds without a change after which the offers are searched.
const QUIET = 300;
// A start that is no further away is "now" when it is booked.
const SOON = 60;
// Seconds after which the windows that were found are searched again.
const OLD = times.MINUTE;
// Seconds for which an offer is held.
const HOLD = 10 * times.MINUTE;
// Seconds for which windows are searched, and room is waited for.
const AHEAD = 90 * times.DAY;
// The fields that change nothing about the windows.
const BESIDE = new Set(
  ['name', 'rule', 'times', 'latest', 'network', 'addresses_count']);

/** Return the requirement for all of `requirements`, as the API reads it. */
export function all(...requirements) {
  const given = requirements.filter(Boolean);
  if (!given.length) return '';
  return JSON.stringify(given.length === 1 ? given[0] : ['and', ...given]);
}

/** Return the dates of a lease in [start, end), which may begin now. */
export function dates(start, end) {
  return {
    start_date: start > times.now() + SOON ? times.iso(start) : 'now',
    end_date: end === null ? null : times.iso(end),
  };
}

/** Return a window as of now: a window that has begun keeps its length. */
function present({ start, end }) {
  const now = times.now();
  return start > now + SOON ? { start, end, isNow: false }
    : { start: now, end: now + end - start, isNow: true };
}

export class Finder {
  /**
   * @param {Object} on `search(body, signal)` asks for offers,
   *   `changed()` is told that the capacity of something else is of interest,
   *   `book(order, key)` books a lease or a series, `hold(body, key, text)`
   *   holds the offer of a request for offers, `wait(body, key)` makes a lease
   *   request, each once for a key
   */
  constructor(on) {
    this.on = on;
    this.search = debounced(() => this.searchNow(), QUIET);
    this.offer = null;
    // The resource types of the products, and the sizes of the flavors.
    this.products = new Map();
    this.flavors = new Map();
    // The reservations of the lease beside the one in the form.
    this.further = [];
    this.isWaiting = false;
    const form = $('finder');
    form.addEventListener('input', ({ target }) => {
      if (target.id === 'from') this.from = times.fromInput(target.value);
      if (target.id === 'latest') this.latest = times.fromInput(target.value);
      this.arrange();
      if (BESIDE.has(target.id)) return;
      this.asked();
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.offer && !this.isWaiting) this.book(this.offer);
    });
    $('hold').textContent = `Hold for ${times.lengthOf(HOLD)}`;
    $('hold').addEventListener('click', () => this.hold(this.offer));
    $('wait_for').addEventListener('click', () => this.waitFor());
    $('and').addEventListener('click', () => {
      if (this.isComplete) this.add(this.reservation());
    });
    $('and_addresses').addEventListener('click', () => this.add({
      resource_type: 'virtual:floatingip', network_id: $('network').value,
      amount: $('addresses_count').valueAsNumber,
    }));
    const choices = { rule: [['', 'once'], ...series.rules()],
      on_end: Object.entries(AT_END) };
    for (const [id, each] of Object.entries(choices)) {
      fill($(id), each.map(([value, text]) => h('option', { value }, text)));
    }
    this.arrange();
  }

  /** Search for what is asked now: what was found answers another question.
   */
  asked() {
    this.latest = null;
    this.running?.abort();
    this.choose(null);
    this.say('searching…');
    this.search();
    this.on.changed();
  }

  get kind() { return $('kind').value; }
  get noun() {
    const isHost = this.kind === 'host' || (this.kind === 'product'
      && this.products.get($('product_name').value) === 'physical:host');
    return isHost ? 'host' : 'instance';
  }
  get count() { return Number($('count').value); }
  get length() { return times.readLength($('length').value); }
  /** Return how the lease recurs, '' for once. */
  get rule() { return series.rule($('rule').value, $('times').value); }
  get name() { return $('name').value.trim() || 'lease'; }

  /** Show the fields of the kind of reservation. */
  arrange() {
    $('size').hidden = this.kind !== 'size';
    $('flavor').hidden = this.kind !== 'flavor';
    $('product').hidden = this.kind !== 'product';
    $('with').hidden = this.kind === 'product' || !this.properties?.size;
    $('value').hidden = $('property').value === '';
    $('operator').hidden = $('property').value === '';
    $('later').hidden = $('when').value !== 'later';
    $('often').hidden = $('rule').value === '';
    $('length').setAttribute('aria-invalid', String(this.length === null));
  }

  /** Offer properties of hosts: {name, values}. */
  offerProperties(properties) {
    const chosen = $('property').value;
    this.properties = new Map(properties.map((each) => [each.name, each]));
    fill($('property'), h('option', { value: '' }, 'any property'),
      properties.map(({ name }) => h('option', {
        value: name, selected: name === chosen,
      }, name)));
    this.arrange();
    this.offerValues();
    $('property').onchange = () => this.offerValues();
  }

  /** Offer the flavors of the API. */
  offerFlavors(flavors) {
    this.flavors = new Map(flavors.map((each) => [each.id, sized(each)]));
    offerKind('flavor', $('flavor_id'), flavors.map(
      ({ id, name }) => [id, `${name}: ${this.flavors.get(id)}`]));
  }

  /** Offer the products of the API, with what is free of each. */
  offerProducts(products) {
    this.products = new Map(
      products.map((each) => [each.name, each.resource_type]));
    offerKind('product', $('product_name'), products.map((each) => [each.name,
      `${each.name}: ${[`${each.free} free for a day`, this.sizeOf(each),
        each.description].filter(Boolean).join(', ')}`]));
  }

  /** Say how large a unit of a product is. */
  sizeOf(product) {
    if (product.resource_type === 'physical:host') return 'whole hosts';
    return product.flavor_id === null ? sized(product)
      : this.flavors.get(product.flavor_id);
  }

  offerValues() {
    const { values = [] } = this.properties?.get($('property').value) ?? {};
    fill($('values'), values.map((value) => h('option', { value })));
  }

  get requirement() {
    const name = $('property').value;
    const value = $('value').value.trim();
    return name && value && this.kind !== 'product' ? [$('operator').value, `$${name}`, value] : null;
  }

  /** Return the reservation of `count`, also with another requirement. */
  reservation(count = this.count, requirement = null) {
    const use = {
      on_end: $('on_end').value,
      ...($('projects').value.trim() && { projects: ids($('projects').value) }),
    };
    if (this.kind === 'product') {
      return { product: $('product_name').value, amount: count, ...use };
    }
    const properties = {
      resource_properties: all(this.requirement, requirement), ...use,
    };
    switch (this.kind) {
      case 'host':
        return { resource_type: 'physical:host', min: count, max: count,
          hypervisor_properties: '', ...properties };
      case 'size':
        return { resource_type: 'virtual:instance', amount: count,
          vcpus: Number($('vcpus').value),
          memory_mb: Math.round(Number($('memory').value) * 1024),
          disk_gb: Number($('disk').value), affinity: null, ...properties };
      default:
        return { resource_type: 'flavor:instance', amount: count,
          flavor_id: $('flavor_id').value, affinity: null, ...properties };
    }
  }

  /** Return all reservations, of which those in the form have `count`. */
  reservations(count, requirement) {
    return [...this.further, this.reservation(count, requirement)];
  }

  /** Have another reservation in the lease: the one in the form so far, or
   * floating IPs. */
  add(reservation) {
    this.further = [...this.further, reservation];
    this.drawFurther();
  }

  drawFurther() {
    fill($('further'), this.further.map((each) => h('li', {}, size(each), ' ',
      h('button.link', {
        type: 'button', 'aria-label': `Leave out: ${size(each)}`,
        onclick: () => {
          this.further = this.further.filter((other) => other !== each);
          this.drawFurther();
        },
      }, 'leave out'))));
    $('further').hidden = !this.further.length;
    this.asked();
  }

  /** Offer the networks with reservable floating IPs. */
  offerNetworks(floatingIps) {
    const networks = new Set(
      floatingIps.map((each) => each.floating_network_id));
    fill($('network'), [...networks].map((id) =>
      h('option', { value: id }, id)));
    $('addresses').hidden = !networks.size;
  }

  /** Return the parameters of the capacity that is of interest. */
  get capacity() {
    const flavor = this.kind === 'flavor' && $('flavor_id').value;
    return {
      resource_properties: all(this.requirement) || null,
      flavor_id: flavor || null,
    };
  }

  get isComplete() {
    return this.length !== null && Number.isInteger(this.count)
      && this.count > 0
      && (this.kind !== 'flavor' || $('flavor_id').value !== '')
      && (this.kind !== 'product' || $('product_name').value !== '')
      && ($('when').value !== 'later' || $('from').value !== '');
  }

  /** Search again if what is shown is old, and keep it until the answer. */
  again() {
    if (times.now() - this.searched > OLD) this.searchNow(true);
    else if (this.offer) this.answer(this.offer);
  }

  /** Show times in the zone that is chosen now. */
  redraw() {
    if (this.from) $('from').value = times.toInput(this.from);
    if (this.latest) $('latest').value = times.toInput(this.latest);
    if (this.offer) this.choices(this.windows, this.offer);
  }

  /** Have the buttons wait for the answer to a change, and for the search that
   * follows. */
  wait(isWaiting) {
    this.isWaiting = isWaiting;
    $('wait_for').disabled = isWaiting;
    this.choose(isWaiting ? this.offer : null);
  }

  async searchNow(keeps = false) {
    this.running?.abort();
    if (!keeps) this.choose(null);
    if (!this.isComplete) {
      this.say('Fill in how many, and for how long: 4 h, 2 d or 1 w.');
      return;
    }
    if (!keeps) this.say('searching…');
    this.searched = times.now();
    this.running = new AbortController();
    const { from } = this;
    try {
      this.show(await this.on.search({
        reservations: this.reservations(), duration: this.length,
        limit: OFFERS, ...this.notBefore,
      }, this.running.signal));
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.say(error.message, 'bad');
    }
  }

  /** Return the first start that is of interest, as the API has it. */
  get notBefore() {
    const later = $('when').value === 'later' && this.from > times.now();
    return later ? { start_date: times.iso(this.from) } : {};
  }

  show({ offers, nearest }) {
    const windows = offers.map((offer) => ({
      ...offer, key: newKey(), start: times.parse(offer.start_date),
      end: times.parse(offer.end_date),
    }));
    this.choose(null);
    if (windows.length) this.choices(windows, windows[0]);
    else this.say(this.unavailable(nearest), 'bad');
    this.offerToWait(windows[0]?.start);
  }

  /** Offer to wait for room before the first window, if it is late. */
  offerToWait(first = Infinity) {
    const wanted = times.parse(this.notBefore.start_date) ?? times.now();
    $('wait').hidden = first <= wanted + 2 * SOON;
    this.waitKey = newKey();
    // What has been typed for the same question stays.
    if (this.latest) return;
    this.latest = Math.min(wanted + AHEAD, first - SOON);
    $('latest').value = times.toInput(this.latest);
  }

  /** Show the windows, of which one is chosen. */
  choices(windows, chosen) {
    this.windows = windows;
    this.choose(chosen);
    this.answer(chosen);
    const others = windows.filter((offer) => offer !== chosen);
    fill($('others'), others.length ? 'or ' : null, others.map((offer) =>
      h('button.link', {
        type: 'button', title: times.windowInUtc(offer.start, offer.end),
        onclick: () => {
          this.choices(windows, offer);
          $('book').focus();
        },
      }, times.short(offer.start))));
  }

  answer(offer) {
    const limited = offer.limited_by === 'policy'
      ? h('em', {}, ' (a limit of the project forbids it) ') : null;
    fill($('found'), 'from ', this.time(offer), limited);
    $('found').className = 'good';
  }

  /** Set the window that is booked or held, null for none. */
  choose(offer) {
    this.offer = offer;
    for (const id of ['book', 'hold']) {
      $(id).disabled = offer === null || this.isWaiting;
    }
  }

  time(offer) {
    const { start, end, isNow } = present(offer);
    return h('time', {
      ...times.hover(start), title: times.windowInUtc(start, end),
    }, isNow ? 'now' : times.short(start), ` to ${times.short(end)}`);
  }

  unavailable(nearest) {
    if (nearest?.available > 0) {
      return `No room for that many: ${nearest.message}.`;
    }
    if (nearest?.duration) {
      return `No room for that long: there is room for ${
        times.lengthOf(nearest.duration)} now.`;
    }
    // What can never be met has a reason of its own.
    return `No room in the next 90 days${
      nearest?.message ? `: ${nearest.message}` : ''}.`;
  }

  say(text, kind = '') {
    fill($('found'), text);
    $('found').className = kind;
    fill($('others'));
    $('wait').hidden = true;
  }

  /** Return what books a lease in a window, or a series from it on: `path`
   * and `body`. */
  order(start, end, reservations = this.reservations(), rule = this.rule) {
    const what = { name: this.name, reservations };
    return rule
      ? { path: '/series', body: { ...what, duration: end - start,
        ...series.recurrence(rule, start) } }
      : { path: '/leases', body: { ...what, ...dates(start, end) } };
  }

  book(offer) {
    const { start, end } = present(offer);
    this.on.book(this.order(start, end), offer.key);
  }

  /** Ask for the first room that there will be. */
  waitFor() {
    if (!$('latest').reportValidity()) return;
    this.on.wait({
      name: this.name, reservations: this.reservations(),
      duration: this.length, ...this.notBefore,
      latest_start_date: times.iso(this.latest),
    }, `wait ${this.waitKey} ${this.latest}`);
  }

  /** Hold this window; a window that begins now may begin a minute later. */
  hold(offer) {
    const { start, end, isNow } = present(offer);
    const range = isNow ? { latest_start_date: times.iso(start + SOON) }
      : { start_date: times.iso(start), latest_start_date: times.iso(start) };
    this.on.hold({
      reservations: this.reservations(), duration: end - start, ...range,
      limit: 1, hold: HOLD,
    }, `hold ${offer.key}`, `${amount(this.count, this.noun)}, ${times.windowOf(start, end)}, held `
      + `for ${times.lengthOf(HOLD)}.`);
  }
}

/** Offer what there is of a kind, as [value, text]; without any, the kind is
 * not offered. */
function offerKind(kind, select, choices) {
  $('kind').querySelector(`[value=${kind}]`).disabled = !choices.length;
  // Nobody loses what is being chosen.
  if (document.activeElement === select) return;
  const chosen = select.value;
  fill(select, choices.map(([value, text]) =>
    h('option', { value, selected: value === chosen }, text)));
}

/** Say how large an instance is. */
function sized({ vcpus, memory_mb: memory, disk_gb: disk }) {
  const gb = Math.round(memory / 10.24) / 100;
  return `${amount(vcpus, 'vCPU')}, ${gb} GB, ${disk} GB disk`;
}
