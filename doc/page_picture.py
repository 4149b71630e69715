# SPDX-License-Identifier: Apache-2.0
"""Make the picture of the web page in the user's guide, from the real page.

``python doc/page_picture.py`` needs what ``make test-page`` needs, and the
demonstration.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from playwright.sync_api import sync_playwright

PICTURE = pathlib.Path(__file__).parent / 'source/user/page.png'
BROWSER = os.environ.get('BLAZAR_SCHED_TEST_BROWSER', '/usr/bin/chromium')


def address(demo):
    """Return the address of the page, once the demonstration prints it."""
    for line in demo.stdout:
        found = re.match(r'http://\S+/ui/', line)
        if found:
            return found[0]
    raise SystemExit('the demonstration has ended')


def take(url):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=['--no-sandbox', '--disable-gpu']
        )
        page = browser.new_page(
            viewport={'width': 1180, 'height': 830}, locale='en-GB',
            timezone_id='Europe/Berlin',
        )
        page.goto(f'{url}#span=4d')
        page.fill('#fields input[name=user]', 'alice')
        page.click('#enter')
        page.wait_for_selector('.bar.mine')
        page.wait_for_selector('#strip svg')
        # No bar is hovered over.
        page.mouse.move(5, 5)
        page.wait_for_timeout(1000)
        page.screenshot(path=PICTURE)
        browser.close()


def main():
    demo = subprocess.Popen(
        [sys.executable, '-m', 'demo', '--keep'], stdout=subprocess.PIPE,
        text=True,
    )
    try:
        take(address(demo))
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait()


if __name__ == '__main__':
    main()
