# SPDX-License-Identifier: Apache-2.0
"""Leases on the web page: moved, changed, shared, and over."""

import datetime

import pytest

from tests.parts.page.browser.conftest import HOUR
from tests.standins.neutron import NETWORK

# What the policy of an operator may forbid.
FORBIDDEN = ('limits', 'products', 'flavors', 'floatingips', 'requests')


def lease(site, name):
    return site.leases('alice:physics')[name]


def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def middle(page, name):
    box = page.locator(f'.bar.mine:has-text("{name}")').first.bounding_box()
    return box['x'] + box['width'] / 2, box['y'] + box['height'] / 2


def test_a_lease_to_come_is_moved_by_its_bar(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    old = lease(world, 'night-batch')
    x, y = middle(page, 'night-batch')
    alice.drag((x, y), (x + 90, y), False)
    page.wait_for_selector('.ghost.yes')
    page.mouse.up()
    alice.says('there is room')
    page.click('text="Move"')
    alice.says('night-batch begins')
    new = lease(world, 'night-batch')
    moved = seconds(new['start_date']) - seconds(old['start_date'])
    assert moved > HOUR
    assert moved == seconds(new['end_date']) - seconds(old['end_date'])

    # A click without a move leads to the card.
    page.mouse.click(*middle(page, 'night-batch'))
    alice.until(lambda: page.evaluate(
        'document.activeElement.textContent'
    ) == 'night-batch')
    # What has started is not moved.
    page.wait_for_selector('#book:enabled')
    x, y = middle(page, 'training-run')
    alice.drag((x, y), (x + 90, y))
    assert page.locator('.ghost').count() == 0


def test_a_lease_is_changed_with_the_keyboard(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    old = lease(world, 'night-batch')
    later = page.evaluate('''async (start) => {
        const times = await import("./times.js");
        return times.toInput(times.parse(start) + times.HOUR);
    }''', old['start_date'])
    page.focus('[aria-label="Change: night-batch"]')
    page.keyboard.press('Enter')
    # The focus is in the dialog.
    page.keyboard.press('Control+A')
    page.keyboard.type('renamed')
    page.fill('#editor [name=start]', later)
    page.fill('#editor [name^=count]', '99')
    page.keyboard.press('Enter')
    # A refusal stays beside what was typed.
    alice.until(lambda: '99' in page.inner_text('#editor .bad'))
    page.fill('#editor [name^=count]', '2')
    page.select_option('#editor select', 'shelve')
    page.fill('#editor [name^=projects]', 'chemistry')
    page.focus('#editor .primary')
    page.keyboard.press('Enter')
    alice.says('renamed is changed')
    new = lease(world, 'renamed')
    [reservation] = new['reservations']
    assert (new['id'], new['end_date']) == (old['id'], old['end_date'])
    assert 0 < seconds(new['start_date']) - seconds(old['start_date']) <= HOUR
    assert reservation['max'] == 2
    assert reservation['projects'] == ['chemistry']
    page.locator('.card', has_text='Shared with chemistry').wait_for()
    page.locator('.card', has_text='servers are shelved').wait_for()

    # Another user ends the lease while the dialog is open.
    page.click('[aria-label="Change: renamed"]')
    world.send('DELETE', f'/leases/{new["id"]}', 'alice:physics')
    page.fill('#editor [name=name]', 'gone')
    page.keyboard.press('Enter')
    alice.until(lambda: 'not found' in page.inner_text('#editor .bad'))
    page.keyboard.press('Escape')
    page.locator('.card', has_text='renamed').wait_for(state='detached')


def test_a_lease_is_prolonged_as_far_as_possible(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    shown = page.locator('.card', has_text='night-batch').inner_text()
    page.focus('[aria-label^="Longest: prolong night-batch"]')
    page.keyboard.press('Enter')
    alice.says('there is room')
    page.click('#proposal .primary')
    alice.says('night-batch ends')
    assert lease(world, 'night-batch')['end_date'] == lease_of_bob(world)

    # It has no further room, once the card shows the new end.
    card = page.locator('.card', has_text='night-batch')
    alice.until(lambda: card.inner_text() != shown)
    page.click('[aria-label^="Longest: prolong night-batch"]')
    alice.says('night-batch cannot be prolonged')
    # A lease that is over is among the leases that have ended.
    page.click('[aria-label="End now: training-run"]')
    page.click('text="End it: sure?"')
    alice.says('training-run ends now')
    alice.until(lambda: 'Ended leases: 1' in page.inner_text('.own'))
    page.click('#ended summary')
    assert 'training-run (terminated): 1 host' in page.inner_text('#ended')
    page.click('#leave')
    page.wait_for_selector('#sign_in', state='visible')
    assert 'training-run' not in alice.text()


@pytest.mark.parametrize('options', [
    '[enforcement]\nenabled_filters = MaxLeaseDurationFilter,MaxLeasesFilter,'
    'MaxResourcesFilter\nmax_leases_per_project = 5\n'
    'max_lease_duration = 900000\nresource_weights = VCPU:0.1\n'
    'max_weight_hours_per_project = 200\n'
])
def test_limits_are_one_line_with_what_is_used(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    # Two leases of 10 h, each of a host with 16 VCPUs.
    assert page.inner_text('#limits') == (
        '2 of 5 leases, 32 of 200 weight x hours'
    )
    page.click('#book')
    alice.until(lambda: page.inner_text('#limits').startswith('3 of 5'))
    page.click('#leave')
    page.wait_for_selector('#sign_in', state='visible')
    assert 'of 5 leases' not in alice.text()


def lease_of_bob(site):
    """Return the start of the lease that takes all hosts."""
    return site.leases('admin')['secret-soon']['start_date']


def test_a_lease_of_several_reservations(site, browse):
    """Also shared, with a floating IP."""
    for number in (100, 101):
        answer = site.send(
            'POST', '/floatingips', floating_network_id=NETWORK,
            floating_ip_address=f'203.0.113.{number}',
        )
        assert answer.status_code == 201, answer.text
    alice = browse(site)
    alice.sign_in()
    page = alice.page
    page.click('#more summary')
    page.select_option('#on_end', 'keep')
    page.fill('#projects', 'chemistry, biology')
    page.click('#and')
    page.select_option('#kind', 'size')
    page.fill('#count', '2')
    page.fill('#name', 'mixed')
    for _ in range(2):
        page.click('#and_addresses')
    page.focus('[aria-label="Leave out: 1 floating IP"]')
    page.keyboard.press('Enter')
    assert page.locator('#further li').all_inner_texts() == [
        '1 host leave out', '1 floating IP leave out',
    ]
    page.locator('#book:enabled').wait_for()
    page.click('#book')
    alice.says('mixed is booked')
    page.locator(
        '.card', has_text='1 host, 1 floating IP, 2 instances'
    ).wait_for()
    hosts, _, instances = lease(site, 'mixed')['reservations']
    for each in hosts, instances:
        assert sorted(each['projects']) == ['biology', 'chemistry']
        assert each['on_end'] == 'keep'


def test_a_late_answer_gives_way(world, browse):
    """The user drags while the service looks how far a lease can go."""
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    waiting = []
    page.route('**/extension?*', lambda route: waiting.append(route))
    page.click('[aria-label^="Longest: prolong night-batch"]')
    alice.until(lambda: waiting)
    at = world.at(42)
    alice.drag(alice.point(at, 1), alice.point(at + 5 * HOUR, 1))
    alice.says('1 host')
    with page.expect_response('**/extension?*'):
        waiting[0].continue_()
    alice.says('there is room')
    assert 'night-batch' not in page.inner_text('#proposal')


def test_a_refusal_says_what_is_in_the_way(world, browse):
    alice, admin = browse(world), browse(world)
    free, taken = world.at(45), world.at(2)
    for person, user, project, texts in (
        (alice, 'alice', 'physics', [
            'In the way: own lease training-run on 1 host until',
            '; lease on 1 host until',
        ]),
        (admin, 'admin', '', [
            'lease training-run on compute-', 'lease secret-run on compute-',
        ]),
    ):
        person.sign_in(user, project)
        person.drag(person.point(free, 0), person.point(taken, 3))
        for text in texts:
            person.says(text)
    assert 'secret' not in alice.text()

    # A refusal beside what was typed says so, too.
    page = alice.page
    page.focus('[aria-label="Change: night-batch"]')
    page.keyboard.press('Enter')
    page.fill('#editor [name^=count]', '4')
    page.keyboard.press('Enter')
    alice.until(lambda: 'In the way: lease on 1 host' in page.inner_text(
        '#editor .bad'
    ))


def book(world, browse):
    """See a lease and book another one on the page, which is returned."""
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    page.locator('.card', has_text='night-batch').wait_for()
    page.locator('#book:enabled').wait_for()
    page.click('#book')
    alice.says('lease is booked')
    page.locator('#leases .name', has_text='lease').first.wait_for()
    return page


class TestForbidden:
    @pytest.fixture
    def options(self, tmp_path):
        file = tmp_path / 'policy.yaml'
        file.write_text(''.join(
            f'blazar:{noun}:get: "!"\n' for noun in FORBIDDEN
        ))
        return f'[oslo_policy]\npolicy_file = {file}\n'

    def test_the_page_shows_and_books_the_rest(self, world, browse):
        for noun in FORBIDDEN:
            answer = world.send('GET', f'/{noun}', 'alice:physics')
            assert answer.status_code == 403, noun
        page = book(world, browse)
        for kind in ('flavor', 'product'):
            assert page.locator(f'#kind [value={kind}]').is_disabled()


class TestWithoutParts:
    @pytest.fixture
    def options(self):
        return '[DEFAULT]\nparts = offer, page, timeline\n'

    def test_the_page_shows_and_books_the_rest(self, world, browse):
        for noun in ('requests', 'series'):
            answer = world.send('GET', f'/{noun}', 'alice:physics')
            assert answer.status_code == 404, noun
        book(world, browse)
