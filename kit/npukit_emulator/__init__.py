# SPDX-License-Identifier: GPL-2.0-only
"""The built-in emulator's worker: a separate process, under the GPL because it links to Unicorn (see COPYING).

Nothing outside this folder imports it; `npukit.emulator.builtin` talks to it through a pipe.
"""
