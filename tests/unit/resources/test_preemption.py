# SPDX-License-Identifier: Apache-2.0
"""As few servers as needed have to leave a host."""

from collections import Counter
import itertools

from hypothesis import given
from hypothesis import strategies as st

from blazar_sched.domain import window
from blazar_sched.service.clients.nova import Server
from blazar_sched.service.resources import preemption


@st.composite
def _servers(draw):
    classes = st.fixed_dictionaries(
        {'VCPU': st.integers(0, 4), 'MEMORY_MB': st.integers(0, 4)}
    )
    return [
        Server(
            uuid=str(n), node='a', project_id='project', amounts=draw(classes),
            end=draw(st.sampled_from([50, 200, 300, window.FOREVER])),
            reservation_id=None, preemptible=draw(st.booleans()),
            created=draw(st.integers(0, 3)),
        )
        for n in range(draw(st.integers(0, 6)))
    ]


def _staying(server):
    """Return which of two servers stays: the larger one."""
    asks = server.preemptible or server.end <= 100
    return not asks, -server.end, -server.created, server.uuid


@given(_servers(), st.integers(-3, 12), st.integers(-3, 12))
def test_as_few_servers_leave_as_needed(servers, vcpus, memory_mb):
    """Of all selections, this one keeps the most of the preferred servers."""
    excess = {'VCPU': vcpus, 'MEMORY_MB': memory_mb}

    def freed(some):
        total = Counter()
        for server in some:
            total.update(server.amounts)
        return total

    most = freed(servers)
    reached = {c: min(n, most[c]) for c, n in excess.items()}
    ranked = sorted(servers, key=_staying, reverse=True)
    ways = [
        kept
        for kept in itertools.product((True, False), repeat=len(ranked))
        if all(
            freed(
                s for s, k in zip(ranked, kept, strict=True) if not k
            )[c] >= n
            for c, n in reached.items()
        )
    ]
    best = max(ways)
    going = preemption.choose(servers, excess, 100)
    assert [s.uuid for s in going] == [
        s.uuid for s, k in zip(ranked, best, strict=True) if not k
    ][::-1]
