# SPDX-License-Identifier: Apache-2.0
"""Leases that are booked by a sentence."""

from __future__ import annotations

import argparse
from collections import defaultdict
import re
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from blazar_sched_client.osc import lease
from blazar_sched_client.osc import option
from blazar_sched_client.osc import times
from blazar_sched_client.osc import verb

# The words that begin a part of the sentence, and the field of the lease that
# the part is. All fields but the duration are times.
_FIELDS = {
    'from': 'start_date', 'to': 'end_date', 'until': 'end_date',
    'for': 'duration', 'asap': 'latest_start_date',
}
# The latest start of a lease that begins as soon as possible, by default.
_SOON = '+7d'
_HOURS = re.compile(r'(?:(.*) )?(\d\d?(?::\d\d)?)-(\d\d?(?::\d\d)?)')


class Book(lease.Started, command.ShowOne):
    """Book a lease by a sentence that says what is reserved, and when.

    What is reserved: `4 hosts`, `2 instances of <flavor>`, or the number and
    the name of a product. When: `mon 9-17`, `tomorrow 9:00 for 4h`,
    `2030-01-07 to 2030-01-09`; `for 1d asap` for the first start with room in
    the next seven days, `for 1d asap fri 18:00` for the first one until then.
    A lease without a start begins at once. The dates that words mean are
    shown before the lease is booked.
    """

    options = (
        ('sentence', {
            'metavar': '<word>', 'nargs': '+', 'help': 'Words of the sentence',
        }),
        option.text('--name', 'Name of the lease, the sentence if absent'),
        option.DRY_RUN,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> verb.Columns:
        words = ' '.join(parsed_args.sentence).split() or ['']
        name = parsed_args.name or ' '.join(words)
        reservation = self._reservation(words)
        window = {
            field: self._value(field, text, parsed_args.times)
            for field, text in _window(words).items()
        }
        made = self.call(
            'create', name=name, reservations=[reservation],
            dry_run=parsed_args.dry_run, **window,
        )
        return self.show(made, parsed_args)

    def _reservation(self, words: list[str]) -> dict[str, Any]:
        """Return the reservation; remove its words from the sentence."""
        count = int(words.pop(0)) if words[0].isdecimal() else 1
        what = words.pop(0) if words else ''
        if what in ('host', 'hosts'):
            return {
                'resource_type': 'physical:host', 'min': count, 'max': count
            }
        if what not in ('instance', 'instances') or words[:1] != ['of']:
            return {'product': what, 'amount': count}
        name = ' '.join(words[1:2])
        del words[:2]
        ids = [f.id for f in self.client.flavors() if name in (f.id, f.name)]
        if len(ids) != 1:
            raise exceptions.CommandError(
                f'{len(ids)} flavors are named {name}: name one by its id'
            )
        return {
            'resource_type': 'flavor:instance', 'amount': count,
            'flavor_id': ids[0],
        }

    def _value(self, field: str, text: str, zone: times.Zone) -> str | None:
        if field == 'duration':
            return text
        found = self.time(field, times.Time(text), zone)
        if found == text != 'now' and not times.has_year(text):
            raise exceptions.CommandError(f'{text}: no such time')
        return found


def _window(words: list[str]) -> dict[str, str]:
    """Return the fields of a window in words.

    :raises osc_lib.exceptions.CommandError: if the window has no end
    """
    said: dict[str, list[str]] = defaultdict(list)
    field = 'start_date'
    for word in words:
        field = _FIELDS.get(word, field)
        said[field] += [] if word in _FIELDS else [word]
    if said.get('latest_start_date') == []:
        said['latest_start_date'] = [_SOON]
    texts = {field: ' '.join(those) for field, those in said.items() if those}
    if hours := _HOURS.fullmatch(texts.get('start_date', '')):
        day, first, last = hours.groups()
        texts['start_date'] = f'{day or "today"} {first}'
        texts['end_date'] = f'{day or "today"} {last}'
    if not {'end_date', 'duration'} & texts.keys():
        raise exceptions.CommandError(
            'until when? Add for <duration>, to <time>, or hours as in 9-17'
        )
    return texts
