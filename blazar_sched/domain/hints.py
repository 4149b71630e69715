# SPDX-License-Identifier: Apache-2.0
"""What a server's owner says of its time: by hints, or by its flavor.

The scheduler hints are read in three places: at nova-api's door, by
nova-scheduler's filters, and by the manager, which sees the server.
"""

from collections.abc import Mapping
import dataclasses
import json
from typing import Any

from blazar_sched.domain import exception
from blazar_sched.domain import flavor
from blazar_sched.domain import reservation
from blazar_sched.domain import window
from blazar_sched.domain.duration import end_after
from blazar_sched.domain.duration import parse_duration
from blazar_sched.domain.duration import parse_time

RESERVATION = 'reservation'
LEASE_START = 'lease_start'
LEASE_END = 'lease_end'
LIFETIME = 'lifetime'
LEASE_NAME = 'lease_name'
LEASE_ON_END = 'lease_on_end'
# Climate's: JSON with name, start, end and events.
LEASE_PARAMS = 'lease_params'
# The end of who declares none, as nova-api has worked it out.
DEFAULT_END = 'lease_default_end'
ALL = (
    RESERVATION, LEASE_START, LEASE_END, LIFETIME, LEASE_NAME, LEASE_ON_END,
    LEASE_PARAMS, DEFAULT_END,
)

NOW = 'now'
MAX_PARAMS = 4096
# The hints that say the same; for its events there is none.
_PARAMS = {
    'name': LEASE_NAME, 'start': LEASE_START, 'end': LEASE_END,
    'events': 'lease_events',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """What is said of a server's time.

    :param start: None for at once
    :param end: FOREVER for an unbounded one
    :param name: of its lease; '' to have one made up
    :param on_end: one of reservation.LIFETIME_ON_END, None for the cloud's
    """

    start: int | None = None
    end: int = window.FOREVER
    name: str = ''
    on_end: str | None = None


def read(
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    at: int,
    default: str = '',
    is_new: bool = True,
) -> Declared:
    """Return what the hints say, else the flavor, else the default.

    :param hints: by name; None, or absent, where it is not given
    :param at: the time of the request, which durations count from
    :param default: a duration for who declares no end; '' for none
    :param is_new: whether the server is made at that time; of one that is
        older a duration has begun at a time that is not known, so there is
        no end by it
    :raises InvalidInput: naming the hint or extra spec that is wrong
    """
    params = _params(hints.get(LEASE_PARAMS))
    given = {
        name: hint
        for name, hint in (*params.items(), *hints.items())
        if hint is not None
    }
    start = _start(given.get(LEASE_START, NOW), at)
    begins = at if start is None else start
    since = begins if is_new or start is not None else None
    end = _end(given, extra_specs, since, default)
    if end <= begins:
        raise exception.InvalidInput(
            f'{LEASE_END} must be later than the start, and than now',
            field=LEASE_END,
        )
    return Declared(
        start, end, _name(given.get(LEASE_NAME, '')),
        _on_end(given.get(LEASE_ON_END)),
    )


def _end(
    hints: Mapping[str, Any],
    extra_specs: Mapping[str, str],
    since: int | None,
    default: str,
) -> int:
    """Return the end that the first one says.

    :param since: when durations begin, None if that is not known
    """
    if LEASE_END in hints:
        return parse_time(hints[LEASE_END], LEASE_END)
    for field, text in (
        (LIFETIME, hints.get(LIFETIME)),
        (flavor.LIFETIME, extra_specs.get(flavor.LIFETIME)),
    ):
        if text is not None:
            return _after(since, parse_duration(text, field))
    if flavor.reservation_id(extra_specs):
        # It ends with that, which nova-api could not see.
        return window.FOREVER
    if DEFAULT_END in hints:
        return parse_time(hints[DEFAULT_END], DEFAULT_END)
    if default:
        return _after(
            since, parse_duration(default, 'default_lifetime')
        )
    return window.FOREVER


def _after(since: int | None, duration: int) -> int:
    if since is None:
        return window.FOREVER
    return end_after(since, duration)


def _start(text: Any, at: int) -> int | None:
    """Return the start, None if that is now, or has been."""
    if text == NOW:
        return None
    start = parse_time(text, LEASE_START)
    return start if start > at else None


def _params(text: Any) -> dict[str, Any]:
    """Return what Climate's hint says, by the names of ours."""
    if text is None:
        return {}
    try:
        params = json.loads(text) if len(text) <= MAX_PARAMS else None
    except (TypeError, ValueError, RecursionError):
        params = None
    if not isinstance(params, dict) or not params.keys() <= _PARAMS.keys():
        raise exception.InvalidInput(
            f'{LEASE_PARAMS} must be a JSON object with some of '
            f'{", ".join(_PARAMS)}',
            field=LEASE_PARAMS,
        )
    return {_PARAMS[name]: value for name, value in params.items()}


def _name(text: Any) -> str:
    if not isinstance(text, str) or len(text) > 80 or not (
        text.isprintable()
    ):
        raise exception.InvalidInput(
            f'{LEASE_NAME} must be up to 80 printable characters',
            field=LEASE_NAME,
        )
    return text


def _on_end(text: Any) -> str | None:
    if text is None:
        return None
    if text not in reservation.LIFETIME_ON_END:
        raise exception.InvalidInput(
            f'{LEASE_ON_END} must be one of '
            f'{", ".join(reservation.LIFETIME_ON_END)}',
            field=LEASE_ON_END,
        )
    return str(text)
