"""A request to end, by Ctrl-C or `kill`, that waits for the end of a step."""
import multiprocessing
import signal
from contextlib import contextmanager

STATUS = 130    # what a shell says of a program that Ctrl-C ended


class Interrupt:
    """Whether SIGINT or SIGTERM has come, while `heard()` lasts.

    A second one ends a process that is not patient. Workers are: their parent gives them notice of
    what a terminal may have told them before.
    """

    def __init__(self, patient=False):
        self.asked, self.patient = False, patient
        self.before = {}

    def note(self, number, frame):
        if not self.patient:
            signal.signal(number, self.before[number])
        if not self.asked:
            self.asked = True
            for worker in multiprocessing.active_children():
                worker.terminate()

    @contextmanager
    def heard(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.before[number] = signal.signal(number, self.note)
        try:
            yield self
        finally:
            for number, handler in self.before.items():
                signal.signal(number, handler)
