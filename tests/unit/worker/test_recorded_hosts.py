# SPDX-License-Identifier: Apache-2.0
"""The recorded hosts of decisions are restored, and stored once."""

import random
import types

from blazar_sched.worker import recorded_hosts


def states(*numbers):
    return [
        types.SimpleNamespace(uuid=f'u{n}', nodename=f'c{n}') for n in numbers
    ]


def test_a_host_has_one_number_whoever_asks():
    hosts = recorded_hosts.RecordedHosts()
    first = hosts.numbers(states(1, 2, 3))
    second = hosts.numbers(states(3, 4, 1))
    assert first == [0, 1, 2]
    assert second == [2, 3, 0]
    assert hosts.identities == [
        ('u1', 'c1'), ('u2', 'c2'), ('u3', 'c3'), ('u4', 'c4'),
    ]


def test_a_host_without_a_uuid_has_its_name():
    hosts = recorded_hosts.RecordedHosts()
    never_reported = types.SimpleNamespace(uuid=None, nodename='c9')
    assert hosts.numbers([never_reported, *states(1), never_reported]) == [
        0, 1, 0,
    ]
    assert hosts.identities[0] == (None, 'c9')


def test_each_decision_has_what_was_true_then():
    """This holds whatever changes later, on the same and on other hosts."""
    drawn = random.Random(5)
    hosts, truth, kept = recorded_hosts.RecordedHosts(), {}, []
    for turn in range(60):
        # More hosts are added over time.
        among = range(5 * recorded_hosts.CHUNK * (turn + 1) // 60)
        some = drawn.sample(among, drawn.randint(0, len(among)))
        numbers = hosts.numbers(states(*some))
        cells = [bytes([drawn.randrange(3)]) for _ in some]
        truth |= zip(some, cells, strict=True)
        kept.append((hosts.keep(numbers, cells), dict(
            zip(numbers, cells, strict=True)
        )))
    for chunks, cells in kept:
        assert {n: recorded_hosts.cell(chunks, n) for n in cells} == cells


def test_unchanged_hosts_share_their_record():
    hosts = recorded_hosts.RecordedHosts()
    many = states(*range(10 * recorded_hosts.CHUNK))
    numbers = hosts.numbers(many)
    before = hosts.keep(numbers, [b'a'] * len(many))
    after = hosts.keep(numbers, [b'a'] * (len(many) - 1) + [b'b'])
    assert [a is b for a, b in zip(before, after, strict=True)] == (
        [True] * 9 + [False]
    )
