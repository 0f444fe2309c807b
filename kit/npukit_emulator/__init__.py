# SPDX-License-Identifier: GPL-2.0-only
"""The built-in emulator's worker: a separate process, under the GPL because of its link to Unicorn (see COPYING).

Nothing outside this folder imports the package; `npukit.emulator.builtin` talks to the worker through a pipe.
"""
