// SPDX-License-Identifier: Apache-2.0
// The strip of free capacity, over the same window as the timeline.

import { $, fill, h, svg } from './dom.js';
import * as times from './times.js';

const HEIGHT = 46;
const MAX_PARTS = 120;
// Pixels of a part, at least.
const PART = 7;

/** Return the query of the capacity from now on in a view, null for none. */
export function query(view, width, asked) {
  // The same query for a minute: an answer that is unchanged is not sent again.
  const minute = Math.ceil(times.now() / times.MINUTE) * times.MINUTE;
  const start = Math.max(view.start, minute);
  const seconds = view.end - start;
  if (seconds < times.MINUTE) return null;
  const share = seconds / view.span;
  const parts = Math.min(
    Math.max(Math.floor(share * width / PART), 1), MAX_PARTS,
    Math.floor(seconds));
  return {
    start_date: times.iso(start), end_date: times.iso(view.end), parts,
    ...asked,
  };
}

/** Return what is counted: {noun, count(part), most(part)}. */
function measure(capacity, resourceClass) {
  if (capacity.parts.some(({ instances }) => instances !== null)) {
    const most = Math.max(...capacity.parts.map((part) => part.instances), 1);
    return {
      noun: 'instances', count: (part) => part.instances, most: () => most,
    };
  }
  if (resourceClass) {
    const of = (part) => part.resources.find(
      (each) => each.resource_class === resourceClass);
    return {
      noun: resourceClass, count: (part) => of(part)?.available ?? 0,
      most: (part) => of(part)?.total ?? 0,
    };
  }
  return {
    noun: 'hosts', count: (part) => part.hosts, most: () => capacity.hosts,
  };
}

/** Show a capacity document; `null` shows that there is none. */
export function draw(capacity, timeline, resourceClass) {
  const { left, width } = timeline;
  const element = $('strip');
  if (!capacity) {
    fill(element);
    return;
  }
  const { noun, count, most } = measure(capacity, resourceClass);
  const bars = capacity.parts.map((part) => {
    const [start, end] = [part.start_date, part.end_date].map(times.parse);
    const from = timeline.x(start);
    const share = count(part) / (most(part) || 1);
    const height = share * (HEIGHT - 4);
    const level = share === 0 ? 'none' : share < 0.34 ? 'little' : 'much';
    const size = {
      x: from, width: Math.max(timeline.x(end) - from, 0.5),
    };
    return svg('g', {},
      svg(`rect.${level}`, { ...size, y: HEIGHT - height, height }),
      svg('rect.touch', { ...size, y: 0, height: HEIGHT },
        svg('title', {}, `${count(part)} of ${most(part)} ${noun} free, `
          + times.windowOf(start, end))));
  });
  fill(element, h('p', {}, `free ${noun}`), svg('svg', {
    width, height: HEIGHT, 'aria-hidden': 'true',
    style: { marginLeft: `${left}px` },
  }, bars));
}

/** Show the number for this moment. */
export function drawNow(capacity, resourceClass) {
  const [part] = capacity.parts;
  const { noun, count, most } = measure(capacity, resourceClass);
  const single = noun === 'hosts' && capacity.hosts === 1;
  fill($('now'), h('strong', {}, String(count(part))),
    noun === 'instances' ? ' instances free now'
      : ` of ${most(part)} ${single ? 'host' : noun} free now`);
}
