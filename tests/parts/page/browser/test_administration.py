# SPDX-License-Identifier: Apache-2.0
"""What administrators do on the web page."""

from tests.parts.page.browser.test_page import focused


def maintenances(site):
    found = site.send('GET', '/maintenances').json()['maintenances']
    return {each['name']: each for each in found}


def test_a_maintenance_is_planned_after_a_look(world, browse):
    """With the keyboard, and the mouse."""
    admin = browse(world)
    admin.sign_in('admin', '')
    page = admin.page
    page.wait_for_selector('#maintenances .empty')
    page.focus('#plan')
    page.keyboard.press('Enter')
    page.keyboard.type('psu')
    page.keyboard.press('Enter')
    # A refusal stays beside what was typed.
    admin.until(lambda: 'required' in page.inner_text('#editor .bad'))
    hosts = [f'compute-{number}' for number in range(1, 5)]
    page.fill('#editor [name=hosts]', ', '.join(hosts))
    page.keyboard.press('Enter')
    admin.says('psu, ')
    # All hosts are closed, and no lease has room elsewhere.
    shown = page.inner_text('#proposal')
    assert '4 hosts (compute-1, compute-2, compute-3, compute-4)' in shown
    assert 'secret-soon of biology has no room elsewhere' in shown
    assert maintenances(world) == {}
    admin.until(lambda: focused(page) == 'Plan it all the same')
    page.keyboard.press('Enter')
    admin.says('psu is planned')
    page.wait_for_selector('#maintenances strong')
    assert maintenances(world)['psu']['hosts'] == hosts
    page.wait_for_selector('.bar.maintenance')
    page.click('#maintenances button')
    page.click('#maintenances .danger')
    admin.says('psu is over')
    page.wait_for_selector('#maintenances .empty')
    # A member sees nothing of this.
    alice = browse(world)
    alice.sign_in()
    assert alice.page.locator('#plan').is_hidden()


def test_a_lease_of_another_project_has_a_card(world, browse):
    admin = browse(world)
    admin.sign_in('admin', '')
    page = admin.page
    # With the keyboard, from the list.
    list_ = page.locator('#any_lease')
    list_.locator('option >> nth=4').wait_for(state='attached')
    list_.focus()
    page.keyboard.type('secret-s')
    assert list_.locator('option:checked').inner_text() == (
        'secret-soon, project biology'
    )
    page.keyboard.press('Tab')
    page.keyboard.press('Enter')
    card = page.locator('#foreign .card.selected')
    card.wait_for()
    assert 'Project biology' in card.inner_text()
    assert page.locator('#leases .card').count() == 0
    page.focus('[aria-label="Cancel: secret-soon"]')
    page.keyboard.press('Enter')
    page.keyboard.press('Enter')
    admin.says('secret-soon is cancelled')
    card.wait_for(state='detached')
    # By its bar.
    page.locator('.bar.lease', has_text='secret-run').first.click()
    card.wait_for()
    admin.until(lambda: focused(page) == 'secret-run')
    page.click('[aria-label="End now: secret-run"]')
    page.click('text="End it: sure?"')
    admin.says('secret-run ends now')
    card.wait_for(state='detached')
