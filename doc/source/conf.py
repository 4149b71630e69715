# SPDX-License-Identifier: Apache-2.0
"""How the guides and references are built.

Everything that lists options, rules, commands or metrics is made from the code
when the pages are built, so none of it is written twice. Nothing is fetched.
"""

import importlib.metadata
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'ext'))

extensions = [
    'myst_parser',
    'openstackdocstheme',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'reno.sphinxext',
    'show_metrics',
    'sphinxarg.ext',
]

project = 'blazar-sched'
copyright = 'blazar-sched maintainers'
version = release = importlib.metadata.version('blazar-sched')
html_theme = 'openstackdocs'
templates_path = ['../templates']
# The project has no page at OpenStack's own places, and counts no readers.
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_use_storyboard = False
html_theme_options = {
    'analytics_tracking_code': '',
    'display_badge': False,
    'sidebar_mode': 'toc',
}
pygments_style = 'native'

# Links to a heading of the same page, as the API reference has them.
myst_heading_anchors = 2
myst_enable_extensions = ['deflist']
# The pages of the API reference are made for each version alike.
suppress_warnings = ['myst.header']
