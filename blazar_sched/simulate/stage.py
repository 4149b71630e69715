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
from blazar_sched.simulate import play
from blazar_sched.simulate import result
from blazar_sched.simulate import trace
from blazar_sched.simulate.policy import FREEPOOL
from blazar_sched.simulate.policy import Policy

# The maximum number of times that an instance is repeated.
MOST_TIMES = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
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


def perform(
    setting: Setting,
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
        scene = _scene(setting)
        if setting.until_refused is not None:
            scene = _until_refused(
                scene, setting.until_refused, setting.seed, bar
            )
        results = [_played(scene, each, bar) for each in policies]
    about = {
        'hosts': len(scene.hosts), 'pool': scene.pool,
        'leases': len(scene.bookings), 'instances': len(scene.instances),
        'days': round(scene.span / result.DAY, 1), 'seed': setting.seed,
    }
    out.print(', '.join(f'{name} {n:,}' for name, n in about.items()))
    out.print(result.show(results))
    if json_path is not None:
        _save(json_path, about, results)
    if plot_path is not None:
        # Only this import needs matplotlib.
        from blazar_sched.simulate import plot

        plot.save(results, plot_path)


def _scene(setting: Setting) -> play.Scene:
    """Return the scene; its pool is the smallest that holds the leases."""
    seed, unbounded = setting.seed, setting.options['unbounded']
    duration.parse_unbounded(unbounded, 'unbounded')
    hosts = trace.read_hosts(setting.hosts)
    if setting.sample is not None:
        rng = random.Random(f'{seed}/hosts')
        hosts = trace.sample(hosts, setting.sample, rng)
    instances = trace.read_instances(
        setting.instances, random.Random(f'{seed}/kinds')
    )
    span = trace.span(instances)
    bookings = lease.draw(
        setting.load, hosts, span, random.Random(f'{seed}/leases')
    )
    pool = cloud.least_pool(hosts, bookings)
    return play.Scene(
        hosts, trace.repeat(instances, setting.repeat, seed), bookings, pool,
        span, setting.options,
    )


def _until_refused(
    scene: play.Scene, share: float, seed: int, bar: progress.Progress
) -> play.Scene:
    """Return the scene with each instance repeated as often as needed.

    The number of repetitions is the least number for which freepool refuses
    the share, provided that more instances never make freepool refuse a
    smaller share.
    """

    def repeated(times: int) -> play.Scene:
        return dataclasses.replace(
            scene, instances=trace.repeat(scene.instances, times, seed)
        )

    def enough(times: int) -> bool:
        found = _played(
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


def _played(
    scene: play.Scene,
    policy: Policy,
    bar: progress.Progress,
    name: str | None = None,
) -> result.Result:
    """Play a policy and show the progress."""
    task = bar.add_task(name or policy.name, total=scene.size)
    found = play.play(
        scene, policy, lambda done: bar.update(task, completed=done)
    )
    bar.update(task, completed=scene.size)
    return found


def _save(
    path: str, about: dict[str, Any], results: Sequence[result.Result]
) -> None:
    content = {**about, 'policies': [each.as_json() for each in results]}
    pathlib.Path(path).write_text(json.dumps(content, indent=2) + '\n')
