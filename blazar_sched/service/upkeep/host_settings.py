# SPDX-License-Identifier: Apache-2.0
"""A host's settings and capabilities, which the operator sends together."""

from collections.abc import Callable
from collections.abc import Mapping
import json
import re
from typing import Any

from oslo_utils import strutils

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain import host
from blazar_sched.domain import reservation

MAX_NAME = 64

_MINUTES = re.compile('[0-9]{1,9}')


def settings(values: Mapping[str, Any], default_hold: str) -> dict[str, Any]:
    """Return the settings among the values, as a Host has them.

    :param default_hold: the hold of a host for which none is given
    :raises InvalidInput: naming the setting that is wrong
    """
    found = {
        name: parse(values[name], name)
        for name, parse in _SETTINGS.items()
        if name in values
    }
    if 'hold' in found:
        found['hold'] = found['hold'] or default_hold
    return found


def capabilities(
    old: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, str]:
    """Return the capabilities, updated with the values that are no settings.

    :raises InvalidInput: naming the capability that is wrong
    """
    given = {k: v for k, v in values.items() if k not in _SETTINGS}
    for name, value in given.items():
        _check_capability(name, value)
    return {
        name: value
        for name, value in {**old, **given}.items()
        if value is not None
    }


def _check_capability(name: str, value: object) -> None:
    if not 0 < len(name) <= MAX_NAME:
        raise exception.InvalidInput(
            f'the name of a capability must have 1 to {MAX_NAME} characters',
            field=name[:MAX_NAME],
        )
    if not host.is_capability(name):
        raise exception.InvalidInput(
            f'{name} is a property that each host has, and cannot be set',
            field=name,
        )
    if value is not None and not isinstance(value, str):
        raise exception.InvalidInput(
            f'the value of capability {name} must be text', field=name
        )


def _parse_hold(value: Any, field: str) -> str | None:
    if value not in (None, *host.HOLDS):
        raise exception.InvalidInput(
            f'hold must be one of {", ".join(host.HOLDS)}', field=field
        )
    hold: str | None = value
    return hold


def _parse_unbounded(value: Any, field: str) -> str | None:
    if value is not None:
        duration.parse_unbounded(value, field)
    policy: str | None = value
    return policy


def _parse_cleaning_time(value: object, field: str) -> int | None:
    if value is None:
        return None
    # True is not an integer here, although bool is a subclass of int.
    text = str(value) if type(value) in (int, str) else ''
    if not _MINUTES.fullmatch(text) or int(text) > host.MAX_CLEANING_TIME:
        raise exception.InvalidInput(
            'cleaning_time must be a number of minutes from 0 to '
            f'{host.MAX_CLEANING_TIME}',
            field=field,
        )
    return int(text)


def _parse_flag(value: object, field: str) -> bool:
    try:
        flag: bool = strutils.bool_from_string(value or False, strict=True)
        return flag
    except ValueError as e:
        raise exception.InvalidInput(
            f'{field} must be true or false', field=field
        ) from e


def _parse_time(value: Any, field: str) -> int | None:
    return None if value is None else duration.parse_time(value, field)


def _parse_projects(value: Any, field: str) -> tuple[str, ...]:
    """Parse project ids: a list, a JSON list, or comma-separated text."""
    try:
        if isinstance(value, str) and value.lstrip().startswith('['):
            value = json.loads(value)
    except (ValueError, RecursionError) as e:
        raise _bad_projects(field) from e
    if isinstance(value, str):
        value = [v.strip() for v in value.split(',')] if value.strip() else []
    ids = list(value or ())
    fits = len(ids) <= reservation.MAX_PROJECTS
    if not fits or not all(map(_is_project, ids)):
        raise _bad_projects(field)
    return tuple(dict.fromkeys(ids))


def _is_project(id_: object) -> bool:
    return (
        isinstance(id_, str) and 0 < len(id_) <= reservation.MAX_PROJECT_ID
    )


def _bad_projects(field: str) -> exception.InvalidInput:
    return exception.InvalidInput(
        f'projects must be up to {reservation.MAX_PROJECTS} project ids: a '
        'JSON list, or text with commas between them',
        field=field,
    )


# The settings of a host: they are sent among its capabilities.
_SETTINGS: dict[str, Callable[[Any, str], object]] = {
    'hold': _parse_hold,
    'unbounded': _parse_unbounded,
    'cleaning_time': _parse_cleaning_time,
    'disabled': _parse_flag,
    'spare': _parse_flag,
    'projects': _parse_projects,
    'available_from': _parse_time,
    'available_until': _parse_time,
}
