# SPDX-License-Identifier: Apache-2.0
"""Reservations: as options, and the reservations of leases."""

import argparse
from collections.abc import Iterable
from collections.abc import Sequence
import json
import re
from typing import Any

from osc_lib.command import command

from blazar_sched_client.osc import verb

_PAIR = re.compile(r',(?=\w+=)')
# Values that are no text; the API reads numbers in a text itself.
_JSON = re.compile(r'\[.*\]|\{.*\}|true|false|null', re.DOTALL)
# Requirements are JSON in a text.
_REQUIREMENTS = ('hypervisor_properties', 'resource_properties')


def parse(text: str) -> dict[str, Any]:
    """Return the reservation of ``key=value,key=value``, or of JSON.

    :raises argparse.ArgumentTypeError: if the text has another form
    """
    try:
        if text.startswith('{'):
            whole: dict[str, Any] = json.loads(text)
            return whole
        return dict(_field(pair) for pair in _PAIR.split(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text}: must be key=value,key=value, or JSON'
        ) from None


def _field(pair: str) -> tuple[str, Any]:
    name, value = pair.split('=', 1)
    if name not in _REQUIREMENTS and _JSON.fullmatch(value):
        return name, json.loads(value)
    return name, value


RESERVATIONS: verb.Option = ('--reservation', {
    'metavar': '<key=value>[,<key=value>...]',
    'action': 'append',
    'dest': 'reservations',
    'type': parse,
    'help': 'Reservation, as in resource_type=physical:host,min=1,max=2 (may '
    'be repeated)',
})
ALTERNATIVES: verb.Option = ('--alternative', {
    'metavar': '<key=value>[,<key=value>...]',
    'action': 'append',
    'nargs': '+',
    'dest': 'alternatives',
    'type': parse,
    'help': 'Reservations that would do instead (may be repeated)',
})


class ListReservation(verb.Command, command.Lister):
    """List the reservations of a lease, or of all leases of the project.

    The hosts, and how many servers a reservation still takes, are only shown
    for one lease.
    """

    options = (
        verb.text(
            'lease', 'Name or ID of the lease', metavar='<lease>', nargs='?'
        ),
    )

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        if parsed_args.lease is None:
            leases = self.client.leases()
        else:
            found = self.client.find_lease(
                parsed_args.lease, ignore_missing=False
            )
            leases = [self.client.get_lease(found.id)]
        names = (
            'id', 'lease_id', 'resource_type', 'status', 'min', 'max',
            'amount', 'hosts', 'remaining',
        )
        return verb.rows(
            names, (r for lease in leases for r in lease.reservations),
            parsed_args,
        )
