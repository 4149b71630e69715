# SPDX-License-Identifier: Apache-2.0
"""Traces: instances and hosts, each read from a CSV file.

The columns of this project's own format are `arrival`, `lifetime` (seconds),
`vcpus`, `memory_mb`, `kind` (one of KINDS) and, if present and not empty,
`declared`, the lifetime that is declared to Nova; the columns of hosts are
`name`, `vcpus`, `memory_mb`. Both may have a column `gpus`. The files of
Alibaba's cluster traces are recognized by their columns too.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import csv
import dataclasses
import random
from typing import Any
from typing import TypeVar

from blazar_sched.domain import exception
from blazar_sched.domain.way import COLD
from blazar_sched.domain.way import LIVE
from blazar_sched.domain.way import NOT

UNBOUNDED, BOUNDED, PREEMPTIBLE = 'unbounded', 'bounded', 'preemptible'
KINDS = (UNBOUNDED, BOUNDED, PREEMPTIBLE)

# The best-effort class of Alibaba's tasks. A third of its tasks is
# preemptible, and all declare an end, as does half of the other tasks. The
# declared lifetime is overstated by a factor of up to OVERSTATED.
BEST_EFFORT = 'BE'
PREEMPTIBLE_SHARE = 1 / 3
DECLARING_SHARE = 1 / 2
OVERSTATED = 3.0
MILLI = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An instance; `arrival` is in seconds since the trace began.

    All times here are in such seconds. `declared` is the lifetime that the
    instance declares, None if it declares none. An instance has each of its
    `gpus` alone. `movable` is how the instance is moved: see
    domain.way.
    """

    arrival: int
    lifetime: int
    vcpus: int
    memory_mb: int
    kind: str
    declared: int | None = None
    gpus: int = 0
    movable: str = LIVE


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    name: str
    vcpus: int
    memory_mb: int
    gpus: int = 0


Row = Mapping[str, str]
T = TypeVar('T', Instance, Host)


def _own_instance(row: Row, rng: random.Random) -> Instance:
    kind = row['kind']
    if kind not in KINDS:
        raise ValueError(f'kind {kind!r} must be one of {", ".join(KINDS)}')
    lifetime = _number(row, 'lifetime', 1)
    declared = None
    if row.get('declared'):
        declared = _number(row, 'declared', 1)
    elif kind == BOUNDED:
        declared = lifetime
    if (kind == UNBOUNDED) != (declared is None) and kind != PREEMPTIBLE:
        raise ValueError(f'kind {kind} does not allow declared {declared}')
    return Instance(
        _number(row, 'arrival'), lifetime, _number(row, 'vcpus', 1),
        _number(row, 'memory_mb'), kind, declared, _gpus(row, 'gpus'),
    )


def _own_host(row: Row, rng: random.Random) -> Host:
    return Host(
        row['name'], _number(row, 'vcpus', 1), _number(row, 'memory_mb', 1),
        _gpus(row, 'gpus'),
    )


def _alibaba_instance(row: Row, rng: random.Random) -> Instance:
    arrival = _number(row, 'creation_time')
    lifetime = max(1, _number(row, 'deletion_time') - arrival)
    # Three draws for each task, so that no task changes the draws of the next.
    first, second, factor = rng.random(), rng.random(), rng.random()
    kind = UNBOUNDED
    if row['qos'] == BEST_EFFORT:
        kind = PREEMPTIBLE if first < PREEMPTIBLE_SHARE else BOUNDED
    elif second < DECLARING_SHARE:
        kind = BOUNDED
    declared = int(lifetime * (1 + (OVERSTATED - 1) * factor)) + 1
    return Instance(
        arrival, lifetime, _vcpus(row), _number(row, 'memory_mib'), kind,
        None if kind == UNBOUNDED else declared, _gpus(row, 'num_gpu'),
    )


def _alibaba_host(row: Row, rng: random.Random) -> Host:
    return Host(
        row['sn'], _vcpus(row), _number(row, 'memory_mib', 1),
        _gpus(row, 'gpu'),
    )


def _vcpus(row: Row) -> int:
    return -(-_number(row, 'cpu_milli', 1) // MILLI)


def _gpus(row: Row, column: str) -> int:
    """Return a number of GPUs; 0 without the column, or if it is empty."""
    return _number(row, column) if row.get(column) else 0


def _number(row: Row, column: str, least: int = 0) -> int:
    try:
        number = int(float(row[column]))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'{column} {row[column]!r} is not a number') from None
    if number < least:
        raise ValueError(f'{column} {number} is less than {least}')
    return number


# The columns of this project's own format, which have optional ones too.
_OWN_INSTANCES = 'arrival', 'lifetime', 'vcpus', 'memory_mb', 'kind'
_OWN_HOSTS = 'name', 'vcpus', 'memory_mb'
# The readers of rows, by the columns that a reader needs.
Reader = Callable[[Row, random.Random], Any]
_INSTANCES: dict[tuple[str, ...], Reader] = {
    _OWN_INSTANCES: _own_instance,
    ('cpu_milli', 'memory_mib', 'qos', 'creation_time', 'deletion_time'):
        _alibaba_instance,
}
_HOSTS: dict[tuple[str, ...], Reader] = {
    _OWN_HOSTS: _own_host,
    ('sn', 'cpu_milli', 'memory_mib'): _alibaba_host,
}


def read_instances(path: str, rng: random.Random) -> list[Instance]:
    """Return the instances of a file, in the order of their arrival.

    :raises InvalidInput: naming the file, and the line that is wrong
    """
    found = list(_read(path, _INSTANCES, rng))
    return sorted(found, key=lambda each: each.arrival)


def read_hosts(path: str) -> list[Host]:
    """Return the hosts of a file.

    :raises InvalidInput: naming the file, and the line that is wrong
    """
    return list(_read(path, _HOSTS, random.Random(0)))


def write_instances(path: str, instances: Iterable[Instance]) -> None:
    """Write a file of instances, without the ways in which they are moved.

    :raises InvalidInput: naming the file, if it cannot be written
    """
    _write(path, (*_OWN_INSTANCES, 'declared', 'gpus'), instances)


def write_hosts(path: str, hosts: Iterable[Host]) -> None:
    """Write a file of hosts.

    :raises InvalidInput: naming the file, if it cannot be written
    """
    _write(path, (*_OWN_HOSTS, 'gpus'), hosts)


def _write(
    path: str, columns: Sequence[str], many: Iterable[Instance | Host]
) -> None:
    try:
        with open(path, 'w', newline='', encoding='utf-8') as lines:
            rows = csv.DictWriter(lines, columns, extrasaction='ignore')
            rows.writeheader()
            rows.writerows(map(dataclasses.asdict, many))
    except OSError as e:
        raise exception.InvalidInput(f'{path}: {e}') from e


def _read(
    path: str, readers: Mapping[tuple[str, ...], Reader], rng: random.Random
) -> Iterator[Any]:
    try:
        with open(path, newline='', encoding='utf-8') as lines:
            rows = csv.DictReader(lines, restval='')
            read = _reader(path, readers, rows.fieldnames or ())
            empty = True
            for row in rows:
                empty = False
                try:
                    yield read(row, rng)
                except ValueError as e:
                    raise exception.InvalidInput(
                        f'{path}, line {rows.line_num}: {e}'
                    ) from e
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise exception.InvalidInput(f'{path}: {e}') from e
    if empty:
        raise exception.InvalidInput(f'{path} has no lines after the header')


def _reader(
    path: str, readers: Mapping[tuple[str, ...], Reader],
    columns: Sequence[str],
) -> Reader:
    for needed, read in readers.items():
        if set(needed) <= set(columns):
            return read
    ways = ' or '.join(','.join(needed) for needed in readers)
    raise exception.InvalidInput(
        f'{path}, line 1: the header must have columns {ways}'
    )


def sample(
    hosts: Sequence[Host], count: int, rng: random.Random
) -> list[Host]:
    """Return `count` of the hosts.

    :raises InvalidInput: if there are fewer hosts
    """
    if count > len(hosts):
        raise exception.InvalidInput(
            f'cannot sample {count} hosts from {len(hosts)}'
        )
    return rng.sample(hosts, count)


def without_gpus(many: Iterable[T]) -> list[T]:
    """Return hosts or instances without their GPUs."""
    return [dataclasses.replace(each, gpus=0) for each in many]


def with_ways(
    instances: Iterable[Instance], cold: float, fixed: float, with_gpus: str,
    rng: random.Random,
) -> list[Instance]:
    """Return instances with the ways in which they are moved.

    :param cold: the share of the instances without GPUs that are moved while
        they are stopped
    :param fixed: the share of the instances without GPUs that are not moved
    :param with_gpus: how instances with GPUs are moved
    """
    found = []
    for each in instances:
        # A draw for each instance, so that no instance changes the next ones.
        drawn = rng.random()
        way = with_gpus
        if not each.gpus:
            way = LIVE
            if drawn < fixed + cold:
                way = NOT if drawn < fixed else COLD
        found.append(dataclasses.replace(each, movable=way))
    return found


def span(instances: Sequence[Instance]) -> int:
    """Return the seconds from the start of the trace to its last arrival."""
    return instances[-1].arrival + 1


def repeat(
    instances: Sequence[Instance], times: int, length: int, seed: int
) -> list[Instance]:
    """Return each instance `times` times, each copy but the first shifted.

    A copy is shifted by a random time, cyclically within the trace. The first
    copies are the same for any `times`.

    :param length: the seconds from the start of the trace to its end
    """
    copies = list(instances)
    for number in range(1, times):
        rng = random.Random(f'{seed}/{number}')
        copies += [
            dataclasses.replace(
                each, arrival=(each.arrival + rng.randrange(length)) % length
            )
            for each in instances
        ]
    return sorted(copies, key=lambda each: each.arrival)
