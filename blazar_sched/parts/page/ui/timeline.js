// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline. Only the rows in sight are in the document, so
// that 10,000 rows scroll as fast as ten.

import { framed, h, fill } from './dom.js';
import * as times from './times.js';

const ROW = 34;
// Rows drawn beyond either end of the sight.
const SPARE = 4;
// Least distance of two ticks, and least widths of a bar with its name and of
// a part with its number, in pixels.
const TICK = 62;
const NAMED = 28;
const COUNTED = 20;
// The least share of a row that a bar is drawn with.
const LEAST = 0.2;
// The steps to which a drag snaps, and the least pixels of a step.
const SNAPS = [1, 5, 15, 30, 60, 180, 360, 720, 1440]
  .map((minutes) => minutes * times.MINUTE);
const SNAP = 6;
// A drag begins after this number of pixels.
const SLACK = 4;

/**
 * Return the bars of a row with `top` and `share`, so that no two bars that
 * overlap in time cover each other while there is room.
 */
export function stacked(bars) {
  const placed = [];
  for (const bar of [...bars].sort((a, b) => a.start - b.start)) {
    const share = Math.min(Math.max(bar.share ?? 1, LEAST), 1);
    const beside = placed
      .filter(({ end }) => end === null || end > bar.start)
      .sort((a, b) => a.top - b.top);
    let top = 0;
    for (const other of beside) {
      if (top + share <= other.top + 1e-6) break;
      top = Math.max(top, other.top + other.share);
    }
    placed.push({ ...bar, share, top: Math.min(top, 1 - share) });
  }
  return placed;
}

/** Tell whether a bar is a lease of the project that has not started. */
const isMovable = (bar) =>
  bar?.mine && bar.kind === 'lease' && bar.start > times.now();

export class Timeline {
  /**
   * @param {Object} elements `axis`, `rows` and `sheet`
   * @param {View} view
   * @param {Object} on `describe(bar)` returns the text of a bar;
   *   `select(bar)`, `accept(ghost)`; `drag(selection)`, `dropped(selection)`
   *   for a selected window; `pull(bar, end)` for the end of an own bar,
   *   `shift(bar, start)` for one that moves, and then `pulled()`; `cancel()`
   */
  constructor({ axis, rows, sheet }, view, on) {
    Object.assign(this, { axis, rows, sheet, view, on });
    this.data = [];
    this.ghosts = [];
    this.shown = new Map();
    this.pool = [];
    this.stacks = new WeakMap();
    this.back = h('div.back');
    this.front = h('div.front');
    sheet.append(this.back, this.front);
    this.redraw = framed(() => this.draw());
    this.scrolled = framed(() => this.drawRows());
    rows.addEventListener('scroll', this.scrolled, { passive: true });
    new ResizeObserver(this.redraw).observe(rows);
    this.listen();
  }

  /** Show rows: {key, label, hint, off, heat, bars}; see `rows`. */
  show(rows) {
    this.data = rows;
    const height = `${Math.max(rows.length, 1) * ROW}px`;
    this.sheet.style.height = height;
    this.rows.style.setProperty('--content', height);
    this.redraw();
  }

  /** Take all rows out of the document. */
  forget() {
    for (const row of this.sheet.querySelectorAll('.row')) row.remove();
    this.shown.clear();
    this.pool = [];
    this.selected = null;
    this.show([]);
  }

  /** Show ghosts: {start, end, from, to, kind, label, offer}. */
  haunt(ghosts) {
    this.ghosts = ghosts;
    this.redraw();
  }

  get gutter() {
    return parseFloat(getComputedStyle(this.rows)
      .getPropertyValue('--gutter')) || 120;
  }

  measure() {
    this.left = this.gutter;
    this.width = Math.max(this.rows.clientWidth - this.left, 50);
  }

  x(time) {
    return (time - this.view.start) / this.view.span * this.width;
  }

  timeAt(clientX) {
    const { left } = this.rows.getBoundingClientRect();
    return this.view.start
      + (clientX - left - this.left) / this.width * this.view.span;
  }

  rowAt(clientY) {
    const { top } = this.rows.getBoundingClientRect();
    const row = Math.floor((clientY - top + this.rows.scrollTop) / ROW);
    return Math.min(Math.max(row, 0), Math.max(this.data.length - 1, 0));
  }

  snapped(time) {
    const least = SNAP * this.view.span / this.width;
    return times.snap(time, SNAPS.find((s) => s >= least) ?? SNAPS.at(-1));
  }

  draw() {
    this.measure();
    this.drawAxis();
    for (const [index, element] of this.shown) this.drawRow(index, element);
    this.drawRows();
    this.drawGhosts();
  }

  drawAxis() {
    const { start, end, span } = this.view;
    const { ticks, units } = times.axis(start, end, TICK * span / this.width);
    const at = (time) => `${this.left + this.x(time)}px`;
    fill(this.axis,
      units.map(({ time, end: until, label }) => {
        const from = Math.max(this.x(time), 0);
        const width = Math.min(this.x(until), this.width) - from;
        return h('span.unit', {
          style: { left: `${this.left + from}px`, width: `${width}px` },
        }, label);
      }),
      ticks.map(({ time, label }) => h('span.tick', {
        style: { left: at(time) }, title: times.utc(time),
      }, label)));
    fill(this.back,
      span > 70 * times.DAY ? [] : times.weekends(start, end).map(
        ([from, to]) => {
          const left = Math.max(this.x(from), 0);
          const width = Math.min(this.x(to), this.width) - left;
          return h('i.weekend', { style: {
            left: `${this.left + left}px`, width: `${Math.max(width, 0)}px`,
          } });
        }),
      ticks.map(({ time }) => h('i.line', { style: { left: at(time) } })));
    this.drawNow();
  }

  drawNow() {
    const x = this.x(times.now());
    if (x < 0 || x > this.width) return;
    const style = { left: `${this.left + x}px` };
    this.back.append(h('i.now', { style }));
    this.axis.append(h('span.now', { style }, 'now'));
  }

  drawRows() {
    const first = Math.max(0,
      Math.floor(this.rows.scrollTop / ROW) - SPARE);
    const last = Math.min(this.data.length - 1,
      Math.ceil((this.rows.scrollTop + this.rows.clientHeight) / ROW) + SPARE);
    for (const [index, element] of this.shown) {
      if (index >= first && index <= last) continue;
      this.shown.delete(index);
      this.pool.push(element);
    }
    for (let index = first; index <= last; index += 1) {
      if (this.shown.has(index)) continue;
      let element = this.pool.pop();
      if (!element) {
        element = h('div.row', {}, h('div.key'), h('div.lane'));
        this.sheet.append(element);
      }
      this.shown.set(index, element);
      this.drawRow(index, element);
    }
    for (const element of this.pool) element.hidden = true;
    if (this.sheet.lastChild !== this.front) this.sheet.append(this.front);
  }

  drawRow(index, element) {
    const row = this.data[index];
    if (!row) return;
    element.hidden = false;
    element.style.transform = `translateY(${index * ROW}px)`;
    const [key, lane] = element.children;
    if (key.textContent !== row.label) key.textContent = row.label;
    key.title = row.hint ?? row.label;
    element.classList.toggle('off', row.off === true);
    let used = 0;
    for (const bar of [...row.heat, ...this.stack(row)]) {
      // What begins before the view shows its name at the edge of the view.
      const left = Math.max(this.x(bar.start), -4);
      const right = bar.end === null
        ? this.width + 4 : Math.min(this.x(bar.end), this.width + 4);
      if (right <= 0 || left >= this.width) continue;
      const drawn = lane.children[used] ?? lane.appendChild(
        h('div.bar', {}, h('span'), h('i.edge')));
      this.drawBar(drawn, bar, left, Math.max(right - left, 2));
      used += 1;
    }
    while (lane.children.length > used) lane.lastChild.remove();
  }

  stack(row) {
    let bars = this.stacks.get(row);
    if (!bars) {
      bars = stacked(row.bars);
      this.stacks.set(row, bars);
    }
    return bars;
  }

  drawBar(element, bar, left, width) {
    const { style } = element;
    const [span, edge] = element.children;
    element.bar = bar;
    if (bar.level !== undefined) {
      element.className = `bar heat level-${bar.level}`;
      Object.assign(style, {
        transform: `translateX(${left}px)`, width: `${width}px`,
        top: '0', height: '100%',
      });
      span.textContent = width >= COUNTED ? String(bar.count) : '';
      edge.hidden = true;
      return;
    }
    style.transform = `translateX(${left}px)`;
    style.width = `${width}px`;
    style.top = `${2 + bar.top * (ROW - 5)}px`;
    style.height = `${Math.max(bar.share * (ROW - 5) - 1, 3)}px`;
    const classes = ['bar', bar.kind, bar.mine && 'mine',
      bar.state, bar.degraded && 'degraded', bar.blocks && 'blocks',
      bar.end === null && 'endless',
      bar.id && bar.id === this.selected && 'selected'];
    element.className = classes.filter(Boolean).join(' ');
    const named = width >= NAMED && bar.share > 0.4;
    const text = named ? bar.label ?? '' : '';
    if (span.textContent !== text) span.textContent = text;
    edge.hidden = !(bar.mine && bar.kind === 'lease' && bar.end !== null);
  }

  drawGhosts() {
    fill(this.front, this.ghosts.map((ghost) => {
      const left = Math.max(this.x(ghost.start), 0);
      const right = Math.min(
        ghost.end === null ? this.width : this.x(ghost.end), this.width);
      if (right < 0 || left > this.width) return null;
      const from = ghost.from ?? 0;
      const to = ghost.to ?? from + 1;
      const properties = {
        style: {
          left: `${this.left + left}px`,
          width: `${Math.max(right - left, 3)}px`,
          top: `${from * ROW + 1}px`,
          height: `${(to - from) * ROW - 2}px`,
        },
        title: times.windowInUtc(ghost.start, ghost.end),
      };
      if (!ghost.offer) {
        return h(`div.ghost.${ghost.kind}`, properties,
          h('span', {}, ghost.label));
      }
      // The notice below the timeline has the same button for the keyboard.
      return h(`div.ghost.${ghost.kind}`, {
        ...properties, onclick: () => this.on.accept(ghost),
      }, h('span', {}, ghost.label));
    }));
  }

  /** Mark the bars of a lease or of a held offer. */
  select(id) {
    this.selected = id;
    this.redraw();
  }

  /** Scroll to a row. */
  reveal(row) {
    this.rows.scrollTop = row * ROW - this.rows.clientHeight / 2;
  }

  // What pointer and keyboard do.

  listen() {
    const { rows, axis } = this;
    rows.addEventListener('pointerdown', (event) => this.press(event));
    axis.addEventListener('pointerdown', (event) => this.pan(event));
    rows.addEventListener('pointermove', (event) => this.explain(event));
    rows.addEventListener('wheel', (event) => this.wheel(event));
    axis.addEventListener('wheel', (event) => this.wheel(event));
    rows.addEventListener('keydown', (event) => this.key(event));
  }

  explain({ target, buttons }) {
    if (buttons) return;
    const { bar } = target.closest('.bar') ?? {};
    if (bar) target.closest('.bar').title = this.on.describe(bar);
  }

  press(event) {
    if (event.button !== 0 || event.target.closest('.ghost')) return;
    const element = event.target.closest('.bar');
    const inLane = event.clientX
      > this.rows.getBoundingClientRect().left + this.left;
    // The scroll bar belongs to the browser.
    const inside = event.clientX < this.rows.getBoundingClientRect().left
      + this.rows.clientWidth;
    if (!inLane || !inside) return;
    if (event.target.closest('.edge')) {
      this.pull(event, element.bar);
    } else if (isMovable(element?.bar) && event.pointerType !== 'touch') {
      this.shift(event, element.bar);
    } else if (element?.bar.id) {
      // The focus goes to the card, not to the rows.
      event.preventDefault();
      this.on.select(element.bar);
    } else if (event.pointerType === 'touch') {
      this.pan(event);
    } else {
      this.mark(event);
    }
  }

  /** Call `move(event)` until the pointer is released, then `end(event)`. */
  follow(event, move, end) {
    const target = event.currentTarget;
    const { pointerId } = event;
    const done = new AbortController();
    const { signal } = done;
    target.setPointerCapture(pointerId);
    event.preventDefault();
    this.rows.focus({ preventScroll: true });
    const stop = (last) => {
      done.abort();
      if (target.hasPointerCapture(pointerId)) {
        target.releasePointerCapture(pointerId);
      }
      end(last);
    };
    target.addEventListener('pointermove', move, { signal });
    target.addEventListener('pointerup', stop, { signal });
    target.addEventListener('pointercancel', () => stop(null), { signal });
    window.addEventListener('keydown', (pressed) => {
      if (pressed.key === 'Escape') stop(null);
    }, { signal });
  }

  pan(event) {
    const { clientX } = event;
    const { start, span } = this.view;
    this.follow(event, (moved) => {
      this.view.show(start - (moved.clientX - clientX) / this.width * span);
    }, () => {});
  }

  /** Select a window, over one row or several. */
  mark(event) {
    const { clientX, clientY } = event;
    const first = this.timeAt(clientX);
    const row = this.rowAt(clientY);
    let selection = null;
    const select = ({ clientX: x, clientY: y }) => {
      if (!selection && Math.abs(x - clientX) < SLACK) return;
      const [early, late] = [first, this.timeAt(x)].sort((a, b) => a - b);
      const start = Math.max(this.snapped(early), times.now());
      const end = Math.max(this.snapped(late), start + times.MINUTE);
      const [from, to] = [row, this.rowAt(y)].sort((a, b) => a - b);
      selection = { start, end, from, to: to + 1 };
      this.on.drag(selection);
    };
    this.follow(event, select, (last) => {
      if (last && selection) this.on.dropped(selection);
      else if (selection) this.on.cancel();
    });
  }

  /** Move the end of an own bar. */
  pull(event, bar) {
    this.carry(event, bar, (moved) => this.on.pull(bar, Math.max(
      this.snapped(bar.end + moved),
      Math.max(bar.start, times.now()) + times.MINUTE)));
  }

  /** Move an own bar that has not started. */
  shift(event, bar) {
    this.carry(event, bar, (moved) => this.on.shift(
      bar, Math.max(this.snapped(bar.start + moved), times.now())));
  }

  /** Call `act(seconds)` while the pointer moves; a click selects the bar. */
  carry(event, bar, act) {
    let isMoved = false;
    this.follow(event, ({ clientX }) => {
      const pixels = clientX - event.clientX;
      isMoved ||= Math.abs(pixels) >= SLACK;
      if (isMoved) act(pixels / this.width * this.view.span);
    }, (last) => {
      if (!isMoved) this.on.select(bar);
      else if (last) this.on.pulled();
      else this.on.cancel();
    });
  }

  wheel(event) {
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.view.zoom(Math.exp(event.deltaY / 300),
        this.timeAt(event.clientX));
    } else if (across) {
      event.preventDefault();
      this.view.move(across / this.width);
    }
  }

  key(event) {
    const act = {
      'ArrowLeft': () => this.view.move(-0.1),
      'ArrowRight': () => this.view.move(0.1),
      '+': () => this.view.zoom(1 / 1.5),
      '=': () => this.view.zoom(1 / 1.5),
      '-': () => this.view.zoom(1.5),
      'n': () => this.view.showNow(),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }
}
