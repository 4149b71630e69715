# SPDX-License-Identifier: Apache-2.0
"""A load of leases, drawn from options and a seed."""

from collections import defaultdict
from collections.abc import Sequence
import dataclasses
import math
import random

from blazar_sched.domain import inventory
from blazar_sched.domain import states
from blazar_sched.domain.demand import Demand
from blazar_sched.domain.demand import Hosts
from blazar_sched.domain.demand import Slots
from blazar_sched.domain.flavor import Flavor
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.reservation import Reservation
from blazar_sched.parts.simulate import trace

HOUR, DAY = 3600, 86400
# The bounds of a lease's length, which is uniform by its logarithm.
MIN_DURATION, MAX_DURATION = 4 * HOUR, 7 * DAY
MAX_HOSTS = 4
# The size and the number of the slots of a lease of instances.
SLOT_VCPUS, SLOT_MEMORY_MB = 8, 16 * 1024
MIN_SLOTS, MAX_SLOTS = 2, 16
# The resource class of GPUs, and the share of the leases of instances whose
# slots have a GPU each, if there are GPUs.
GPU = 'CUSTOM_GPU'
GPU_SHARE = 0.5

PROJECT = 'b8a2e1c09f6d4c7f8e7d6c5b4a392817'


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The amount and the kinds of leases.

    :param share: of all host-hours
    :param ahead: days between the booking and the start, least and most
    :param whole: share of the leases that are of whole hosts, the others
        are of instances
    :param tries: the number of starts drawn for each lease, of which the lease
        gets the start with the least leased beside it, as a user who finds no
        room asks for another time; 1 for a load with all the peaks of chance
    """

    share: float = 0.3
    ahead: tuple[float, float] = (1.0, 14.0)
    whole: float = 0.5
    tries: int = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Booking:
    """A lease, and the time at which the lease is requested."""

    at: int
    lease: Lease


def draw(
    load: Load, hosts: Sequence[trace.Host], span: int, rng: random.Random
) -> list[Booking]:
    """Return bookings in their order until they take the share.

    Time leased after `span`, in seconds, is not counted. Leases of instances
    count as the share of a host that their vCPUs are. No booking is drawn if
    there is no time to book ahead.
    """
    left = load.share * len(hosts) * span
    vcpus = sum(host.vcpus for host in hosts) / len(hosts)
    least = int(load.ahead[0] * DAY)
    gpus = sum(host.gpus for host in hosts) / len(hosts)
    leased = _Leased()
    bookings: list[Booking] = []
    while left > 0 and least < span:
        length = _length(rng)
        start = min(
            (rng.randrange(least, span) for _ in range(load.tries)),
            key=lambda each: leased.peak(each, each + length),
        )
        end = start + length
        asked: Demand
        if rng.random() < load.whole:
            count = rng.randint(1, min(MAX_HOSTS, len(hosts)))
            taken, asked = float(count), _hosts(count)
        else:
            count = rng.randint(MIN_SLOTS, MAX_SLOTS)
            taken, asked = count * SLOT_VCPUS / vcpus, _instances(count)
            if gpus and rng.random() < GPU_SHARE:
                taken, asked = max(taken, count / gpus), _with_gpu(count)
        leased.add(start, end, taken)
        left -= taken * (min(end, span) - start)
        ahead = int(rng.uniform(*load.ahead) * DAY)
        lease = _lease(len(bookings), start, end, asked)
        bookings.append(Booking(max(0, start - ahead), lease))
    return sorted(bookings, key=lambda each: each.at)


class _Leased:
    """The number of hosts leased, hour by hour."""

    def __init__(self) -> None:
        self._hours: defaultdict[int, float] = defaultdict(float)

    def add(self, start: int, end: int, hosts: float) -> None:
        for hour in range(start // HOUR, end // HOUR + 1):
            self._hours[hour] += hosts

    def peak(self, start: int, end: int) -> float:
        hours = range(start // HOUR, end // HOUR + 1)
        return max(self._hours.get(hour, 0.0) for hour in hours)


def _length(rng: random.Random) -> int:
    return int(math.exp(
        rng.uniform(math.log(MIN_DURATION), math.log(MAX_DURATION))
    ))


def _hosts(count: int) -> Hosts:
    return Hosts(count, count)


def _instances(count: int) -> Slots:
    return Slots(
        {
            inventory.VCPU: SLOT_VCPUS, inventory.MEMORY_MB: SLOT_MEMORY_MB,
            inventory.DISK_GB: 0,
        },
        count,
    )


def _with_gpu(count: int) -> Slots:
    return Slots(
        {
            inventory.VCPU: SLOT_VCPUS, inventory.MEMORY_MB: SLOT_MEMORY_MB,
            GPU: 1,
        },
        count, flavor=Flavor('gpu', 'gpu', SLOT_VCPUS, SLOT_MEMORY_MB, 0),
    )


def _lease(number: int, start: int, end: int, demand: Demand) -> Lease:
    id_ = f'lease-{number}'
    reservation = Reservation(
        f'reservation-{number}', id_, states.RESERVATION_PENDING, demand
    )
    return Lease(
        id_, id_, PROJECT, 'user', start, end, states.LEASE_PENDING,
        reservations=(reservation,),
    )
