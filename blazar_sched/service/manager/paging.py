# SPDX-License-Identifier: Apache-2.0
"""Pages of the answers of the manager that are lists."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Protocol

from blazar_sched.replica import wire
from blazar_sched.service.bus.calls import Noun
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


class _Items(Protocol):
    """The operations on the items of a noun, which belong to projects."""

    @property
    def get(self) -> Callable[..., Values]: ...

    @property
    def delete(self) -> Callable[..., None]: ...

    def list(self, project_id: str | None) -> Iterable[Values]: ...


def answers(noun: Noun, items: _Items) -> dict[str, Callable[..., object]]:
    """Return the answers to the calls of a noun, by call."""

    def answer(*, project_id: str | None, marker: str | None = None) -> Page:
        return page(items.list(project_id), 'id', after=marker)

    return {noun.list: answer, noun.get: items.get, noun.delete: items.delete}


def page(
    items: Iterable[Values], key: str, others: bool = False,
    after: str | None = None,
) -> Page:
    """Return the part of a list that fits into a message.

    `next` is the marker of the page that follows, None if there is none.

    :param key: the field of an item that marks the position of the item
    :param others: whether more items than the given items may follow
    :param after: the marker after which the page begins, None for all items
    """
    found, more = wire.fitting(
        each for each in items if after is None or each[key] > after
    )
    return {
        'items': found,
        'next': found[-1][key] if more or (others and found) else None,
    }
