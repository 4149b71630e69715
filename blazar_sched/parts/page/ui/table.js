// SPDX-License-Identifier: Apache-2.0
// The timeline as a table, for who does not see or use the picture.

import { $, fill, h } from './dom.js';
import { kindOf } from './rows.js';
import * as times from './times.js';

const MAX_LINES = 500;

export function draw(rows, view) {
  const found = [];
  let total = 0;
  for (const row of rows) {
    for (const bar of row.bars) {
      if (bar.start >= view.end || (bar.end ?? Infinity) <= view.start) {
        continue;
      }
      total += 1;
      if (found.length < MAX_LINES) found.push(line(row, bar));
    }
    const part = row.heat.find(({ end }) => end > Math.max(
      view.start, times.now()));
    if (part && found.length < MAX_LINES) {
      found.push(h('tr', {}, h('th', { scope: 'row' }, row.label),
        h('td', {}, 'free'), h('td', {}, part.text), when(part.start),
        when(part.end), h('td')));
    }
  }
  fill($('table'),
    h('caption', {}, `${times.long(view.start)} to ${times.long(view.end)}`
      + (total > MAX_LINES ? `: the first ${MAX_LINES} of ${total}` : '')),
    h('thead', {}, h('tr', {}, ['Row', 'What', 'Name', 'From', 'Until',
      'Share'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, found.length ? found : h('tr', {},
      h('td', { colspan: 6 }, 'Nothing is booked in this window.'))));
}

function line(row, bar) {
  return h('tr', bar.mine ? { 'data-mine': true } : {},
    h('th', { scope: 'row' }, row.label),
    h('td', {}, (bar.mine ? 'own ' : '') + kindOf(bar)),
    h('td', {}, bar.label ?? '–'),
    when(bar.start), bar.end === null ? h('td', {}, 'no end') : when(bar.end),
    h('td', {}, `${Math.round(bar.share * 100)} %`));
}

const when = (time) =>
  h('td', {}, h('time', times.hover(time), times.long(time)));
