# SPDX-License-Identifier: Apache-2.0
"""The results of policies as tables."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import statistics
from typing import NamedTuple

from rich import box
from rich import table

from blazar_sched.parts.simulate import trace
from blazar_sched.parts.simulate.result import Class
from blazar_sched.parts.simulate.result import NAMES
from blazar_sched.parts.simulate.result import Result

GPUS = 'gpu_utilisation'


class Figure(NamedTuple):
    """A figure: a row where one scene is shown, a column where many are.

    :ivar name: the attribute of a result; the figure of a list is its length
    :ivar heading: of the column, empty for a figure that only one scene shows
    :ivar worst: which of the figures of all scenes is the worst
    :ivar kind: the kind of instance, all without one
    :ivar needs: an attribute; without it in any result, nothing is shown
    """

    name: str
    label: str
    form: str = ',.4g'
    heading: str = ''
    worst: Callable[[Iterable[float]], float] = max
    kind: str = ''
    needs: str = ''

    def of(self, each: Result) -> float | None:
        found: list[object] | Counter[str] | float | None = getattr(
            each, self.name
        )
        if isinstance(found, Counter):
            return found[self.kind] if self.kind else found.total()
        return len(found) if isinstance(found, list) else found


def _by_kind(name: str) -> Iterator[Figure]:
    for kind in trace.KINDS:
        yield Figure(name, f'  {kind}', ',', kind=kind)


FIGURES = (
    Figure('utilisation', 'utilisation', '.1%', 'used', min),
    Figure('idle_host_hours', 'reserved but idle, host-hours', ',.0f'),
    Figure('refused_share', 'instances refused', '.2%', 'refused'),
    *_by_kind('refused'),
    Figure(
        'refused_vcpu_hours', 'VCPU-hours refused', ',.0f', 'VCPU-h\nrefused'
    ),
    Figure('vcpu_way', '  way to the limit', '.1%', 'VCPU-h\nway', min),
    Figure('refused_gib_hours', 'GiB-hours refused', ',.0f'),
    Figure('gpu_utilisation', 'utilisation of GPUs', '.1%', needs=GPUS),
    Figure(
        'idle_gpu_hours', 'reserved but idle, GPU-hours', ',.0f', needs=GPUS
    ),
    Figure(
        'refused_gpu_instances', 'instances with GPUs refused', ',', needs=GPUS
    ),
    Figure(
        'refused_gpu_hours', 'GPU-hours refused', ',.0f', 'GPU-h\nrefused',
        needs=GPUS,
    ),
    Figure(
        'gpu_way', '  way to the limit', '.1%', 'GPU-h\nway', min, needs=GPUS
    ),
    Figure('worse', 'classes refused more than by the pool', heading='worse'),
    Figure('refused_leases', 'leases refused', heading='leases\nrefused'),
    Figure('late', 'leases late', heading='late'),
    Figure('reallocated', 'leases moved for instances', ','),
    Figure('moves', 'live migrations', ','),
    Figure('moved_gib', '  GiB', ',.0f'),
    Figure('failed_moves', '  failed', ','),
    Figure('unplanned', '  without room', ','),
    Figure('evicted', 'evicted', ','),
    *_by_kind('evicted'),
    Figure('evicted_firm', '  not preemptible', heading='evicted'),
)


def _shown(results: Sequence[Result]) -> Iterator[Figure]:
    for figure in FIGURES:
        if not figure.needs or any(
            getattr(each, figure.needs) for each in results
        ):
            yield figure


def _format(value: float | None, form: str) -> str:
    return '–' if value is None else format(value, form)


def _dense(title: str, *columns: str) -> table.Table:
    """Return a table without lines and padding, to fit on a terminal."""
    shown = table.Table(
        title=title, box=box.SIMPLE_HEAD, padding=0, show_edge=False
    )
    for each in columns:
        shown.add_column(each, justify='right')
    return shown


def scene(results: Sequence[Result]) -> table.Table:
    """Return a table with a column for each policy."""
    shown = table.Table('')
    for each in results:
        shown.add_column(each.policy, justify='right')
    for figure in _shown(results):
        shown.add_row(figure.label, *(
            _format(figure.of(each), figure.form) for each in results
        ))
    return shown


def classes(results: Sequence[Result]) -> table.Table:
    """Return a table of the classes of which any policy refuses instances.

    It has the share and the VCPU-hours that each policy refuses, marked where
    the share is greater than that of the pool.
    """
    every = sorted(results[0].classes)
    # Without GPUs, the column of GPUs says nothing.
    said = [
        n for n, name in enumerate(NAMES)
        if name != 'GPUs' or any(each.gpus for each in every)
    ]
    shown = _dense(
        'Refused: share and VCPU-hours; * is a share above that of freepool',
        *(NAMES[n] for n in said), 'asked', *(each.policy for each in results),
    )
    for each in every:
        tallies = [result.classes[each] for result in results]
        if any(tally.refused.instances for tally in tallies):
            shown.add_row(
                *(each.words()[n] for n in said),
                f'{tallies[0].asked.instances:,}',
                *(
                    f'{tally.share:.1%} {tally.refused.vcpu_hours:,.0f}'
                    f'{"*" if each in result.worse else " "}'
                    for tally, result in zip(tallies, results, strict=True)
                ),
            )
    return shown


def scenes(
    seeds: Sequence[int], results: Sequence[Result]
) -> Iterator[table.Table | str]:
    """Yield a table of one policy, with a line for each scene.

    The last lines have the mean and the worst figure of each column. The
    classes of which the policy refuses more than the pool follow, by name.
    """
    shown = _dense(results[0].policy, 'seed')
    columns = []
    for figure in _shown(results):
        found = [figure.of(each) for each in results]
        known = [value for value in found if value is not None]
        if figure.heading and known:
            shown.add_column(figure.heading, justify='right')
            found += [statistics.fmean(known), figure.worst(known)]
            columns.append([_format(value, figure.form) for value in found])
    for first, *row in zip(
        [*map(str, seeds), 'mean', 'worst'], *columns, strict=True
    ):
        shown.add_row(first, *row, end_section=first == str(seeds[-1]))
    yield shown
    for seed, each in zip(seeds, results, strict=True):
        yield from (
            f'seed {seed}, more refused than by freepool: {_name(of)}'
            for of in each.worse
        )


def _name(each: Class) -> str:
    return '{}, {} VCPUs, {} GPUs, {} days'.format(*each.words())
