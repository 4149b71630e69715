# SPDX-License-Identifier: Apache-2.0
"""An offer above a limit: held, approved and accepted on the web page."""

import pytest

from tests.parts.page.browser.test_page import hold


@pytest.fixture
def options():
    return (
        '[enforcement]\nenabled_filters = MaxSizeFilter\n'
        'approval_filters = MaxSizeFilter\nmax_hosts_per_lease = 1\n'
        'max_size_exempt_project_ids = biology\n'
    )


def hold_two(world, browse):
    """Have alice hold two hosts; return alice and the card of the offer."""
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    with page.expect_response(
        lambda answer: '"min":2' in (answer.request.post_data or '')
    ):
        page.fill('#count', '2')
    alice.until(lambda: 'a limit of the project' in page.inner_text('#found'))
    card = hold(alice)
    alice.says('An administrator has to approve it first')
    return alice, card


def test_an_offer_waits_until_it_is_approved(world, browse):
    alice, card = hold_two(world, browse)
    assert 'a lease may have at most 1 hosts' in card.inner_text()
    assert card.locator('text="Accept"').is_disabled()
    root = browse(world)
    root.sign_in('admin', '')
    root.page.wait_for_selector('#approvals strong')
    shown = root.page.inner_text('#approvals')
    assert '2 hosts of project physics' in shown
    assert 'a lease may have at most 1 hosts' in shown
    # With the keyboard.
    root.page.focus('#approvals .primary')
    root.page.keyboard.press('Enter')
    root.says('The offer is approved')
    root.page.wait_for_selector('#approvals .empty')
    alice.page.reload()
    alice.sign_in()
    card.locator('text="Accept"').wait_for()
    assert card.locator('.approval').is_hidden()
    card.locator('input').fill('large')
    card.locator('text="Accept"').click()
    alice.says('large is booked')
    [reservation] = world.leases('alice:physics')['large']['reservations']
    assert reservation['min'] == 2


def test_an_offer_is_refused(world, browse):
    alice, card = hold_two(world, browse)
    root = browse(world)
    root.sign_in('admin', '')
    root.page.click('#approvals >> text="Refuse"')
    root.says('not held any more')
    root.page.wait_for_selector('#approvals .empty')
    alice.page.reload()
    alice.sign_in()
    assert card.count() == 0
    assert 'large' not in world.leases('alice:physics')
