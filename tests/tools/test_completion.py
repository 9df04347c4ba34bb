# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""tools/kofiblk.bash: python3 -m unittest discover tests/tools"""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


def complete(*words, path=TOOLS):
    """Return the words that bash offers in place of the last word."""
    text = """
        . "$0/kofiblk.bash"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _kofiblk "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\\n' "${COMPREPLY[@]}"
        """
    run = subprocess.run(["bash", "-c", text, TOOLS, *words], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False,
                         env={**os.environ, "PATH": f"{path}:{TOOLS}:{os.environ['PATH']}"})
    return run.stdout.split()


class Completion(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(complete("kofiblk", "re"), ["reset"])
        self.assertEqual(complete("kofiblk", "acc"), ["accept-loss"])
        self.assertEqual(set(complete("kofiblk-config", "")), {"save", "restore", "check", "status"})
        self.assertEqual(complete("kofiblk-server", "sta"), ["start", "status"])

    def test_options(self):
        self.assertEqual(complete("kofiblk", "connect", "10.0.0.1", "--secr"), ["--secret-file"])
        self.assertEqual(complete("kofiblk", "disconnect", "--fo"), ["--force"])
        self.assertEqual(complete("kofiblk", "reset", "--fo"), [])
        self.assertEqual(complete("kofiblk-server", "status", "--j"), ["--json"])
        self.assertEqual(complete("kofiblk-server", "start", "--j"), [])

    def test_names(self):
        with tempfile.TemporaryDirectory() as fake:
            path = pathlib.Path(fake) / "kofi_info"
            path.write_text("#!/bin/sh\nfor f in efa-direct efa; do\n"
                            "printf 'provider: efa\\n    fabric: %s\\n    domain: es0\\n' $f\n"
                            "done\n")
            path.chmod(0o755)
            for option, names in (("prov", {"efa"}), ("fabric", {"efa", "efa-direct"}),
                                  ("domain", {"es0"})):
                self.assertEqual(set(complete("kofiblk", "connect", "10.0.0.1", f"--{option}",
                                              "e", path=fake)), names)

    def test_files(self):
        self.assertIn(f"{TOOLS}/kofiblk-config",
                      complete("kofiblk", "connect", "--secret-file", f"{TOOLS}/kofiblk"))
        self.assertIn(f"{TOOLS}/kofiblk-config",
                      complete("kofiblk-config", "check", f"{TOOLS}/kofiblk"))


if __name__ == "__main__":
    unittest.main()
