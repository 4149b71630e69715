# SPDX-License-Identifier: Apache-2.0
"""Long lists: the query for a part of a list, and the fetching of all pages.

``limit``, ``marker`` and ``sort`` as in the API guidelines of OpenStack's
API working group ("Pagination, Filtering, and Sorting"), ``fields`` as in
Ironic.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from typing import Any
from urllib import parse

import falcon
from oslo_utils import strutils

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.service.api.field import Field
from blazar_sched.service.api.field import Type
from blazar_sched.service.bus.calls import Page

# Items requested in one call; the manager may return fewer.
PAGE = 1000
MAX_LIMIT = 2**31 - 1

QUERY = (
    Field(
        'limit', 'Maximum number of items; a link leads to the other items',
        type=Type({'type': 'integer', 'minimum': 1, 'maximum': MAX_LIMIT}),
    ),
    Field(
        'marker', 'ID of the last item of the previous page',
        type=Type({'type': 'string', 'minLength': 1, 'maxLength': 36}),
    ),
    Field(
        'fields', 'Fields of each item that are shown: `id,name`',
        type=Type({'type': 'string', 'format': 'fields'}),
    ),
)

_DIRECTIONS = {'': False, 'asc': False, 'desc': True}

Item = dict[str, Any]


def sort_field(known: Iterable[str]) -> Field:
    """Return the query parameter for the order of a list.

    :param known: the sort keys that the list has
    """
    keys = ', '.join(f'`{key}`' for key in known)
    return Field(
        'sort',
        'Sort keys by precedence, each with its direction: '
        f'`name:asc,end:desc`; the sort keys are {keys}',
        type=Type({'type': 'string', 'format': 'sort'}),
    )


def text(req: falcon.Request, name: str, longest: int) -> str | None:
    """Return a parameter, which must not be empty if it is present.

    :raises InvalidInput: naming the parameter
    """
    value = req.get_param(name)
    if value is not None and not 0 < len(value) <= longest:
        raise exception.InvalidInput(
            f'{name} must be a string of 1 to {longest} characters', field=name
        )
    return value


def time(req: falcon.Request, name: str) -> int | None:
    """Return a parameter as a time in epoch seconds, None if absent.

    :raises InvalidInput: naming the parameter
    """
    value = req.get_param(name)
    return None if value is None else duration.parse_time(value, name)


def boolean(req: falcon.Request, name: str) -> bool | None:
    """Return a parameter as true or false, None if absent.

    :raises InvalidInput: naming the parameter
    """
    value = req.params.get(name)
    if value is None:
        return None
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError:
        raise exception.InvalidInput(
            f'{name} must be true or false', field=name
        ) from None


def limit(req: falcon.Request) -> int | None:
    """Return the number of items requested, None for all.

    :raises InvalidInput: if it is not a number from 1 to MAX_LIMIT
    """
    return number(req, 'limit', MAX_LIMIT)


def number(req: falcon.Request, name: str, most: int) -> int | None:
    """Return a parameter, which must be a number if it is present.

    :raises InvalidInput: naming the parameter, unless it is from 1 to `most`
    """
    digits = req.get_param(name)
    if digits is None:
        return None
    if digits.isascii() and digits.isdigit() and len(digits) <= 10:
        found = int(digits)
        if 0 < found <= most:
            return found
    raise exception.InvalidInput(
        f'{name} must be an integer from 1 to {most}', field=name
    )


def sort(req: falcon.Request, known: Collection[str]) -> list[list[Any]]:
    """Return the keys of ``sort=key:direction,…``, each with its direction.

    The direction is True if the key descends.

    :raises InvalidInput: if the parameter has another form, a key twice, or a
        key that is not in `known`
    """
    asked = req.get_param('sort')
    if asked is None:
        return []
    keys = [part.partition(':') for part in asked.split(',')]
    names = {key for key, _, _ in keys}
    if len(names) < len(keys) or not all(
        key and direction in _DIRECTIONS and bool(direction) == bool(colon)
        for key, colon, direction in keys
    ):
        raise exception.InvalidInput(
            'sort must have the form "key:asc,key2:desc", each key once',
            field='sort',
        )
    if not names <= set(known):
        raise exception.InvalidInput(
            f'sort keys must be some of {", ".join(known)}', field='sort'
        )
    return [[key, _DIRECTIONS[direction]] for key, _, direction in keys]


def fields(req: falcon.Request, known: Collection[str]) -> list[str] | None:
    """Return the requested fields of each item, None for all.

    :raises InvalidInput: if a field of ``fields=id,name,…`` is not in `known`,
        or is there twice
    """
    asked = req.get_param('fields')
    if asked is None:
        return None
    names = asked.split(',')
    if len(set(names)) < len(names) or not set(names) <= set(known):
        raise exception.InvalidInput(
            f'fields must be some of {", ".join(known)}, each once',
            field='fields',
        )
    return names


def whole(ask: Callable[..., Page]) -> list[Item]:
    """Return all items of a list that comes in pages.

    :param ask: returns the page after `marker`, if `marker` is given; a marker
        that a page has returned remains valid even if its item is deleted
    """
    page = ask()
    found = page['items']
    while page['next'] is not None:
        page = ask(marker=page['next'])
        found = found + page['items']
    return found


def fetch(
    ask: Callable[..., Page], most: int | None, marker: str | None
) -> list[Item]:
    """Return the first `most` items after `marker`, page by page.

    :param ask: returns the page for `limit`, after `marker` if `marker` is
        given
    """
    page = ask(limit=_size(most), **_after(marker))
    found = page['items']
    while page['next'] is not None and len(found) != most:
        page = _following(ask, found, most)
        found = found + page['items']
    return found


def links(
    req: falcon.Request, found: list[Item], most: int | None
) -> list[dict[str, str]]:
    """Return the link to the items after the first `most`, if any."""
    if most is None or len(found) <= most:
        return []
    query = {**req.params, 'marker': found[most - 1]['id']}
    text = parse.urlencode(query, doseq=True)
    return [{'rel': 'next', 'href': f'{req.prefix}{req.path}?{text}'}]


def _following(
    ask: Callable[..., Page], found: list[Item], most: int | None
) -> Page:
    """Return the page after the last item that still exists."""
    size = _size(most and most - len(found))
    for item in reversed(found):
        try:
            return ask(limit=size, marker=item['id'])
        except exception.InvalidInput:
            # The item was deleted meanwhile and is no marker any more.
            continue
    return ask(limit=size)


def _size(most: int | None) -> int:
    return PAGE if most is None else min(most, PAGE)


def _after(marker: str | None) -> dict[str, str]:
    return {} if marker is None else {'marker': marker}
