# SPDX-License-Identifier: Apache-2.0
"""Offers: windows with room, of which one can be held for a while."""
