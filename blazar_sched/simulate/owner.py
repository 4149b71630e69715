# SPDX-License-Identifier: Apache-2.0
"""Owners that do not use all that they reserve, and the lending of the rest.

What is lent is decided as by the manager: see domain.lending. The manager has
seen each boot after some seconds, and a preemptible instance that has to go
has its notice.
"""

from collections import Counter
from collections.abc import Callable
import dataclasses
import functools
import random
import uuid

from blazar_sched.domain import lending
from blazar_sched.domain.lending import Lending
from blazar_sched.simulate import lease
from blazar_sched.simulate import result
from blazar_sched.simulate.cloud import Cloud

# As the options lend_after, lend_notice and lend_interval of the manager.
AFTER, NOTICE, INTERVAL = 900, 30, 5
# Seconds until the next try of a boot that found no room, and of a recall
# whose instances are not gone.
RETRY = 10
# The probability that all late units of a lease come at once.
BURST = 0.5

# Plans a call at a time.
Plan = Callable[[int, Callable[[], None]], None]


def draw(
    booked: lease.Booking, absent: float, late: float, rng: random.Random
) -> tuple[tuple[int, int], ...]:
    """Return when the owner of a lease boots how many units at once.

    :param absent: the probability that a unit is never booted
    :param late: the probability that another unit is not booted at the start
    """
    [reservation] = booked.lease.reservations
    window = booked.lease.window
    kinds = Counter(
        'absent' if rng.random() < absent
        else 'late' if rng.random() < late else 'prompt'
        for _ in range(reservation.demand.least)
    )
    count = kinds['late']
    times = [
        rng.randrange(window.start, window.end)
        for _ in range(1 if rng.random() < BURST else count)
    ]
    each = count if len(times) < count else 1
    uses = [(window.start, kinds['prompt'])]
    uses += [(at, each) for at in sorted(times)] if count else []
    return tuple((at, number) for at, number in uses if number)


@dataclasses.dataclass
class _Open:
    """An open lease.

    :ivar units: the units by uuid of the host
    :ivar sizes: the vCPUs, MB and GPUs of a unit on each host
    :ivar servers: the hosts of the owner's instances, by uuid
    :ivar waiting: since when the owner waits for each boot that was refused
    """

    start: int
    reservation_id: str
    units: dict[str, int]
    sizes: dict[str, tuple[int, int, int]]
    servers: dict[str, str] = dataclasses.field(default_factory=dict)
    waiting: list[int] = dataclasses.field(default_factory=list)
    lending: Lending = dataclasses.field(default_factory=Lending)

    @property
    def used(self) -> Counter[str]:
        return Counter(self.servers.values())


class Owners:
    """The owners of the open leases that are not used in full from the start.

    :param plan: plans what happens later
    :param lends: whether leases lend what they do not use
    """

    def __init__(
        self, there: Cloud, plan: Plan, found: result.Result, lends: bool
    ) -> None:
        self._there = there
        self._plan = plan
        self._found = found
        self._lends = lends
        self._open: dict[str, _Open] = {}
        self._ids = random.Random(1)

    def start(self, booking: lease.Booking) -> None:
        """Open a lease, and plan the boots of its owner."""
        id_ = booking.lease.id
        self._found.evicted.update(self._there.hold(id_))
        units, sizes = self._there.units(booking.lease)
        [reservation] = booking.lease.reservations
        self._open[id_] = _Open(
            booking.lease.start, reservation.id, units, sizes
        )
        for at, count in booking.uses or ():
            self._plan(at, functools.partial(self._use, id_, count))
        if self._lends:
            self._later(AFTER, self._look, id_)
        self._measure(self._open[id_])

    def end(self, lease_id: str) -> bool:
        """End a lease; return False if the lease is not one of these."""
        known = self._open.pop(lease_id, None)
        if known is None:
            return False
        for each in known.servers:
            self._there.leave(each)
        self._found.unserved += len(known.waiting)
        self._there.end(lease_id)
        for uuid_ in known.units:
            self._there.measure(uuid_, known.reservation_id, 0)
        return True

    def _later(
        self, seconds: int, call: Callable[..., None], *arguments: str
    ) -> None:
        self._plan(
            self._there.now + seconds, functools.partial(call, *arguments)
        )

    def _use(self, lease_id: str, units: int) -> None:
        known = self._open.get(lease_id)
        if known is None:
            return
        booted = sum(self._boot(known) for _ in range(units))
        self._found.owner_waits += [0] * booted
        if booted < units:
            known.waiting += [self._there.now] * (units - booted)
            self._found.bursts += 1
            self._later(RETRY, self._again, lease_id)
        if self._lends:
            self._later(INTERVAL, self._look, lease_id)
        self._measure(known)

    def _again(self, lease_id: str) -> None:
        """Boot what was refused before."""
        known = self._open.get(lease_id)
        if known is None or not known.waiting:
            return
        while known.waiting and self._boot(known):
            since = known.waiting.pop(0)
            self._found.owner_waits.append(self._there.now - since)
        if known.waiting:
            self._later(RETRY, self._again, lease_id)
        self._look(lease_id)
        self._measure(known)

    def _boot(self, known: _Open) -> bool:
        """Boot an instance of the owner that fills a unit, if there is room.
        """
        id_ = str(uuid.UUID(int=self._ids.getrandbits(128)))
        used = known.used
        for host, units in known.units.items():
            if used[host] < units and self._there.boot_bound(
                id_, host, known.sizes[host], known.reservation_id
            ):
                known.servers[id_] = host
                return True
        return False

    def _look(self, lease_id: str) -> None:
        known = self._open.get(lease_id)
        if known is None or not self._lends:
            return
        now, before = self._there.now, known.lending
        known.lending = lending.next_lending(
            before, known.units, known.used, now, now >= known.start + AFTER,
            self._there.preemptible_mb,
        )
        self._tell(lease_id, known, before)
        for host, at in known.lending.recalled_at.items():
            if at == now:
                self._later(NOTICE, self._clear, lease_id, host)

    def _clear(self, lease_id: str, host: str) -> None:
        """Have preemptible instances leave what was recalled on a host."""
        known = self._open.get(lease_id)
        if known is None or host not in known.lending.recalled:
            return
        free = known.units[host] - known.used[host] - (
            known.lending.lent.get(host, 0)
        )
        vcpus, memory_mb, gpus = known.sizes[host]
        evicted, is_free = self._there.clear(
            host, (free * vcpus, free * memory_mb, free * gpus)
        )
        self._found.recalled.update(evicted)
        if not is_free:
            self._later(RETRY, self._clear, lease_id, host)
            return
        before = known.lending
        known.lending = before.cleared(host)
        self._tell(lease_id, known, before)
        self._again(lease_id)

    def _tell(self, lease_id: str, known: _Open, before: Lending) -> None:
        now = known.lending
        if (now.lent, now.recalled) != (before.lent, before.recalled):
            self._there.lend(lease_id, now)

    def _measure(self, known: _Open) -> None:
        """Note what of the reservation is idle on each host, in vCPUs."""
        used = known.used
        for host, units in known.units.items():
            vcpus, _, _ = known.sizes[host]
            self._there.measure(
                host, known.reservation_id, (units - used[host]) * vcpus
            )
