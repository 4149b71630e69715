# SPDX-License-Identifier: Apache-2.0
"""What it costs not to know the leases that will be booked.

``python -m benchmarks.unknown_leases results.json --instances CSV --hosts CSV
--headroom 0.06`` reads what ``blazar-sched simulate --sample N --seeds N
--json results.json`` has saved, and plays the same scenes with all hosts
poured into one, as the policy ``limit``, but with no more knowledge than
blazar-sched has: a lease is known once it is booked, an instance without an
end counts for ever until it is deleted, and from the notice on each instance
leaves headroom for the leases to come. The difference to blazar-sched is what
hosts and moves cost; the difference to ``limit`` is what is not known.
"""

import argparse
from collections.abc import Sequence
import dataclasses
import heapq
import json
import pathlib
from typing import Any

from benchmarks.measure import WrongAnswer
from blazar_sched.domain import relocation
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import FOREVER
from blazar_sched.parts.simulate import comparison
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate import limit
from blazar_sched.parts.simulate import policy
from blazar_sched.parts.simulate import simulation
from blazar_sched.parts.simulate import trace


class Poured(limit._Poured):
    """All hosts as one, with the leases and instances that are known."""

    def __init__(self, scenario: simulation.Scenario, headroom: float) -> None:
        self._sizes = {
            id_: size for id_, (_, _, size)
            in limit._Poured(scenario)._stays.items()
        }
        super().__init__(dataclasses.replace(scenario, bookings=[]))
        self._kept = [int(headroom * each) for each in self._total]

    def book(self, asked: Lease) -> bool:
        """Book a lease if there is room beside all that does not yield."""
        size = self._sizes[asked.id]
        if not self._fits(asked.start, asked.end, size):
            return False
        self._add(asked.id, asked.id, asked.start, asked.end, size)
        return True

    def boot(self, id_: str, asked: trace.Instance) -> bool:
        if asked.kind == trace.PREEMPTIBLE:
            return super().boot(id_, asked)
        now = asked.arrival
        later = now + relocation.Rules().notice
        end = FOREVER if asked.declared is None else now + asked.declared
        size = asked.vcpus, asked.memory_mb, asked.gpus
        beside = [n + kept for n, kept in zip(size, self._kept, strict=True)]
        if (
            self._index.fits(None, now, now + 1, size) == b'\0'
            or not self._fits(now, end, size)
            or later < end and not self._fits(later, end, beside)
        ):
            return False
        self._add(id_, id_, now, end, size)
        return True

    def delete(self, id_: str) -> None:
        if id_ in self._index:
            self._index.apply([('remove', id_)])

    def _fits(self, start: int, end: int, size: Sequence[int]) -> bool:
        return self._index.fits(
            None, start, end, size, ignore=trace.PREEMPTIBLE
        ) == b'\1'


def play(
    scenario: simulation.Scenario, headroom: float
) -> tuple[float, int]:
    """Return the VCPU-hours and the number of leases that are refused."""
    poured = Poured(scenario, headroom)
    arrivals = sorted([
        *((each.at, 0, n) for n, each in enumerate(scenario.bookings)),
        *((each.arrival, 1, n) for n, each in enumerate(scenario.instances)),
    ])
    hours, leases = 0.0, 0
    ends: list[tuple[int, str]] = []
    for at, is_instance, n in arrivals:
        while ends and ends[0][0] <= at:
            poured.delete(heapq.heappop(ends)[1])
        if not is_instance:
            leases += not poured.book(scenario.bookings[n].lease)
            continue
        asked = scenario.instances[n]
        if poured.boot(str(n), asked):
            heapq.heappush(ends, (at + asked.lifetime, str(n)))
        else:
            hours += asked.vcpus * asked.lifetime / lease.HOUR
    return hours, leases


def _scenario(args: argparse.Namespace, scene: Any) -> simulation.Scenario:
    """Return the scenario of a scene that has been saved."""
    settings = comparison.Settings(
        args.instances, args.hosts, lease.Load(),
        {'unbounded': 'relocate', 'unbounded_fixed': 'forever'},
        scene['seed'], scene['hosts'],
    )
    once = comparison._read_scenario(settings)
    times, rest = divmod(scene['instances'], len(once.instances))
    if rest or len(once.bookings) != scene['leases']:
        raise WrongAnswer(
            f'seed {scene["seed"]}: the scene was saved with other options '
            'than --sample, --until-refused, --repeat, --seed and --seeds'
        )
    return dataclasses.replace(once, instances=trace.repeat(
        once.instances, times, once.span, scene['seed']
    ))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('results', type=pathlib.Path, nargs='+')
    parser.add_argument('--instances', required=True)
    parser.add_argument('--hosts', required=True)
    parser.add_argument('--headroom', type=float, nargs='+', default=[0.06])
    args = parser.parse_args()
    for results in args.results:
        for scene in json.loads(results.read_text())['scenes']:
            refused = {
                each['policy']: each['refused_vcpu_hours']
                for each in scene['policies']
            }
            pool = refused[policy.FREEPOOL.name]
            gained = pool - refused[policy.LIMIT.name]
            ours = (pool - refused[policy.OURS.name]) / gained
            scenario = _scenario(args, scene)
            for headroom in args.headroom:
                hours, leases = play(scenario, headroom)
                print(
                    f'seed {scene["seed"]}: way {ours:.2f}; poured, headroom '
                    f'{headroom}: way {(pool - hours) / gained:.2f}, {leases} '
                    f'of {len(scenario.bookings)} leases refused', flush=True,
                )


if __name__ == '__main__':
    main()
