# SPDX-License-Identifier: Apache-2.0
"""The default requirement, and leases that cannot meet it."""

import pytest

from blazar_sched.conf import service as service_conf
from blazar_sched.domain import exception
from blazar_sched.service.manager.manager import Manager

# Each $ doubled, as in a file.
CHEAP = '["==", "$$kind", "cheap"]'
DEAR = '["==", "$kind", "dear"]'


@pytest.fixture
def options(conf):
    def set_(**values):
        for name, value in values.items():
            conf.set_override(name, value, 'manager')

    set_(default_resource_properties=CHEAP)
    return set_


@pytest.fixture
def kinds(world, options):
    """The names, by uuid, of cheap hosts, and of dear hosts packed tighter."""
    return {
        world.add_host(name, vcpus, kind=kind): name
        for name, vcpus, kind in [
            ('dear-1', 4, 'dear'), ('cheap-1', 8, 'cheap'),
            ('dear-2', 4, 'dear'), ('cheap-2', 8, 'cheap'),
        ]
    }


@pytest.fixture
def on(world, kinds):
    """on(lease) -> the names of its hosts."""
    return lambda lease: sorted(
        {kinds[host] for _, host, _ in world.held(lease)}
    )


class TestCreate:
    @pytest.mark.row('F84')
    def test_hosts(self, world, whole, on):
        first = world.create(whole(2, 2))
        assert on(first) == ['cheap-1', 'cheap-2']
        assert on(world.create(whole())) == ['dear-1']
        world.check()

    @pytest.mark.row('F84')
    def test_slots(self, world, slots, on):
        # The tightest host would be a dear one.
        assert len(on(world.create(slots(8, vcpus=2)))) == 2
        assert on(world.create(slots())) == ['dear-1']

    def test_default_requirement_is_not_part_of_the_reservation(
        self, world, whole, slots
    ):
        world.add_host('a', kind='cheap')
        for asked in whole(), slots():
            lease = world.lease(world.create(asked))
            [made] = lease.reservations
            assert made.demand.resource_properties == ''
            world.leases.delete(lease.id, None)

    def test_requirement_of_a_reservation_overrides_the_default(
        self, world, whole, on
    ):
        lease = world.create(whole(resource_properties=DEAR))
        assert on(lease) == ['dear-1']

    def test_all_of_a_lease_goes_without_it_or_nothing(self, world, whole, on):
        """The lease is committed once, after all attempts."""
        before = world.ledger.changes(0)['newest']
        lease = world.create(whole(3, 3), whole())
        assert len(on(lease)) == 4
        assert world.ledger.changes(0)['newest'] == before + 1

    def test_without_a_retry_there_is_no_room(
        self, world, whole, kinds, options
    ):
        options(retry_without_defaults=False)
        world.create(whole(2, 2))
        before = world.ledger.changes(0)
        world.refuse(whole())
        assert world.ledger.changes(0) == before
        world.create(whole(resource_properties=DEAR))
        world.check()


class TestUpdate:
    def update(self, world, lease, **values):
        return world.leases.update(lease.id, None, values)

    @pytest.fixture
    def fallen_back(self, world, whole, kinds):
        """A lease on a dear host, while the cheap hosts are free again."""
        busy = world.create(whole(2, 2))
        lease = world.create(whole())
        world.leases.delete(busy.id, None)
        return lease

    @pytest.mark.parametrize('retry', [True, False])
    @pytest.mark.parametrize('start', [100, 'now'])
    def test_host_that_a_reservation_holds_stays(
        self, world, whole, kinds, on, options, start, retry
    ):
        busy = world.create(whole(2, 2), start=start)
        lease = world.create(whole(), start=start)
        world.run()
        world.leases.delete(busy.id, None)
        options(retry_without_defaults=retry)
        assert on(self.update(world, lease, end=lease.end + 100)) == ['dear-1']
        world.check()

    def test_what_is_more_goes_by_the_default(self, world, fallen_back, on):
        [held] = fallen_back.reservations
        change = {'id': held.id, 'min': 2, 'max': 2}
        lease = self.update(world, fallen_back, reservations=[change])
        assert on(lease) == ['cheap-1', 'dear-1']

    def test_additional_hosts_need_not_meet_the_default_if_none_do(
        self, world, fallen_back, on, options
    ):
        [held] = fallen_back.reservations
        change = {'id': held.id, 'min': 4, 'max': 4}
        options(retry_without_defaults=False)
        with pytest.raises(exception.NotEnoughHostsAvailable):
            self.update(world, fallen_back, reservations=[change])
        assert on(fallen_back) == ['dear-1']
        options(retry_without_defaults=True)
        lease = self.update(world, fallen_back, reservations=[change])
        assert len(on(lease)) == 4

    def test_active_slots_grow_by_the_default_as_long_as_they_can(
        self, world, slots, kinds, on, options
    ):
        options(default_resource_properties='')
        lease = world.create(slots(1, vcpus=4), start='now')
        assert on(lease) == ['dear-1']
        world.run()
        options(default_resource_properties=CHEAP)
        [held] = lease.reservations
        for amount, names in [
            (5, ['cheap-1', 'cheap-2', 'dear-1']),
            (6, ['cheap-1', 'cheap-2', 'dear-1', 'dear-2']),
        ]:
            change = {'id': held.id, 'amount': amount}
            assert on(
                self.update(world, lease, reservations=[change])
            ) == names
            world.run()
        world.check()


class TestHealing:
    def test_replaced_by_the_default_as_long_as_it_can_be(
        self, world, whole, on
    ):
        lease = world.create(whole())
        assert on(lease) == ['cheap-1']
        world.fail('cheap-1')
        assert on(lease) == ['cheap-2']
        world.fail('cheap-2')
        assert on(lease) == ['dear-1']
        # The lease stays on its host.
        before = world.ledger.changes(0)
        world.set_up('cheap-1', 'cheap-2')
        assert on(lease) == ['dear-1']
        assert not world.lease(lease).degraded
        assert world.ledger.changes(0)['newest'] == before['newest'] + 1

    def test_without_a_retry_it_is_missing(self, world, slots, on, options):
        options(retry_without_defaults=False)
        lease = world.create(slots(4))
        world.fail('cheap-1', 'cheap-2')
        assert on(lease) == []
        assert world.lease(lease).degraded
        world.set_up('cheap-2')
        assert on(lease) == ['cheap-2']
        assert not world.lease(lease).degraded


class TestOption:
    @pytest.fixture
    def refusal(self, tmp_path):
        """refusal(text) -> the error of a manager started with this option."""

        def start(text):
            path = tmp_path / 'blazar-sched.conf'
            path.write_text(
                f'[manager]\ndefault_resource_properties = {text}\n'
            )
            with pytest.raises(ValueError) as refusal:
                Manager(service_conf.load(files=[path]))
            return str(refusal.value)

        return start

    @pytest.mark.parametrize('text', ['{', '["=="]', '["has", "$$a", "b"]'])
    def test_what_is_no_requirement_stops_the_manager(self, refusal, text):
        assert '[manager] default_resource_properties' in refusal(text)

    @pytest.mark.parametrize('name', ['kind', 'state_path', 'sync_interval'])
    def test_a_single_dollar_is_told_of(self, refusal, name):
        assert '$$' in refusal(f'["==", "${name}", "cheap"]')
