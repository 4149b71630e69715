# SPDX-License-Identifier: Apache-2.0
"""A person in front of the web page in Chromium."""

import contextlib
import re
import time

# Seconds.
PATIENCE = 60
FLAGS = (
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update',
    '--disable-sync',
)


@contextlib.contextmanager
def chromium(program):
    """Run the browser, with an empty folder of its own."""
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=list(FLAGS)
        )
        yield browser
        browser.close()


class Person:
    """A user in front of the page, in a session of the browser."""

    def __init__(self, browser, url, **options):
        context = browser.new_context(**{
            'viewport': {'width': 1280, 'height': 900},
            'timezone_id': 'Europe/Berlin', 'locale': 'en-GB', **options,
        })
        context.set_default_timeout(PATIENCE * 1000)
        self.page = page = context.new_page()
        self.url = url
        self.violations = []
        # Every text that came from the service.
        self.answers = []
        page.on('console', self._note)
        page.on('pageerror', lambda e: self.violations.append(str(e)))
        page.on('response', self._keep)
        page.add_init_script(
            'document.addEventListener("securitypolicyviolation", (e) => '
            'console.error("CSP " + e.violatedDirective + e.blockedURI))'
        )

    def _note(self, message):
        # Chromium reports each status of an error; the page expects some.
        if message.type in ('error', 'warning') and not re.match(
            'Failed to load resource', message.text
        ):
            self.violations.append(message.text)

    def _keep(self, response):
        if '/v1/' in response.url:
            self.answers.append(response)

    def open(self, hash_='#span=4d'):
        self.page.goto(f'{self.url}{hash_}')
        self.page.wait_for_selector('#fields input')

    def enter(self, **values):
        """Fill in the fields of the dialog."""
        for name, value in values.items():
            self.page.fill(f'#fields input[name={name}]', value)
        self.page.click('#enter')
        self.page.wait_for_selector('#sign_in', state='hidden')

    def sign_in(self, user='alice', project='physics', hash_='#span=4d'):
        self.open(hash_)
        self.enter(user=user, project=project)
        self.ready()

    def until(self, condition):
        """Wait for a condition; the page may evaluate no text for it."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.page.inner_text('body')
            self.page.wait_for_timeout(30)

    def ready(self):
        self.page.wait_for_selector('.row')
        for part in ('#found', '#now', '#leases'):
            self.until(lambda part=part: self.page.inner_text(part) not in (
                '', 'searching…'
            ))

    def box(self):
        """Return the left end and the top of the lanes, and their width."""
        box = self.page.locator('.lane').first.bounding_box()
        rows = self.page.locator('#rows').bounding_box()
        return box['x'], rows['y'], box['width']

    def point(self, at, row):
        """Return where a time is in a row."""
        left, top, width = self.box()
        start, span = self.page.evaluate('''async () => {
            const { View } = await import("./view.js");
            const view = new View(() => {});
            return [view.start, view.span];
        }''')
        return left + (at - start) / span * width, top + 34 * row + 17

    def drag(self, start, end, release=True):
        """Drag from one point to another."""
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
        mouse.move(*end, steps=3)
        if release:
            mouse.up()

    def says(self, text):
        """Wait until the notice has a text, and the rows are drawn."""
        self.until(lambda: text in self.page.text_content('#proposal'))
        # The text changes at once, the rows in the next frame.
        self.page.evaluate('() => new Promise(requestAnimationFrame)')

    def text(self):
        """Return the text of the whole document, with its attributes."""
        return self.page.evaluate('document.documentElement.outerHTML')
