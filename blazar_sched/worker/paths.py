# SPDX-License-Identifier: Apache-2.0
"""The hosts on which a request passes by a relocation path."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from blazar_sched.domain.host import Host
from blazar_sched.domain.relocation import Rules
from blazar_sched.domain.window import FOREVER
from blazar_sched.placing import relocation
from blazar_sched.placing.relocation import Path
from blazar_sched.placing.relocation import Targets
from blazar_sched.replica import state
from blazar_sched.worker.request import Request

# If so many hosts pass, no further path is looked for.
ENOUGH = 16
# The most times at which hosts have to be left, that paths are looked for.
MOST_TIMES = 16


class Paths:
    """The relocation paths of a request from each host, as of the replica.

    The figures of the present come from HostStates. For later times, a path
    goes by the records alone, as there is no HostState of a host that is full
    now.
    """

    def __init__(
        self,
        replica: state.Replica,
        request: Request,
        now: int,
        rules: Rules,
    ) -> None:
        self._replica = replica
        self._request = request
        self._now = now
        self._rules = rules
        # By the likeness of the hosts that are left, and the amounts.
        self._targets: dict[tuple[Any, ...], Targets] = {}

    def has_headroom(self, end: int) -> bool:
        """Tell whether all hosts together have headroom for the request."""
        total = self._replica.indexes.total
        start = self._now + self._rules.notice
        if total is None or end <= start:
            return True
        amounts = self._request.by_class
        return total.has_room(
            start, end, amounts,
            self._rules.headroom_for(amounts, bounded=end != FOREVER),
            ignore=self._request.own_id,
        )

    def with_path(
        self,
        host_states: list[Any],
        with_room: list[Any],
        amounts: tuple[int, ...],
        end: int,
    ) -> list[Any]:
        """Return the hosts with room to an end, there or by a path.

        Paths are looked for only until ENOUGH hosts pass, from the hosts first
        that have room for the longest time.

        :param with_room: those of `host_states` that have room of
            RESOURCE_CLASSES to the end
        """
        staying = self._with_extra_room(with_room, end)
        if len(staying) >= ENOUGH:
            return staying
        passing = {id(h) for h in staying}
        for until, group in self._by_time(
            [h for h in host_states if id(h) not in passing], amounts
        ):
            passing.update(
                id(h) for h in group
                if self._find(h.uuid, amounts, until, end) is not None
            )
            if len(passing) >= ENOUGH:
                break
        return [h for h in host_states if id(h) in passing]

    def _with_extra_room(
        self, host_states: list[Any], end: int
    ) -> list[Any]:
        """Return the hosts with room in the indexes of the other classes."""
        if not self._request.extra:
            return host_states
        seconds = self._replica.indexes.extra_horizon(
            [h.uuid for h in host_states], self._now, self._request.extra,
            self._request.own_id,
        )
        return [
            h for h, each in zip(host_states, seconds, strict=True)
            if self._now + each >= end
        ]

    def _by_time(
        self, host_states: list[Any], amounts: tuple[int, ...]
    ) -> list[tuple[int, list[Any]]]:
        """Return hosts by the time until which they have room, latest first.

        Of many times, only the latest MOST_TIMES.
        """
        main, own_id = self._replica.indexes.main, self._request.own_id
        headroom = self._replica.present.headroom(main, host_states, own_id)
        seconds: Sequence[int] = main.horizon(
            headroom.rows, self._now, amounts, headroom=headroom.room,
            ignore=headroom.ignore,
        )
        if self._request.extra:
            extra = self._replica.indexes.extra_horizon(
                [h.uuid for h in host_states], self._now,
                self._request.extra, own_id,
            )
            seconds = list(map(min, seconds, extra))
        groups = defaultdict(list)
        least = self._rules.least_stay
        for h, each in zip(host_states, seconds, strict=True):
            if each >= least:
                groups[self._now + each].append(h)
        return sorted(groups.items(), reverse=True)[:MOST_TIMES]

    def _find(
        self, host: str, amounts: tuple[int, ...], until: int, end: int
    ) -> Path | None:
        known = self._replica.hosts.get(host)
        if known is None:
            return None
        return relocation.find(
            self._targets_of(known, amounts), host, self._now, until, end,
            self._rules,
        )

    def _targets_of(self, host: Host, amounts: tuple[int, ...]) -> Targets:
        key = (*host.likeness, *amounts)
        found = self._targets.get(key)
        if found is None:
            candidates = self._replica.catalog.relocation_targets(host)
            found = self._targets[key] = Targets(
                self._replica.indexes, candidates.rows, amounts,
                self._request.extra,
                self._replica.present.recorded_room(candidates.hosts),
                self._request.own_id,
            )
        return found
