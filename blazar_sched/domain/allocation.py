# SPDX-License-Identifier: Apache-2.0
"""An allocation: a reservation on one host, with amounts and a window."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """A part of a reservation, on one host over one window.

    `host` is the host's uuid. An allocation that is `whole` takes all of the
    host, and its amounts are empty.
    """

    id: str
    reservation_id: str
    host: str
    start: int
    end: int
    amounts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    whole: bool = False
