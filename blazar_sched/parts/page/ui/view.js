// SPDX-License-Identifier: Apache-2.0
// The window that is in view, kept in the hash of the address.

import * as times from './times.js';

const MIN_SPAN = times.HOUR;
const MAX_SPAN = times.YEAR;
// How far before and after now the view may be moved.
const REACH = 5 * times.YEAR;

export class View {
  /** @param {function()} changed is called after each change */
  constructor(changed) {
    this.changed = changed;
    this.read();
    window.addEventListener('hashchange', () => {
      if (this.text() === location.hash) return;
      this.read();
      changed();
    });
  }

  read() {
    const values = new URLSearchParams(location.hash.slice(1));
    const start = times.parse(values.get('from'));
    const span = times.readLength(values.get('span') ?? '');
    this.groupBy = values.get('rows') ?? '';
    this.resourceClass = values.get('class') ?? '';
    this.zone = values.get('zone') === 'UTC' ? 'UTC' : times.localZone();
    times.setZone(this.zone);
    const fits = Number.isFinite(start);
    this.set(fits ? start : times.now() - times.HOUR * 12,
      span ?? times.WEEK);
  }

  set(start, span) {
    this.span = Math.min(Math.max(Math.round(span), MIN_SPAN), MAX_SPAN);
    const now = times.now();
    this.start = Math.round(
      Math.min(Math.max(start, now - REACH), now + REACH));
    this.end = this.start + this.span;
  }

  /** Show `span` seconds from `start` on. */
  show(start, span = this.span) {
    this.set(start, span);
    this.keep();
    this.changed();
  }

  /** Move the view by a part of its span. */
  move(part) {
    this.show(this.start + part * this.span);
  }

  /** Zoom so that the time `at` stays where it is. */
  zoom(factor, at = this.start + this.span / 2) {
    const span = Math.min(Math.max(this.span * factor, MIN_SPAN), MAX_SPAN);
    this.show(at - (at - this.start) * (span / this.span), span);
  }

  showNow() {
    this.show(times.now() - this.span / 12);
  }

  setGroupBy(name) {
    this.groupBy = name;
    this.keep();
    this.changed();
  }

  /** Show the shares of a resource class; '' for the one with the most. */
  setResourceClass(name) {
    this.resourceClass = name;
    this.keep();
    this.changed();
  }

  setZone(name) {
    this.zone = name;
    times.setZone(name);
    this.keep();
    this.changed();
  }

  text() {
    const values = new URLSearchParams();
    values.set('from', times.iso(this.start));
    values.set('span', `${this.span}s`);
    if (this.groupBy) values.set('rows', this.groupBy);
    if (this.resourceClass) values.set('class', this.resourceClass);
    if (this.zone === 'UTC') values.set('zone', 'UTC');
    return `#${values}`;
  }

  keep() {
    history.replaceState(null, '', this.text());
  }
}
