# SPDX-License-Identifier: Apache-2.0
# The types of what is used of python-novaclient, which has none itself.
