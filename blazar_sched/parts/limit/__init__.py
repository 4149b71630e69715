# SPDX-License-Identifier: Apache-2.0
"""Limits of projects beyond those of a single lease's size and times."""
