// SPDX-License-Identifier: Apache-2.0
// What is in the way of a lease that the service has refused.

import { amount } from './dom.js';
import { kindOf } from './rows.js';
import * as times from './times.js';

/** Return the message of a refusal, with what is in the way. */
export function refusal({ message, body }) {
  const { in_the_way: shown, in_the_way_left_out: more } = body ?? {};
  if (!shown?.length) return message;
  return `${message}. In the way: ${shown.map(obstacle).join('; ')}${
    more ? `; and ${more} more` : ''}.`;
}

function obstacle(each) {
  const end = times.parse(each.end_date);
  return [
    each.mine ? 'own' : null, kindOf(each), each.name ?? each.server_id, 'on',
    each.host ?? amount(each.hosts, 'host'),
    end ? `until ${times.short(end)}` : null,
  ].filter(Boolean).join(' ');
}
