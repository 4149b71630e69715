# SPDX-License-Identifier: Apache-2.0
"""A Nova server on a reservable host, as far as the ledger knows it."""

from collections.abc import Mapping
import dataclasses

from blazar_sched.domain import window


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """`host` is the host's uuid; `end` is FOREVER for an unbounded one."""

    uuid: str
    host: str
    project_id: str
    amounts: Mapping[str, int]
    end: int = window.FOREVER
    reservation_id: str | None = None
    preemptible: bool = False
