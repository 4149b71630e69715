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
    'api_reference',
    'cliff.sphinxext',
    'myst_parser',
    'name_release',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'oslo_policy.sphinxpolicygen',
    'reno.sphinxext',
    'show_metrics',
    'sphinx.ext.autodoc',
    'sphinxarg.ext',
]

project = 'blazar-sched'
copyright = 'blazar-sched maintainers, under the Apache License 2.0'
version = release = importlib.metadata.version('blazar-sched')
html_title = f'blazar-sched {version}'
# It loads nothing from other places.
html_theme = 'furo'
html_static_path = ['../static']
html_css_files = ['tables.css']
html_copy_source = False

man_pages = [
    ('reference/cli', 'blazar-sched', 'reservation service for Nova', '', 8),
]

# The commands are those of `openstack`. Members of the SDK's own classes are
# described there.
autoprogram_cliff_application = 'openstack'
autodoc_default_options = {'members': True}

# Written into the sources when the pages are built, and not kept there.
config_generator_config_file = [
    ('../../etc/config-generator.conf', 'samples/blazar-sched'),
    ('../../etc/nova-config-generator.conf', 'samples/nova-blazar-sched'),
]
policy_generator_config_file = '../../etc/policy-generator.conf'
sample_policy_basename = 'samples/blazar-sched'

# Links to a heading of the same page, as the API reference has them.
myst_heading_anchors = 2
myst_enable_extensions = ['deflist']
# The pages of the API reference are made for each version alike.
suppress_warnings = ['myst.header']
