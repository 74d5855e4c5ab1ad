"""The engine alone, bench/engine.c, in a process that answers commands.

SPDX-License-Identifier: PostgreSQL
"""
import subprocess
import sys


class EngineProcess:
    def __init__(self, path, program="build/bench-engine"):
        self.process = subprocess.Popen([program, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def say(self, command):
        """The lines of the answer; where there is none the program ends."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = []
        for line in self.process.stdout:
            if not line.strip():
                return answer
            answer.append(line)
        sys.exit(f"the engine ended at {command}")
