# SPDX-License-Identifier: Apache-2.0
"""What the page adds to the tables of the tests: nothing."""
