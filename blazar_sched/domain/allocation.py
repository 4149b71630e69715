# SPDX-License-Identifier: Apache-2.0
"""A reservation bound to one host, with amounts and a window."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """`host` is the host's uuid; `whole` takes all of it, amounts empty."""

    id: str
    reservation_id: str
    host: str
    start: int
    end: int
    amounts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    whole: bool = False
