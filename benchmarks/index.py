# SPDX-License-Identifier: Apache-2.0
"""The index and its plain-Python twin, asked as the peers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import ClassVar

from benchmarks import workload
from blazar_sched import ext
from blazar_sched.ext import timeline_index


class Index:
    """The index as nova-scheduler has it: everything on."""

    name = 'index'
    options: ClassVar[dict[str, int]] = {}

    def empty(self) -> Any:
        """Return an index without hosts."""
        return ext.TimelineIndex(workload.RESOURCE_CLASSES, **self.options)

    def build(self, plan: workload.Workload) -> None:
        self.timelines = self.empty()
        self.timelines.load(*plan.columns())
        self.timelines.advance(workload.NOW)

    def fits(self, start: int, end: int, amounts: Sequence[int]) -> bytes:
        return self.timelines.fits(None, start, end, amounts)

    def earliest(
        self, count: int, duration: int, after: int
    ) -> tuple[int, list[str]] | None:
        return self.timelines.earliest(
            count, duration, after, None, whole=True
        )

    def add(self, new: workload.Addition) -> str:
        self.timelines.apply([change_to_add(new)], force=True)
        return new.id

    def remove(self, handle: str) -> None:
        self.timelines.apply([('remove', handle)], force=True)

    def add_all(self, batch: Sequence[workload.Addition]) -> list[str]:
        self.timelines.apply(map(change_to_add, batch), force=True)
        return [new.id for new in batch]

    def remove_all(self, handles: Sequence[str]) -> None:
        self.timelines.apply(
            [('remove', handle) for handle in handles], force=True
        )

    def memory(self) -> dict[str, int]:
        return self.timelines.memory()


class RowsOnly(Index):
    """The rows alone, without what is kept to be faster."""

    name = 'index, rows only'
    options: ClassVar[dict[str, int]] = {'horizons': 0, 'sketch': 0}


class PlainTwin(Index):
    """The specification in plain Python."""

    name = 'plain twin'
    most_hosts = 100

    def empty(self) -> Any:
        return timeline_index.TimelineIndex(workload.RESOURCE_CLASSES)


def change_to_add(new: workload.Addition) -> tuple[Any, ...]:
    """Return an addition as a change for the index's ``apply``."""
    return (
        'add', new.id, new.owner, new.host, new.start, new.end, new.amounts,
        False,
    )
