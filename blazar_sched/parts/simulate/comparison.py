# SPDX-License-Identifier: Apache-2.0
"""The whole simulation: read, draw, play each policy, and report."""

from collections.abc import Sequence
import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import pathlib
import random
from typing import Any

from rich import console
from rich import progress

from blazar_sched.conf import manager
from blazar_sched.domain import duration
from blazar_sched.domain import exception
from blazar_sched.domain.way import NOT
from blazar_sched.parts.simulate import cloud
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import limit
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import tables
from blazar_sched.parts.simulate import trace
from blazar_sched.parts.simulate.policy import FREEPOOL
from blazar_sched.parts.simulate.policy import LIMIT
from blazar_sched.parts.simulate.policy import Policy

# The maximum number of times that an instance is repeated.
MAX_REPETITIONS = 4096
# About how much more of the instances freepool refuses with one repetition
# more, where it refuses many.
_SLOPE = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The input of a simulation, as requested.

    :param sample: how many of the hosts, None for all
    :param repeat: how often each instance occurs
    :param until_refused: the share that freepool is to refuse, which decides
        instead of `repeat`; or None
    :param options: the options of ``[manager]`` and ``[blazar_sched]``
    :param migration_failure: the probability that a live migration fails
    :param gpus: whether the GPUs of instances and hosts count
    :param ways: the share of the instances without GPUs that are moved while
        they are stopped, the share that is not moved, and how instances with
        GPUs are moved
    :param span: the seconds to simulate, None until the last arrival
    """

    instances: str
    hosts: str
    load: lease.Load
    options: dict[str, Any]
    seed: int = 1
    sample: int | None = None
    repeat: int = 1
    until_refused: float | None = None
    migration_failure: float = 0.0
    gpus: bool = False
    ways: tuple[float, float, str] = (0.0, 0.0, NOT)
    span: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """A scenario in figures, and the result of each policy."""

    about: dict[str, Any]
    results: list[result.Result]

    def as_json(self) -> dict[str, Any]:
        policies = [each.as_json() for each in self.results]
        return {**self.about, 'policies': policies}


def run(
    settings: Settings, policies: Sequence[Policy],
    json_path: str | None = None, suggest: bool = False,
) -> None:
    """Play each policy, print the results, and save the results if requested.

    :param suggest: whether the options of the best policy are printed, too
    :raises InvalidInput: if a file or an option cannot be used, or the hosts
        do not hold the leases
    """
    out = console.Console()
    with progress.Progress(console=out) as bar:
        scene = _play(settings, policies, bar)
    out.print(', '.join(f'{name} {n:,}' for name, n in scene.about.items()))
    out.print(tables.scene(scene.results))
    out.print(tables.classes(scene.results))
    if suggest:
        out.print(_suggestion(policies, scene.results), markup=False)
    if json_path is not None:
        _save(json_path, scene.as_json())


def run_scenes(
    settings: Settings, policies: Sequence[Policy], seeds: int, jobs: int,
    json_path: str | None = None,
) -> None:
    """Play scenes with consecutive seeds, and print a table of each policy.

    :param settings: of the first scene
    :param seeds: how many scenes
    :param jobs: in how many processes
    :raises InvalidInput: as `run` does
    """
    each_seed = range(settings.seed, settings.seed + seeds)
    out = console.Console()
    # A process that was forked would have the filters' threads started.
    pool = concurrent.futures.ProcessPoolExecutor(
        min(jobs, seeds), multiprocessing.get_context('spawn')
    )
    with progress.Progress(console=out) as bar, pool:
        scenes = list(bar.track(
            pool.map(
                _play,
                (
                    dataclasses.replace(settings, seed=seed)
                    for seed in each_seed
                ),
                itertools.repeat(policies),
            ),
            total=seeds, description='scenes',
        ))
    for of_policy in zip(*(each.results for each in scenes), strict=True):
        for shown in tables.scenes(each_seed, of_policy):
            out.print(shown)
    if json_path is not None:
        _save(json_path, {'scenes': [each.as_json() for each in scenes]})


def _play(
    settings: Settings, policies: Sequence[Policy],
    bar: progress.Progress | None = None,
) -> Scene:
    """Play each policy on the scenario of a seed.

    :param bar: shows the progress; None for no output
    """
    bar = bar or progress.Progress(disable=True)
    scenario = _read_scenario(settings)
    known: dict[str, result.Result] = {}
    if settings.until_refused is not None:
        scenario, known[FREEPOOL.name] = _until_refused(
            scenario, settings.until_refused, settings.seed, bar
        )
    about = {
        'hosts': len(scenario.hosts), 'pool': scenario.pool,
        'leases': len(scenario.bookings), 'instances': len(scenario.instances),
        'days': round(scenario.span / result.DAY, 1), 'seed': settings.seed,
    }
    results = {
        each.name: known.get(each.name) or _simulated(scenario, each, bar)
        for each in policies
    }
    if results.keys() >= {FREEPOOL.name, LIMIT.name}:
        for each in results.values():
            each.compare(results[FREEPOOL.name], results[LIMIT.name])
    return Scene(about, list(results.values()))


def _suggestion(
    policies: Sequence[Policy], results: Sequence[result.Result]
) -> str:
    """Return the lines for blazar-sched.conf of the best policy."""
    best = result.best(results)
    if best is None:
        return (
            'With none of these settings every lease finds room and starts '
            'in time.'
        )
    [options] = [each.options for each in policies if each.name == best.policy]
    return '\n'.join([
        f'With a headroom of {best.policy}, every lease finds room and the '
        'fewest VCPU-hours are refused. In blazar-sched.conf:',
        '',
        f'[{manager.GROUP}]',
        *(f'{name} = {value}' for name, value in options.items()),
    ])


def _read_scenario(settings: Settings) -> simulation.Scenario:
    """Return the scenario; its pool is the smallest that holds the leases."""
    seed, options = settings.seed, settings.options
    duration.parse_unbounded(options['unbounded'], 'unbounded')
    duration.parse_fixed(options['unbounded_fixed'], 'unbounded_fixed')
    hosts = trace.read_hosts(settings.hosts)
    if settings.sample is not None:
        rng = random.Random(f'{seed}/hosts')
        hosts = trace.sample(hosts, settings.sample, rng)
    instances = trace.read_instances(
        settings.instances, random.Random(f'{seed}/kinds')
    )
    if not settings.gpus:
        hosts = trace.without_gpus(hosts)
        instances = trace.without_gpus(instances)
    instances = trace.with_ways(
        instances, *settings.ways, random.Random(f'{seed}/ways')
    )
    span = settings.span or trace.span(instances)
    instances = [each for each in instances if each.arrival < span]
    bookings = lease.draw(
        settings.load, hosts, span, random.Random(f'{seed}/leases')
    )
    pool = cloud.least_pool(hosts, bookings)
    return simulation.Scenario(
        hosts, trace.repeat(instances, settings.repeat, span, seed), bookings,
        pool, span, settings.options, settings.migration_failure,
    )


def _until_refused(
    scenario: simulation.Scenario, share: float, seed: int,
    bar: progress.Progress,
) -> tuple[simulation.Scenario, result.Result]:
    """Return the scenario with each instance repeated as often as needed.

    The result of freepool on this scenario is returned, too.

    The number of repetitions is the least number for which freepool refuses
    the share, provided that more instances never make freepool refuse a
    smaller share. The search begins where the instances that are not refused
    need about as much as is not leased.
    """

    def repeated(times: int) -> simulation.Scenario:
        return dataclasses.replace(scenario, instances=trace.repeat(
            scenario.instances, times, scenario.span, seed
        ))

    played: dict[int, result.Result] = {}

    def enough(times: int) -> bool:
        if times not in played:
            played[times] = _simulated(
                repeated(times), FREEPOOL, bar,
                f'freepool, instances {times} times',
            )
        return played[times].refused_share >= share

    least, most = 0, _first_guess(scenario, share)
    while not enough(most):
        lack = share - played[most].refused_share
        step = min(most // 4, round(lack / _SLOPE))
        least, most = most, most + max(1, step)
        if most > MAX_REPETITIONS:
            raise exception.InvalidInput(
                f'freepool refuses less than {share:.0%} of the instances '
                f'even if each instance is repeated {least} times'
            )
    while most - least > 1:
        excess = played[most].refused_share - share
        guess = most - max(1, round(excess / _SLOPE))
        if guess <= least:
            guess = (least + most) // 2
        if enough(guess):
            most = guess
        else:
            least = guess
    return repeated(most), played[most]


def _first_guess(scenario: simulation.Scenario, share: float) -> int:
    """Return how often the instances fit into what is not leased.

    :param share: the share of the instances that is refused
    """
    wanted = (1 - share) * sum(
        each.vcpus * each.lifetime for each in scenario.instances
    )
    leased = sum(
        booking.lease.window.duration for booking in scenario.bookings
    )
    vcpus = sum(each.vcpus for each in scenario.hosts)
    mean = vcpus / len(scenario.hosts)
    left = vcpus * scenario.span - mean * leased
    return max(1, min(MAX_REPETITIONS, round(left / max(1, wanted))))


def _simulated(
    scenario: simulation.Scenario, policy: Policy, bar: progress.Progress,
    name: str | None = None,
) -> result.Result:
    """Play a policy and show the progress."""
    task = bar.add_task(name or policy.name, total=scenario.size)

    def tell(done: int) -> None:
        bar.update(task, completed=done)

    found = (
        limit.play(scenario, tell) if policy == LIMIT
        else simulation.simulate(scenario, policy, tell)
    )
    bar.update(task, completed=scenario.size)
    return found


def _save(path: str, content: dict[str, Any]) -> None:
    pathlib.Path(path).write_text(json.dumps(content, indent=2) + '\n')
