# SPDX-License-Identifier: Apache-2.0
"""Each row of the admission table, accepted and refused, in a real Nova."""

import datetime

import pytest

from demo import cloud
from tests.nova.conftest import lasting

HOUR = 3600
SOON = 900
THEIRS = 'b8a2e1c09f6d4c7f8e7d6c5b4a392817'
NO_SUCH = 'e3a9f1e4-52a4-44a8-b5a3-6f7d9b3c2d10'


# The options of a cloud in which servers are relocated.
RELOCATE = {
    'unbounded': 'relocate', 'relocation_ways': {'disk': 'live'},
    'relocation_headroom': 0.0, 'relocation_host_headroom': 0.0,
}


@pytest.fixture(autouse=True, params=[
    pytest.param({}, id=''),
    pytest.param(RELOCATE, id='relocate', marks=pytest.mark.more),
])
def options(request, lab):
    """Each row holds whether or not servers are relocated.

    The rows of servers that are relocated are in test_relocation.
    """
    lab.tell(**request.param)


def refused(lab, hints, **parameters):
    """Check that no server with any of these hints can be booted."""
    for each in lab.cloud.boot_each(lab.flavor(), hints, **parameters):
        assert each['status'] == 'ERROR', each['scheduler_hints']
        assert 'No valid host was found' in each['fault']['message']


class TestWholeHosts:
    """Hint ``reservation=<id>`` of a ``physical:host`` reservation."""

    @pytest.mark.row('C38', 'F49')
    def test_passes_only_where_it_has_an_allocation(self, lab):
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', start=-60)

        assert lab.passing(hints={'reservation': mine}) == ['c1']

    @pytest.mark.row('F97')
    def test_a_label_names_an_open_reservation_of_the_project(self, lab):
        lab.register('c1', 'c2', 'c3')
        labels = {'team': 'vision: "1"'}
        lab.reserve('c1', start=-60, labels=labels)
        lab.reserve('c2', start=-60, end=2 * HOUR, labels=labels)
        lab.reserve('c3', end=3 * HOUR, labels=labels)

        hints = {'reservation': 'label:team=vision: "1"'}
        assert lab.passing(hints=hints) == ['c2']
        for other in ('label:team=vision', 'label:Team=vision: "1"', 'label:'):
            assert lab.passing(hints={'reservation': other}) == []
        assert lab.passing(hints=hints, project_id=THEIRS) == []

    def test_whole_host_admits_no_other_server(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=-60)

        assert not lab.passes('c1')
        assert not lab.passes('c1', hints=lasting(60))
        assert not lab.passes('c1', lab.flavor(preemptible='true'))

    @pytest.mark.row('C39', 'F49')
    def test_bound_server_does_not_pass_outside_the_window(self, lab):
        lab.register('c1', 'c2')
        before = lab.reserve('c1', start=SOON)
        after = lab.reserve('c2', start=-HOUR, end=-60)

        assert not lab.passes('c1', hints={'reservation': before})
        assert not lab.passes('c2', hints={'reservation': after})

    @pytest.mark.row('C25', 'C40', 'F49')
    def test_server_of_another_project_does_not_pass(self, lab):
        lab.register('c1')
        theirs = lab.reserve('c1', start=-60, project_id=THEIRS)

        assert lab.passing(hints={'reservation': theirs}) == []
        assert lab.passes(
            'c1', hints={'reservation': theirs}, project_id=THEIRS
        )

    @pytest.mark.row('F83')
    def test_a_project_that_it_is_shared_with(self, lab):
        lab.register('c1')
        shared = lab.reserve('c1', start=-60, projects=(THEIRS,))

        assert lab.passes('c1', hints={'reservation': shared})
        assert lab.passes(
            'c1', hints={'reservation': shared}, project_id=THEIRS
        )
        assert not lab.passes(
            'c1', hints={'reservation': shared}, project_id=NO_SUCH
        )

    def test_reserved_host_is_used_up_to_its_capacity(self, lab):
        lab.register('c1')
        mine = lab.reserve('c1', start=-60)
        hint = {'reservation': mine}
        server = lab.boot(lab.flavor(6), hint)
        lab.know(server, end=HOUR, reservation_id=mine)

        assert lab.passes('c1', lab.flavor(2), hint)
        assert not lab.passes('c1', lab.flavor(3), hint)

    @pytest.mark.row('F49')
    def test_request_for_an_unknown_reservation_passes_nowhere(self, lab):
        """A3: no host passes, and the filter raises no exception."""
        refused(lab, [{'reservation': hint} for hint in (
            NO_SUCH, '', 'not a uuid', "' OR 1=1 --", '\u0001\u202e',
            ['a', 'b'], True, 7, 'x' * 100_000,
        )])


class TestInstanceReservation:
    """Slots of a ``virtual:instance`` reservation, by a hint or by its flavor.
    """

    @pytest.mark.row('C41')
    def test_by_flavor(self, lab):
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', start=-60, vcpus=2)
        flavor = lab.flavor(2, reservation=mine)

        assert lab.passing(flavor) == ['c1']
        assert not lab.passes('c1', flavor, project_id=THEIRS)

    def test_by_flavor_whatever_the_hint(self, lab):
        """The server takes a slot of the reservation of its flavor."""
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', start=-60, vcpus=2)
        other = lab.reserve('c2', start=-60, vcpus=2)
        flavor = lab.flavor(2, reservation=mine)

        assert lab.passing(flavor, {'reservation': other}) == ['c1']

    @pytest.mark.row('F50')
    def test_servers_get_the_remaining_capacity_of_the_reservation(self, lab):
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', 'c2', start=-60, vcpus=4)
        hint = {'reservation': mine}
        server = lab.boot(lab.flavor(2), hint, host='c1')
        lab.know(server, end=HOUR, reservation_id=mine)

        assert lab.passes('c1', lab.flavor(2), hint)
        assert not lab.passes('c1', lab.flavor(3), hint)
        assert lab.passes('c2', lab.flavor(4), hint)

    def test_remaining_capacity_of_a_reservation_admits_no_other_server(
        self, lab
    ):
        lab.register('c1')
        lab.reserve('c1', start=-60, vcpus=6)

        assert lab.passes('c1', lab.flavor(2), lasting(60))
        assert not lab.passes('c1', lab.flavor(3), lasting(60))

    def test_bound_server_is_counted_once(self, lab):
        lab.register('c1')
        mine = lab.reserve('c1', start=-60, vcpus=4)
        server = lab.boot(lab.flavor(4), {'reservation': mine})
        lab.know(server, end=HOUR, reservation_id=mine)

        assert lab.passes('c1', lab.flavor(4), lasting(60))


class TestPreemptible:
    """Flavor extra spec ``blazar:preemptible``, or OpenStack Watcher's."""

    @pytest.fixture
    def flavor(self, lab):
        return lab.flavor(4, preemptible='true')

    @pytest.mark.row('C48', 'F55')
    def test_preemptible_server_passes_before_the_next_lease(
        self, lab, flavor
    ):
        lab.cloud.configure(min_preemptible_runtime=300)
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        assert lab.passes('c1', flavor)
        assert lab.passes('c1', lab.cloud.flavor(
            4, extra_specs={'lifecycle:preemptable': 'true'}
        ))

    def test_preemptible_server_does_not_pass_shortly_before_a_lease(
        self, lab, flavor
    ):
        lab.cloud.configure(min_preemptible_runtime=1200)
        lab.register('c1')
        # A relocated server runs for relocation_lead at least, 600 s.
        lab.reserve('c1', start=590)

        assert not lab.passes('c1', flavor)

    def test_preemptible_server_passes_beside_a_need_that_leaves_room(
        self, lab, flavor
    ):
        lab.register('c1', 'c2')
        lab.reserve('c1', start=-60, vcpus=4)
        lab.reserve('c2', start=-60, vcpus=5)

        assert lab.passes('c1', flavor)
        assert not lab.passes('c2', flavor)

    def test_preemptible_server_does_not_pass_without_room_now(
        self, lab, flavor
    ):
        lab.register('c1')
        lab.boot(lab.flavor(6), host='c1')

        assert not lab.passes('c1', flavor)

    def test_preemptible_server_passes_where_no_other_without_end_does(
        self, lab, flavor
    ):
        lab.register('c1', hold='dedicated')
        lab.register('c2', unbounded='never')

        assert lab.passes('c1', flavor)
        assert lab.passes('c2', flavor)

    def test_preemptible_servers_leave_the_room_of_an_open_lease(
        self, lab, flavor
    ):
        """However many come, the slots of the lease stay free."""
        lab.register('c1')
        lab.reserve('c1', start=-60, vcpus=2)
        lab.know(lab.boot(flavor, host='c1'), preemptible=True)

        assert not lab.passes('c1', flavor)
        assert not lab.passes('c1', lab.flavor(3))
        assert lab.passes('c1', lab.flavor(2))


class TestBounded:
    """A declared end: hint, flavor or default."""

    @pytest.mark.row('C13', 'C48', 'C52', 'F38', 'F39')
    def test_server_passes_if_it_ends_before_the_start_of_a_lease(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        assert lab.passes('c1', hints=lasting(SOON // 2))
        assert not lab.passes('c1', hints=lasting(SOON + 60))

    @pytest.mark.row('C53', 'F41')
    def test_server_does_not_pass_if_a_lease_lies_within_its_lifetime(
        self, lab
    ):
        lab.register('c1')
        lab.reserve('c1', start=SOON, end=SOON + 60)

        assert not lab.passes('c1', hints=lasting(HOUR))

    @pytest.mark.row('F41')
    def test_passes_beside_a_need_that_leaves_room(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON, vcpus=6)

        assert lab.passes('c1', lab.flavor(2), lasting(HOUR))
        assert not lab.passes('c1', lab.flavor(3), lasting(HOUR))

    def test_server_that_ends_as_the_lease_starts_passes(self, lab):
        """Windows are half-open: the server ends as the lease starts."""
        lab.register('c1')
        start = datetime.datetime.fromtimestamp(lab.now + SOON, datetime.UTC)
        lab.reserve('c1', start=SOON)

        for late, passes in ((0, True), (1, False)):
            end = start + datetime.timedelta(seconds=late)
            hints = {'lease_end': end.strftime('%Y-%m-%dT%H:%M:%SZ')}
            assert lab.passes('c1', hints=hints) is passes

    def test_room_of_an_instance_that_will_have_ended(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON, vcpus=4)
        server = lab.boot(lab.flavor(4), lasting(600), host='c1')
        flavor = lab.flavor(4)
        assert not lab.passes('c1', flavor, lasting(HOUR))

        lab.know(server, end=600)

        assert lab.passes('c1', flavor, lasting(HOUR))

    def test_no_room_of_an_instance_that_is_overdue(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON, vcpus=4)
        server = lab.boot(lab.flavor(4), host='c1')

        lab.know(server, end=-1)

        assert not lab.passes('c1', lab.flavor(4), lasting(HOUR))

    def test_lifetime_of_the_flavor(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        assert lab.passes('c1', lab.flavor(lifetime='5m'))
        assert not lab.passes('c1', lab.flavor(lifetime='1h'))
        # A hint goes before the flavor.
        assert lab.passes('c1', lab.flavor(lifetime='1h'), lasting(60))

    def test_default_lifetime(self, lab):
        lab.cloud.configure(default_lifetime='5m')
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        assert lab.passes('c1')

    def test_server_with_an_unreadable_end_is_unbounded(self, lab):
        lab.register('c1')
        lab.reserve('c1', start=SOON)

        refused(lab, [
            {'lifetime': 'soon'}, {'lifetime': '-1'}, {'lifetime': '0'},
            {'lifetime': ['60', '60']}, {'lifetime': '9' * 5000},
            {'lifetime': '５００'}, {'lease_end': 'tomorrow'},
            {'lease_end': '2001-01-01 00:00'},
            {'lease_end': '9999-12-31 23:59'},
        ], host='c1')


class TestUnbounded:
    """No declared end."""

    @pytest.mark.row('F39')
    def test_forever_needs_room_for_ever(self, lab):
        lab.tell(unbounded='forever')
        lab.register('c1', 'c2')
        lab.reserve('c1', start=30 * 24 * HOUR, end=31 * 24 * HOUR, vcpus=6)

        assert not lab.passes('c1', lab.flavor(3))
        assert lab.passes('c1', lab.flavor(2))
        assert lab.passes('c2', lab.flavor(8))

    @pytest.mark.row('F39')
    def test_assume_needs_room_for_as_long(self, lab):
        lab.tell(unbounded='assume:1h')
        lab.register('c1', 'c2')
        lab.reserve('c1', start=2 * HOUR, end=3 * HOUR)
        lab.reserve('c2', start=SOON)

        assert lab.passes('c1')
        assert not lab.passes('c2')

    @pytest.mark.row('F39')
    def test_server_without_end_does_not_pass_if_unbounded_is_never(self, lab):
        lab.tell(unbounded='never')
        lab.register('c1')

        assert not lab.passes('c1')
        assert lab.passes('c1', hints=lasting(60))
        assert lab.passes('c3')

    def test_policy_of_the_host_goes_before_the_clouds(self, lab):
        lab.tell(unbounded='never')
        lab.register('c1', unbounded='forever')
        lab.register('c2', unbounded='assume:5m')
        lab.register('c3')
        lab.reserve('c2', start=SOON)

        assert lab.passing() == ['c1', 'c2', 'c4']


class TestMagnetic:
    """Whole hosts whose reservation draws the servers of its project."""

    @pytest.mark.row('F51')
    def test_no_hint_is_needed(self, lab):
        lab.register(*lab.cloud.hosts)
        lab.reserve('c1', 'c2', start=-60, magnetic=True)
        lab.reserve('c3', 'c4', start=-60)

        assert lab.passing() == ['c1', 'c2']
        assert not lab.passes('c1', project_id=THEIRS)

    def test_magnetic_reservation_is_used_before_other_hosts(self, lab):
        # Nova's own weighers would know by then that a server runs there.
        lab.cloud.configure(lease_gap_weight_multiplier=10.0)
        lab.register('c1', 'c2', 'c3')
        lab.reserve('c2', start=-60, magnetic=True)

        for hints in (None, lasting(60)):
            assert cloud.host_of(lab.boot(hints=hints)) == 'c2'

    def test_magnetic_reservation_draws_no_server_before_its_window(self, lab):
        lab.register(*lab.cloud.hosts)
        lab.reserve(*lab.cloud.hosts, magnetic=True)

        assert lab.passing() == []


class TestDedicated:
    """Dedicated hosts: for reservations and preemptible servers only."""

    def test_dedicated_host_admits_servers_of_its_reservation(self, lab):
        lab.register('c1', 'c2', hold='dedicated')
        mine = lab.reserve('c1', start=-60)

        assert lab.passes('c1', hints={'reservation': mine})
        assert not lab.passes('c2')
        assert not lab.passes('c2', hints=lasting(60))


class TestNotReservable:
    """Hosts that the ledger does not know."""

    def test_host_that_is_not_reservable_admits_servers_without_reservation(
        self, lab
    ):
        lab.register('c1', 'c2', hold='dedicated')
        lab.reserve('c1', 'c2', start=-60, end=None)

        for flavor, hints in (
            (lab.flavor(8), None),
            (lab.flavor(), lasting(HOUR)),
            (lab.flavor(preemptible='true'), None),
        ):
            assert lab.passes('c3', flavor, hints)

    def test_host_that_is_not_reservable_admits_no_server_of_a_reservation(
        self, lab
    ):
        lab.register('c1')
        mine = lab.reserve('c1', start=-60)

        assert not lab.passes('c3', hints={'reservation': mine})

    def test_a_host_is_ordinary_again_once_it_is_deleted(self, lab):
        lab.register('c1', hold='dedicated')
        assert not lab.passes('c1')

        lab.ledger.commit(lambda tx: tx.delete_host(lab.cloud.hosts['c1']))
        lab.sync()

        assert lab.passes('c1')


class TestBoots:
    """The table asks nova-scheduler; a boot has the same result."""

    @pytest.mark.more
    @pytest.mark.parametrize('options', [{}], indirect=True)
    def test_of_each_kind(self, lab):
        lab.register('c1', 'c2')
        mine = lab.reserve('c1', start=-60, vcpus=4)
        lab.reserve('c2')
        asked = [
            {'flavor': lab.flavor(4), 'hints': {'reservation': mine}},
            {'flavor': lab.flavor(5), 'hints': lasting(60)},
            {'flavor': lab.flavor(1), 'hints': lasting(SOON + 60)},
            {'flavor': lab.flavor(1)},
            {'flavor': lab.flavor(1, preemptible='true')},
        ]
        for each in asked:
            for name in ('c1', 'c2'):
                assert lab.boots(name, **each) == lab.passes(name, **each)
