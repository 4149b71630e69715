// SPDX-License-Identifier: Apache-2.0
// The strip of free capacity, over the same window as the timeline.

import { $, fill, h, svg } from './dom.js';
import * as times from './times.js';

const HEIGHT = 46;
const MOST_PARTS = 120;
// Pixels of a part, at least.
const PART = 7;

/** Return the query of the capacity from now on in a view, null for none. */
export function query(view, width, asked) {
  const start = Math.max(view.start, times.now());
  const seconds = view.end - start;
  if (seconds < times.MINUTE) return null;
  const share = seconds / view.span;
  const parts = Math.min(
    Math.max(Math.floor(share * width / PART), 1), MOST_PARTS,
    Math.floor(seconds));
  return {
    start_date: times.iso(start), end_date: times.iso(view.end), parts,
    ...asked,
  };
}

/** Show a capacity document; `null` shows that there is none. */
export function draw(capacity, timeline) {
  const { left, width } = timeline;
  const element = $('strip');
  if (!capacity) {
    fill(element);
    return;
  }
  const instances = capacity.parts.some((part) => part.instances !== null);
  const count = (part) => instances ? part.instances : part.hosts;
  const noun = instances ? 'instances' : 'hosts';
  const most = instances
    ? Math.max(...capacity.parts.map(count), 1) : Math.max(capacity.hosts, 1);
  const bars = capacity.parts.map((part) => {
    const [start, end] = [part.start_date, part.end_date].map(times.parse);
    const from = timeline.x(start);
    const height = count(part) / most * (HEIGHT - 4);
    const share = count(part) / most;
    const level = share === 0 ? 'none' : share < 0.34 ? 'little' : 'much';
    const size = {
      x: from, width: Math.max(timeline.x(end) - from, 0.5),
    };
    return svg('g', {},
      svg(`rect.${level}`, { ...size, y: HEIGHT - height, height }),
      svg('rect.touch', { ...size, y: 0, height: HEIGHT },
        svg('title', {}, `${count(part)} of ${most} ${noun} free, `
          + times.windowOf(start, end))));
  });
  fill(element, h('p', {}, `free ${noun}`), svg('svg', {
    width, height: HEIGHT, 'aria-hidden': 'true',
    style: { marginLeft: `${left}px` },
  }, bars));
}

/** Show the number for this moment. */
export function drawNow(capacity) {
  const [part] = capacity.parts;
  const instances = part.instances !== null;
  const free = instances ? part.instances : part.hosts;
  fill($('now'),
    h('strong', {}, String(free)),
    instances ? ' instances free now'
      : ` of ${capacity.hosts} ${hostsOf(capacity.hosts)} free now`);
}

const hostsOf = (count) => count === 1 ? 'host' : 'hosts';
