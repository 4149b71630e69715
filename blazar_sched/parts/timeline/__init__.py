# SPDX-License-Identifier: Apache-2.0
"""The timeline: what takes the hosts in a window, row by row."""
