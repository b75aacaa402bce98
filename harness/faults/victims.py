"""Which TaskManager a fault strikes: one that holds tasks of the jobs, chosen by the seed."""

from __future__ import annotations

from harness.errors import FaultError
from harness.model import Check, Role
from harness.ports import FaultContext

VICTIMS = ("holding", "idle")


def choose(context: FaultContext, wanted: str = "holding") -> tuple[str, dict[str, int]]:
    """A victim, and how many tasks of each job it holds.

    `holding` is one that runs tasks of every job, or of some if there is no such; `idle` one that runs
    none. Raises FaultError when there is none.
    """
    managers = sorted(node.name for node in context.stack.nodes() if node.role is Role.TASKMANAGER)
    places = {job.name: job.places() for job in context.jobs}
    held = {
        manager: {
            name: sum(place.taskmanager == manager for place in found) for name, found in places.items()
        }
        for manager in managers
    }
    some = [manager for manager in managers if any(held[manager].values())]
    if wanted == "idle":
        candidates = [manager for manager in managers if manager not in some]
    else:
        candidates = [manager for manager in some if all(held[manager].values())] or some
    if not candidates:
        raise FaultError(f"no TaskManager is {wanted}: tasks per TaskManager are {held}")
    victim = context.rng.choice(candidates)
    return victim, held[victim]


def held_tasks(held: dict[str, int]) -> Check:
    """The check that a victim held tasks at all."""
    return Check(
        name="the victim held tasks of the jobs",
        expected="at least 1 task",
        actual=", ".join(f"{name} {tasks} tasks" for name, tasks in held.items()) or "0 tasks",
        held=sum(held.values()) > 0,
    )
