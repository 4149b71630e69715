# SPDX-License-Identifier: Apache-2.0
"""Pages of the answers of the manager that are lists."""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Protocol

from blazar_sched.replica import wire
from blazar_sched.service.bus.calls import Page
from blazar_sched.service.bus.calls import Values


class _OwnedPage(Protocol):
    def __call__(
        self, *, project_id: str | None, marker: str | None = None
    ) -> Page: ...


def owned(items: Callable[[str | None], Iterable[Values]]) -> _OwnedPage:
    """Return the answer with a page of the items of a project."""

    def answer(*, project_id: str | None, marker: str | None = None) -> Page:
        return page(items(project_id), 'id', after=marker)

    return answer


class _AnyPage(Protocol):
    def __call__(self, *, marker: str | None = None) -> Page: ...


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
