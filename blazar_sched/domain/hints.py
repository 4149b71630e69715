# SPDX-License-Identifier: Apache-2.0
"""The times that a server's owner declares, by scheduler hints or by flavor.

The scheduler hints are read in three places: by nova-api before it accepts the
request, by nova-scheduler's filters, and by the manager, which sees the
server.
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
# The hint of Climate: JSON with name, start, end and events.
LEASE_PARAMS = 'lease_params'
# The end of a server that declares none, as nova-api has computed it.
DEFAULT_END = 'lease_default_end'
# How the server may be moved; see domain.relocation.
MOVABLE = 'movable'
ALL = (
    RESERVATION, LEASE_START, LEASE_END, LIFETIME, LEASE_NAME, LEASE_ON_END,
    LEASE_PARAMS, DEFAULT_END, MOVABLE,
)

NOW = 'now'
MAX_PARAMS = 4096
# The hint that says the same as each parameter; the events have no such hint.
_PARAMS = {
    'name': LEASE_NAME, 'start': LEASE_START, 'end': LEASE_END,
    'events': 'lease_events',
}


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """The times that are declared for a server, and its lease's name.

    :param start: None for at once
    :param end: FOREVER for an unbounded server
    :param name: name of the server's lease; '' to have a name generated
    :param on_end: one of reservation.LIFETIME_ON_END, None for the cloud's
        default
    """

    start: int | None = None
    end: int = window.FOREVER
    name: str = ''
    on_end: str | None = None


def read(
    hints: Mapping[str, Any], extra_specs: Mapping[str, str], at: int,
    default: str = '', is_new: bool = True,
) -> Declared:
    """Return what the hints declare, else the flavor, else the default.

    :param hints: values by name; None, or absent, for a hint that is not given
    :param at: the time of the request, from which durations count
    :param default: a duration for a server that declares no end; '' for none
    :param is_new: whether the server is created at that time; a duration of an
        older server began at a time that is not known, so the duration gives
        no end
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
            f'{LEASE_END} must be in the future, and later than the start',
            field=LEASE_END,
        )
    return Declared(
        start, end, _name(given.get(LEASE_NAME, '')),
        _on_end(given.get(LEASE_ON_END)),
    )


def of_server(shown: Mapping[str, object] | None) -> dict[str, object]:
    """Return the hints of a server that Nova shows, by name.

    Nova may show the value of a hint as a list of one value.
    """
    return {
        name: hint[0] if isinstance(hint, list) and len(hint) == 1 else hint
        for name, hint in (shown or {}).items()
    }


def _end(
    hints: Mapping[str, Any], extra_specs: Mapping[str, str],
    since: int | None, default: str,
) -> int:
    """Return the end that the first declaration of an end gives.

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
        # The server ends with the reservation, which nova-api could not see.
        return window.FOREVER
    if DEFAULT_END in hints:
        return parse_time(hints[DEFAULT_END], DEFAULT_END)
    if default:
        return _after(since, parse_duration(default, 'default_lifetime'))
    return window.FOREVER


def _after(since: int | None, duration: int) -> int:
    if since is None:
        return window.FOREVER
    return end_after(since, duration)


def _start(text: Any, at: int) -> int | None:
    """Return the start, None if the start is now or past."""
    if text == NOW:
        return None
    start = parse_time(text, LEASE_START)
    return start if start > at else None


def _params(text: Any) -> dict[str, Any]:
    """Return the values of the hint of Climate, by our names of hints."""
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
    if not isinstance(text, str) or len(text) > 80 or not text.isprintable():
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
