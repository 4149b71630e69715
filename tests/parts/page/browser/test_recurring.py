# SPDX-License-Identifier: Apache-2.0
"""Lease requests and series on the web page."""

import re

from tests.parts.page.browser.conftest import HOUR
from tests.parts.page.browser.test_page import look_again
from tests.parts.page.browser.test_page import SCRIPT


def requests_of(site):
    answer = site.send('GET', '/requests', 'alice:physics')
    return {
        each['name']: each for each in answer.json()['requests']
        if each['status'] == 'WAITING'
    }


def test_what_finds_no_room_waits(site, browse):
    lease = site.book('bob:biology', 'secret-year', 0, 100 * 24, hosts=4)
    alice = browse(site)
    alice.sign_in()
    page = alice.page
    alice.until(lambda: 'No room' in page.inner_text('#found'))
    page.fill('#name', SCRIPT)
    page.dblclick('#wait_for')
    alice.says(f'{SCRIPT} waits for room, at position 1.')
    card = page.locator('#requests .card')
    card.wait_for()
    assert 'waiting, position 1' in card.inner_text()
    assert re.search(
        'Room is expected .*, which is too late', card.inner_text()
    )
    assert list(requests_of(site)) == [SCRIPT]

    # With the keyboard.
    page.fill('#name', 'patient')
    page.fill('#length', '5 h')
    alice.until(lambda: 'No room' in page.inner_text('#found'))
    latest = page.evaluate('''async () => {
        const times = await import("./times.js");
        return times.toInput(times.now() + 95 * times.DAY);
    }''')
    page.fill('#latest', latest)
    page.focus('#wait_for')
    page.keyboard.press('Enter')
    alice.says('patient waits for room, at position 2.')
    page.focus(f'[aria-label="Drop: {SCRIPT}"]')
    page.keyboard.press('Enter')
    page.keyboard.press('Enter')
    alice.says(f'{SCRIPT} does not wait any more.')
    alice.until(lambda: card.count() == 1)
    assert list(requests_of(site)) == ['patient']

    # Room comes.
    site.send('DELETE', f'/leases/{lease["id"]}', 'bob:biology')
    alice.until(lambda: look_again(page) and 'patient' in
                page.inner_text('#leases'))
    assert page.locator('#requests').is_hidden()


def test_a_start_that_is_late_need_not_be(site, browse):
    """Room now is waited for, too, while there is room only later."""
    site.book('bob:biology', 'secret-day', 0, 24, hosts=4)
    alice = browse(site)
    alice.sign_in()
    page = alice.page
    alice.until(lambda: page.inner_text('#found').startswith('from '))
    assert page.is_visible('#wait')
    page.click('#wait_for')
    alice.says('lease waits for room, at position 1.')
    # A request that another member has removed is no longer there.
    [request] = requests_of(site).values()
    site.send('DELETE', f'/requests/{request["id"]}', 'alice:physics')
    page.click('[aria-label="Drop: lease"]')
    page.click('text="Drop it: sure?"')
    page.locator('#requests').wait_for(state='hidden')


def recur(alice, rule, times):
    """Choose a series of leases named course."""
    page = alice.page
    page.fill('#name', 'course')
    page.select_option('#rule', label=rule)
    page.fill('#times', times)
    page.wait_for_selector('#book:enabled')


def series_of(site):
    [series] = site.send('GET', '/series', 'alice:physics').json()['series']
    answer = site.send('GET', f'/series/{series["id"]}', 'alice:physics')
    return answer.json()['series']


def test_a_series_is_booked_changed_and_ended_as_one(site, browse):
    alice = browse(site)
    alice.sign_in()
    page = alice.page
    recur(alice, 'every week', '3')
    page.dblclick('#book')
    alice.says('course: 3 leases booked.')
    card = page.locator('.card.series')
    card.wait_for()
    assert 'every week at' in card.inner_text()
    assert '3 times' in card.inner_text()
    # One card holds the leases, of which one is cancelled.
    assert page.locator('#leases > .card').count() == 1
    card.locator('summary').click()
    inner = card.locator('.card')
    assert inner.count() == 3
    inner.nth(1).locator('text="Cancel"').click()
    page.click('text="Cancel it: sure?"')
    alice.until(lambda: inner.count() == 2)

    # With the keyboard; what is refused stays to be corrected.
    page.focus('[aria-label="Change all: course"]')
    page.keyboard.press('Enter')
    page.fill('#editor [name=length]', '30 d')
    page.keyboard.press('Enter')
    alice.until(lambda: 'has not ended' in page.inner_text('#editor'))
    page.fill('#editor [name=length]', '2 h')
    page.keyboard.press('Enter')
    alice.says('course: 3 leases booked.')
    page.locator('#editor').wait_for(state='hidden')
    assert series_of(site)['duration'] == 2 * HOUR
    alice.until(lambda: 'for 2 h' in card.inner_text())

    # The bar of an occurrence leads to its card.
    page.click('#leases summary')
    page.locator('.bar.mine').first.click()
    card.locator('.card.selected').wait_for()
    page.focus('[aria-label="End all: course"]')
    page.keyboard.press('Enter')
    page.keyboard.press('Enter')
    alice.says('course is ended')
    card.wait_for(state='detached')
    assert site.leases('alice:physics') == {}


def test_occurrences_without_room(site, browse):
    site.book('bob:biology', 'secret-soon', 20, 30, hosts=4)
    alice = browse(site)
    alice.sign_in()
    page = alice.page
    recur(alice, 'every day', '3')
    page.fill('#length', '1 h')
    page.wait_for_selector('#book:enabled')
    at = site.at(3)
    alice.drag(alice.point(at, 1), alice.point(at + 2 * HOUR, 1))
    page.wait_for_selector('#proposal .bad')
    page.click('text="Book what has room"')
    alice.says('course: 2 leases booked, 1 without room.')
    page.click('#leases summary')
    page.locator('.card.series .bad', has_text='Without room: ').wait_for()

    # The series is ended elsewhere.
    series = series_of(site)
    site.send('DELETE', f'/series/{series["id"]}', 'alice:physics')
    page.click('[aria-label="End all: course"]')
    page.click('text="End all: sure?"')
    page.wait_for_selector('#proposal .bad')
    page.locator('.card.series').wait_for(state='detached')
