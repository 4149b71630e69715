# SPDX-License-Identifier: Apache-2.0
"""The whole simulation: read, draw, play each policy, and report."""

from collections.abc import Sequence
import dataclasses
import json
import pathlib
import random
from typing import Any

from rich import console
from rich import progress

from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.simulate import cloud
from blazar_sched.simulate import lease
from blazar_sched.simulate import result
from blazar_sched.simulate import simulation
from blazar_sched.simulate import trace
from blazar_sched.simulate.policy import FREEPOOL
from blazar_sched.simulate.policy import Policy

# The maximum number of times that an instance is repeated.
MOST_TIMES = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The input of a simulation, as requested.

    :param sample: how many of the hosts, None for all
    :param repeat: how often each instance occurs
    :param until_refused: the share that freepool is to refuse, which decides
        instead of `repeat`; or None
    :param options: the options of ``[blazar_sched]``
    """

    instances: str
    hosts: str
    load: lease.Load
    options: dict[str, Any]
    seed: int = 1
    sample: int | None = None
    repeat: int = 1
    until_refused: float | None = None


def run(
    settings: Settings,
    policies: Sequence[Policy],
    json_path: str | None = None,
    plot_path: str | None = None,
) -> None:
    """Play each policy, print the results, and save the results if requested.

    :raises InvalidInput: if a file or an option cannot be used, or the hosts
        do not hold the leases
    """
    out = console.Console()
    with progress.Progress(console=out) as bar:
        scenario = _read_scenario(settings)
        if settings.until_refused is not None:
            scenario = _until_refused(
                scenario, settings.until_refused, settings.seed, bar
            )
        results = [_simulated(scenario, each, bar) for each in policies]
    about = {
        'hosts': len(scenario.hosts), 'pool': scenario.pool,
        'leases': len(scenario.bookings), 'instances': len(scenario.instances),
        'days': round(scenario.span / result.DAY, 1), 'seed': settings.seed,
    }
    out.print(', '.join(f'{name} {n:,}' for name, n in about.items()))
    out.print(result.show(results))
    if json_path is not None:
        _save(json_path, about, results)
    if plot_path is not None:
        # Only this import needs matplotlib.
        from blazar_sched.simulate import plot

        plot.save(results, plot_path)


def _read_scenario(settings: Settings) -> simulation.Scenario:
    """Return the scenario; its pool is the smallest that holds the leases."""
    seed, unbounded = settings.seed, settings.options['unbounded']
    duration.parse_unbounded(unbounded, 'unbounded')
    hosts = trace.read_hosts(settings.hosts)
    if settings.sample is not None:
        rng = random.Random(f'{seed}/hosts')
        hosts = trace.sample(hosts, settings.sample, rng)
    instances = trace.read_instances(
        settings.instances, random.Random(f'{seed}/kinds')
    )
    span = trace.span(instances)
    bookings = lease.draw(
        settings.load, hosts, span, random.Random(f'{seed}/leases')
    )
    pool = cloud.least_pool(hosts, bookings)
    return simulation.Scenario(
        hosts, trace.repeat(instances, settings.repeat, seed), bookings, pool,
        span, settings.options,
    )


def _until_refused(
    scenario: simulation.Scenario,
    share: float,
    seed: int,
    bar: progress.Progress,
) -> simulation.Scenario:
    """Return the scenario with each instance repeated as often as needed.

    The number of repetitions is the least number for which freepool refuses
    the share, provided that more instances never make freepool refuse a
    smaller share.
    """

    def repeated(times: int) -> simulation.Scenario:
        return dataclasses.replace(
            scenario, instances=trace.repeat(scenario.instances, times, seed)
        )

    def enough(times: int) -> bool:
        found = _simulated(
            repeated(times), FREEPOOL, bar,
            f'freepool, instances {times} times',
        )
        return found.refused_share >= share

    least, most = 0, 1
    while not enough(most):
        least, most = most, 2 * most
        if most > MOST_TIMES:
            raise exception.InvalidInput(
                f'freepool refuses less than {share:.0%} of the instances '
                f'even if each instance is repeated {least} times'
            )
    while most - least > 1:
        half = (least + most) // 2
        if enough(half):
            most = half
        else:
            least = half
    return repeated(most)


def _simulated(
    scenario: simulation.Scenario,
    policy: Policy,
    bar: progress.Progress,
    name: str | None = None,
) -> result.Result:
    """Play a policy and show the progress."""
    task = bar.add_task(name or policy.name, total=scenario.size)
    found = simulation.simulate(
        scenario, policy, lambda done: bar.update(task, completed=done)
    )
    bar.update(task, completed=scenario.size)
    return found


def _save(
    path: str, about: dict[str, Any], results: Sequence[result.Result]
) -> None:
    content = {**about, 'policies': [each.as_json() for each in results]}
    pathlib.Path(path).write_text(json.dumps(content, indent=2) + '\n')
