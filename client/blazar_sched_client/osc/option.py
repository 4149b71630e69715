# SPDX-License-Identifier: Apache-2.0
"""Options of commands, by hand and from the fields of a resource.

The name of an option is the name of the field in the API.
"""

import os
from typing import Any

from osc_lib.cli import parseractions

from blazar_sched_client._base import Body
from blazar_sched_client._base import Resource
from blazar_sched_client.osc import reservation
from blazar_sched_client.osc import times

# The name of an option, or of an argument, and what argparse knows of it.
Option = tuple[str, dict[str, Any]]

NAME: Option = ('name', {'metavar': '<name>', 'help': 'Name to give'})
TIMES: Option = ('--times', {
    'metavar': '<zone>',
    'type': times.zone,
    'default': os.environ.get(times.VARIABLE, 'UTC'),
    'help': 'Time zone of the times that are read and shown: UTC, local, or '
    f'as in Europe/Berlin (Env: {times.VARIABLE}, default: UTC)',
})
DRY_RUN: Option = ('--dry-run', {
    'action': 'store_true',
    'help': 'Show the answer that the request would get, and change nothing',
})
_PAIRS = '<key=value>[,<key=value>...]'
# What a field of the API cannot say of its option.
_SPECIAL: dict[str, Option] = {
    'name': ('--name', NAME[1]),
    'dry_run': DRY_RUN,
    'idempotency_key': ('--idempotency-key', {
        'metavar': '<key>',
        'help': 'A request that is sent again with the same key creates '
        'nothing',
    }),
    'reservations': ('--reservation', {
        'metavar': _PAIRS,
        'action': 'append',
        'dest': 'reservations',
        'type': reservation.parse,
        'help': 'Reservation, as in resource_type=physical:host,min=1,max=2 '
        '(may be repeated)',
    }),
    'alternatives': ('--alternative', {
        'metavar': _PAIRS,
        'action': 'append',
        'nargs': '+',
        'dest': 'alternatives',
        'type': reservation.parse,
        'help': 'Reservations that would do instead (may be repeated)',
    }),
    'labels': ('--label', {
        'metavar': '<key=value>',
        'action': parseractions.KeyValueAction,
        'dest': 'labels',
        'help': 'Label by which the lease is found, in place of the labels '
        'that it has (may be repeated)',
    }),
}


def text(flag: str, means: str, **more: Any) -> Option:
    """Return an option with a text, or as `more` says."""
    return flag, {'metavar': f'<{flag.lstrip("-")}>', 'help': means, **more}


def moment(flag: str, means: str, **more: Any) -> Option:
    """Return an option with a time."""
    return text(flag, means, metavar='<time>', type=times.Time, **more)


def length(flag: str, means: str, **more: Any) -> Option:
    """Return an option with a duration."""
    form = 'seconds, or as in 90s, 15m, 6h, 2d or 1w'
    return text(flag, f'{means}: {form}', metavar='<duration>', **more)


def of(resource: type[Resource], name: str) -> Option:
    """Return the option for a field of a resource, or of its list."""
    if name in _SPECIAL and name not in resource._query:
        return _SPECIAL[name]
    field: Body = resource._query.get(name) or getattr(resource, name)
    flag = f'--{field.name.replace("_", "-")}'
    means = str(field.__doc__).replace('`', '').replace('None', 'none')
    if field.form:
        return {'time': moment, 'duration': length}[field.form](flag, means)
    if field.type is bool:
        return flag, {'action': 'store_true', 'help': means}
    if field.type is list:
        return text(
            flag.removesuffix('s'), f'{means} (may be repeated)',
            action='append', dest=field.name,
        )
    more = {'choices': field.choices} if field.choices else {}
    return text(
        flag, means, **more, **({'type': int} if field.type is int else {})
    )
