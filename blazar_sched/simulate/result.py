# SPDX-License-Identifier: Apache-2.0
"""The results of a policy on a trace, as figures and as a table."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import statistics
from typing import Any

from rich import box
from rich import table

from blazar_sched.domain import inventory
from blazar_sched.simulate import trace

HOUR, DAY = 3600, 86400


class Level:
    """An amount that changes, summed over time for each day."""

    def __init__(self, value: float = 0) -> None:
        self.value = value
        # The amount times seconds, by day.
        self.by_day = [0.0]
        self._at = 0

    def change(self, at: int, by: float) -> None:
        self.go_on(at)
        self.value += by

    def go_on(self, at: int) -> None:
        """Sum up to `at`, which must not be before the last time."""
        while self._at < at:
            day, since = divmod(self._at, DAY)
            if day == len(self.by_day):
                self.by_day.append(0.0)
            step = min(at - self._at, DAY - since)
            self.by_day[day] += self.value * step
            self._at += step

    @property
    def total(self) -> float:
        return sum(self.by_day)


@dataclasses.dataclass(slots=True)
class Result:
    """The figures of one policy; `Counter`s are by kind of instance.

    Utilisation is of all hosts' vCPUs, with open leases used to the full. Idle
    are the host-hours of the hosts that are kept for leases in which nothing
    ran on these hosts, by vCPUs. Late are the leases of which some part could
    not be used at once when its window opened. Unplanned are the moves for
    which the booked host had no room after all. The figures of GPUs are None
    where no host has GPUs; idle are the GPUs of the hosts that are kept for
    leases.
    """

    policy: str
    utilisation: float = 0.0
    idle_host_hours: float = 0.0
    instances: Counter[str] = dataclasses.field(default_factory=Counter)
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    evicted: Counter[str] = dataclasses.field(default_factory=Counter)
    leases: int = 0
    # The names of the refused leases.
    refused_leases: list[str] = dataclasses.field(default_factory=list)
    late: int = 0
    # VCPU-seconds of the refused instances, by kind.
    refused_vcpu_seconds: Counter[str] = dataclasses.field(
        default_factory=Counter
    )
    moves: int = 0
    moved_gib: float = 0.0
    # Live migrations that failed and were tried again.
    failed_moves: int = 0
    # Leases that left a host for an instance.
    reallocated: int = 0
    unplanned: int = 0
    gpu_utilisation: float | None = None
    idle_gpu_hours: float | None = None
    gpu_instances: int = 0
    refused_gpu_instances: int = 0
    # GPU-seconds of the refused instances.
    refused_gpu_seconds: int = 0
    # What open leases do not use, and what preemptible instances use of it.
    unused_vcpu_hours: float = 0.0
    borrowed_vcpu_hours: float = 0.0
    # Preemptible instances that left for the owners of what they had borrowed.
    recalled: Counter[str] = dataclasses.field(default_factory=Counter)
    # Seconds that the boots of owners waited, and how many never found room;
    # the boots of several instances at once of which some found no room.
    owner_waits: list[int] = dataclasses.field(default_factory=list)
    unserved: int = 0
    bursts: int = 0
    # Utilisation as shares, idle in host-hours.
    utilisation_by_day: list[float] = dataclasses.field(default_factory=list)
    idle_by_day: list[float] = dataclasses.field(default_factory=list)

    @property
    def refused_share(self) -> float:
        return self.refused.total() / max(1, self.instances.total())

    @property
    def refused_vcpu_hours(self) -> float:
        return self.refused_vcpu_seconds.total() / HOUR

    @property
    def refused_gpu_hours(self) -> float:
        return self.refused_gpu_seconds / HOUR

    def count(self, asked: trace.Instance) -> None:
        """Count an instance that is requested."""
        self.instances[asked.kind] += 1
        self.gpu_instances += asked.gpus > 0

    def refuse(self, asked: trace.Instance) -> None:
        """Count an instance that no host has admitted."""
        self.refused[asked.kind] += 1
        self.refused_vcpu_seconds[asked.kind] += asked.vcpus * asked.lifetime
        self.refused_gpu_instances += asked.gpus > 0
        self.refused_gpu_seconds += asked.gpus * asked.lifetime

    def count_move(self, moved_mb: int) -> None:
        """Count a live migration; of 0 MB if there was no room."""
        if moved_mb:
            self.moves += 1
            self.moved_gib += moved_mb / inventory.MIB_PER_GIB
        else:
            self.unplanned += 1

    def sum_up(self, used: Level, idle: Level, vcpus: int, span: int) -> None:
        """Set the figures of used vCPUs, and of idle hosts."""
        for level in (used, idle):
            level.go_on(span)
        self.utilisation = used.total / (vcpus * span)
        self.idle_host_hours = idle.total / HOUR
        self.utilisation_by_day = [
            amount / (vcpus * min(DAY, span - day * DAY))
            for day, amount in enumerate(used.by_day)
        ]
        self.idle_by_day = [amount / HOUR for amount in idle.by_day]

    def sum_up_lending(
        self, unused: Level, borrowed: Level, span: int
    ) -> None:
        """Set the figures of what open leases do not use."""
        for level in (unused, borrowed):
            level.go_on(span)
        self.unused_vcpu_hours = unused.total / HOUR
        self.borrowed_vcpu_hours = borrowed.total / HOUR

    def wait(self, share: float) -> int:
        """Return the seconds that this share of owners' boots at most waited.

        A boot that never found room is left out; 0 without a boot.
        """
        waits = sorted(self.owner_waits) or [0]
        return waits[min(len(waits) - 1, int(share * len(waits)))]

    def sum_up_gpus(
        self, used: Level, idle: Level, gpus: int, span: int
    ) -> None:
        """Set the figures of the GPUs of all hosts, if there are any."""
        if not gpus:
            return
        for level in (used, idle):
            level.go_on(span)
        self.gpu_utilisation = used.total / (gpus * span)
        self.idle_gpu_hours = idle.total / HOUR

    def as_json(self) -> dict[str, Any]:
        # dataclasses.asdict() miscopies a Counter before Python 3.12.
        return {name: getattr(self, name) for name in self.__slots__}


def best(results: Sequence[Result]) -> Result | None:
    """Return the result with the fewest refusals that keeps every lease.

    A lease is kept if it is neither refused nor late. Of equal results the
    last one is taken.
    """
    keeping = [
        each for each in results if not (each.refused_leases or each.late)
    ]
    return min(
        reversed(keeping), key=lambda each: each.refused_share, default=None
    )


def show(results: Sequence[Result]) -> table.Table:
    """Return a table with a column for each policy."""
    shown = table.Table()
    shown.add_column('')
    for each in results:
        shown.add_column(each.policy, justify='right')

    def row(label: str, *figures: str) -> None:
        shown.add_row(label, *figures)

    row('utilisation', *(f'{each.utilisation:.1%}' for each in results))
    row(
        'reserved but idle, host-hours',
        *(f'{each.idle_host_hours:,.0f}' for each in results),
    )
    row(
        'instances refused',
        *(
            f'{each.refused.total():,} ({each.refused_share:.1%})'
            for each in results
        ),
    )
    for kind in trace.KINDS:
        row(
            f'  {kind}',
            *(
                f'{each.refused[kind]:,} of {each.instances[kind]:,}'
                for each in results
            ),
        )
    row(
        'VCPU-hours refused',
        *(f'{each.refused_vcpu_hours:,.0f}' for each in results),
    )
    if results[0].gpu_utilisation is not None:
        _add_gpus(row, results)
    row(
        'leases refused',
        *(f'{len(each.refused_leases)} of {each.leases}' for each in results),
    )
    row('leases late', *(f'{each.late}' for each in results))
    row('leases moved for instances', *(
        f'{each.reallocated:,}' for each in results
    ))
    row(
        'live migrations',
        *(f'{each.moves:,} ({each.moved_gib:,.0f} GiB)' for each in results),
    )
    row('  failed', *(f'{each.failed_moves:,}' for each in results))
    row('  without room', *(f'{each.unplanned:,}' for each in results))
    if any(each.owner_waits for each in results):
        _add_owners(row, results)
    row('evicted', *(f'{each.evicted.total():,}' for each in results))
    for kind in trace.KINDS:
        row(f'  {kind}', *(f'{each.evicted[kind]:,}' for each in results))
    return shown


def _add_owners(
    row: Callable[..., None], results: Sequence[Result]
) -> None:
    """Add the rows of owners that use a part of what they reserve."""
    row(
        'not used by owners, VCPU-hours',
        *(f'{each.unused_vcpu_hours:,.0f}' for each in results),
    )
    row('  used by preemptible instances', *(
        f'{each.borrowed_vcpu_hours / max(1, each.unused_vcpu_hours):.1%}'
        for each in results
    ))
    row('  these recalled', *(
        f'{each.recalled.total():,}' for each in results
    ))
    row("owners' boots", *(f'{len(each.owner_waits):,}' for each in results))
    for share in (0.5, 0.99):
        row(f'  waited, {share:.0%} of them', *(
            f'{each.wait(share)} s' for each in results
        ))
    row('  never', *(f'{each.unserved:,}' for each in results))
    row('  bursts beyond the reserve', *(
        f'{each.bursts:,}' for each in results
    ))


def _add_gpus(
    row: Callable[..., None], results: Sequence[Result]
) -> None:
    """Add the rows of GPUs to a table."""
    row(
        'utilisation of GPUs',
        *(f'{each.gpu_utilisation or 0:.1%}' for each in results),
    )
    row(
        'reserved but idle, GPU-hours',
        *(f'{each.idle_gpu_hours or 0:,.0f}' for each in results),
    )
    row(
        'instances with GPUs refused',
        *(
            f'{each.refused_gpu_instances:,} of {each.gpu_instances:,}'
            for each in results
        ),
    )
    row(
        'GPU-hours refused',
        *(f'{each.refused_gpu_hours:,.0f}' for each in results),
    )


# A heading, the figure of a result, and the format of the figure. In each
# column, the highest figure is the worst.
_Column = tuple[str, Callable[[Result], float], str]
_COLUMNS: tuple[_Column, ...] = (
    ('refused', lambda each: each.refused_share, '.2%'),
    ('VCPU-h\nrefused', lambda each: each.refused_vcpu_hours, ',.0f'),
    ('leases\nrefused', lambda each: len(each.refused_leases), '.4g'),
    ('late', lambda each: each.late, '.4g'),
    ('evicted', lambda each: each.evicted.total(), ',.4g'),
    (
        'preemp-\ntible',
        lambda each: each.evicted[trace.PREEMPTIBLE], ',.4g',
    ),
    ('moves', lambda each: each.moves, ',.4g'),
    ('for a\nlease', lambda each: each.moves / max(1, each.leases), '.2f'),
    ('failed', lambda each: each.failed_moves, ',.4g'),
    ('GiB\nmoved', lambda each: each.moved_gib, ',.0f'),
)
# The columns of scenes with GPUs.
_GPU_COLUMNS: tuple[_Column, ...] = (
    (
        'instances\nrefused', lambda each: each.refused_gpu_instances, ',.4g'
    ),
    ('GPU-hours\nrefused', lambda each: each.refused_gpu_hours, ',.0f'),
    ('GPU-hours\nidle', lambda each: each.idle_gpu_hours or 0, ',.0f'),
)


def compare_scenes(
    seeds: Sequence[int], results: Sequence[Result]
) -> Iterator[table.Table]:
    """Yield tables of one policy, with a line for each scene.

    The second table is that of GPUs, if there are any. The last lines have the
    mean and the highest figure of each column.
    """
    title = results[0].policy
    yield _compared(title, _COLUMNS, seeds, results)
    if any(each.gpu_utilisation is not None for each in results):
        yield _compared(f'{title}, GPUs', _GPU_COLUMNS, seeds, results)


def _compared(
    title: str, columns: Sequence[_Column], seeds: Sequence[int],
    results: Sequence[Result],
) -> table.Table:
    # Without lines and padding, to fit on a terminal.
    shown = table.Table(
        title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False,
    )
    shown.add_column('seed', justify='right')
    figures = []
    for heading, figure, form in columns:
        shown.add_column(heading, justify='right')
        found = [figure(each) for each in results]
        found += [statistics.fmean(found), max(found)]
        figures.append([format(each, form) for each in found])
    for first, *row in zip(
        [*map(str, seeds), 'mean', 'worst'], *figures, strict=True
    ):
        shown.add_row(first, *row, end_section=first == str(seeds[-1]))
    return shown
