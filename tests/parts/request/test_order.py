# SPDX-License-Identifier: Apache-2.0
"""The places of lease requests among the requests that wait."""

from hypothesis import given
from hypothesis import strategies as st

from blazar_sched.parts.request.lease_request import LeaseRequest
from blazar_sched.parts.request.lease_request import next_number

PROJECTS = 'abc'


def request(project, at, priority=1):
    return LeaseRequest(
        f'{project}{at:04}', 'r', project, 'u', [], 0, 9, 1, 9, priority, '',
        created_at=at,
    )


class Queue:
    """Requests that come and are booked, the first one first."""

    def __init__(self, by_turns):
        self.by_turns = by_turns
        self.waiting = []
        self.last = self.now = 0

    def come(self, project, priority=1):
        self.now += 1
        new = request(project, self.now, priority)
        number = next_number(new, self.waiting, self.last, self.by_turns)
        self.last = max(self.last, number)
        self.waiting.append(LeaseRequest(**{
            **{f: getattr(new, f) for f in new.__dataclass_fields__},
            'number': number,
        }))

    def book(self):
        first = min(self.waiting, key=lambda each: each.turn)
        self.waiting.remove(first)
        return first.project_id

    def order(self):
        return ''.join(
            each.project_id
            for each in sorted(self.waiting, key=lambda each: each.turn)
        )


def test_projects_take_turns():
    queue = Queue(by_turns=True)
    for project in 'aaaabbc':
        queue.come(project)
    assert queue.order() == 'abcabaa'
    assert queue.book() + queue.book() == 'ab'
    # A project that comes now is behind those that have waited, in its turn.
    queue.come('d')
    assert queue.order() == 'cdabaa'


def test_the_oldest_is_first_otherwise():
    queue = Queue(by_turns=False)
    for project in 'aaaabbc':
        queue.come(project)
    assert queue.order() == 'aaaabbc'


@given(st.lists(
    st.sampled_from(PROJECTS) | st.none() | st.sampled_from('AB'), max_size=60
))
def test_no_project_gets_two_turns_more_than_another_that_waits(steps):
    """Upper case is a request of a higher priority; None books the first."""
    queue = Queue(by_turns=True)
    # The turns of each project since both projects of a pair wait.
    turns = {}
    for step in steps:
        if step:
            queue.come(step.lower(), 2 if step.isupper() else 1)
        elif queue.waiting:
            high = any(each.priority == 2 for each in queue.waiting)
            got = queue.book()
            if not high:
                for pair in turns:
                    if got in pair:
                        turns[pair][got] += 1
        normal = {e.project_id for e in queue.waiting if e.priority == 1}
        pairs = {(p, q) for p in normal for q in normal if p < q}
        turns = {
            pair: turns.get(pair, dict.fromkeys(pair, 0)) for pair in pairs
        }
        for counts in turns.values():
            one, other = counts.values()
            assert abs(one - other) <= 1
