"""Easy tasks first: stages of a training run whose prior has other options than its own.

`"curriculum"` of a configuration's training part is a list of

    prior    options that stand in place of the prior's while the stage lasts
    until    the log density of a target at which it ends: the mean over its last `STEPS` steps

After the last stage the prior is the configuration's own. Where a stage never gets as far it lasts
to the end of the run: tasks that are not learnt are not made harder.
"""

STEPS = 40


class Curriculum:
    """Which stage a run is in, and the densities of its last steps."""

    def __init__(self, stages):
        self.stages, self.stage, self.recent = stages, 0, []

    @property
    def ended(self):
        return self.stage == len(self.stages)

    def prior(self, prior):
        """The prior of the next step."""
        return prior if self.ended else {**prior, **self.stages[self.stage]["prior"]}

    def heard(self, density):
        """The density of a step; True where the stage ends with it."""
        self.recent = [*self.recent, density][-STEPS:]
        mean = sum(self.recent) / len(self.recent)
        if len(self.recent) < STEPS or mean < self.stages[self.stage]["until"]:
            return False
        self.stage, self.recent = self.stage + 1, []
        return True

    def state(self):
        return {"stage": self.stage, "recent": self.recent}

    def restore(self, state):
        self.stage, self.recent = state["stage"], list(state["recent"])
