# SPDX-License-Identifier: Apache-2.0
"""Products on the web page."""

import json
import os

import pytest

from tests.parts.page.browser import __main__ as main
from tests.parts.page.browser.conftest import HOUR
from tests.parts.page.browser.test_page import check

PRODUCTS = [
    {
        'name': 'rack', 'resource_type': 'physical:host',
        'resource_properties': ['==', '$$rack', '7'],
        'description': 'A host in rack 7',
    },
    {
        'name': 'half', 'resource_type': 'virtual:instance', 'vcpus': 8,
        'memory_mb': 1536, 'disk_gb': 1, 'projects': ['physics'],
    },
]


@pytest.fixture
def options():
    return '[manager]\n' + ''.join(
        f'product = {json.dumps(each)}\n' for each in PRODUCTS
    )


def products(page):
    return page.locator('#product_name option').all_text_contents()


def reservation(site, name):
    [found] = site.leases('alice:physics')[name]['reservations']
    count = found['max' if 'max' in found else 'amount']
    return found['product'], found['resource_type'], count


def test_a_product_is_booked_with_the_keyboard(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    shown = [
        'rack: 1 free for a day, whole hosts, A host in rack 7',
        'half: 4 free for a day, 8 vCPUs, 1.5 GB, 1 GB disk',
    ]
    alice.until(lambda: products(page))
    assert products(page) == shown
    page.focus('#kind')
    page.keyboard.type('units')
    page.keyboard.press('Tab')
    page.keyboard.type('half')
    # The property of a host is not asked of a product.
    assert page.locator('#with').is_hidden()
    page.fill('#name', 'of-half')
    page.locator('#book:enabled').wait_for()
    page.focus('#book')
    page.keyboard.press('Enter')
    alice.says('of-half is booked')
    assert reservation(world, 'of-half') == ('half', 'virtual:instance', 1)
    page.locator('.card', has_text='1 × half').wait_for()
    # The list now shows what is left.
    alice.until(lambda: '3 free' in products(page)[1])


def test_a_product_is_booked_by_a_drag(world, browse):
    alice = browse(world)
    alice.sign_in()
    page = alice.page
    page.select_option('#kind', 'product')
    page.select_option('#product_name', 'rack')
    at = world.at(42)
    alice.drag(alice.point(at, 1), alice.point(at + 5 * HOUR, 2))
    alice.says('2 hosts')
    page.click('#proposal .primary')
    alice.says('booked')
    assert reservation(world, 'lease') == ('rack', 'physical:host', 2)


def test_each_project_is_offered_its_own_products(world, browse):
    bob = browse(world)
    bob.sign_in('bob', 'biology')
    page = bob.page
    bob.until(lambda: len(products(page)) == 1)
    page.click('#leave')
    page.wait_for_selector('#sign_in', state='visible')
    assert products(page) == []


def test_accessibility(world, browse):
    admin = browse(
        world, viewport={'width': 360, 'height': 800}, bypass_csp=True
    )
    admin.sign_in('admin', '')
    page = admin.page
    page.select_option('#kind', 'product')
    admin.until(lambda: products(page))
    page.fill('#count', '2')
    page.locator('#wait').wait_for()
    page.add_script_tag(path=os.environ[main.AXE])
    assert check(page) == []
    # Nothing is wider than the screen.
    assert page.evaluate('document.documentElement.scrollWidth') <= 360
