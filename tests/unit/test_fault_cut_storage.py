"""cut-storage: it bites only when rules, packets and jobs say so."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from cut_stack import (
    Cut,
    CutJob,
    a_checkpoint_fails,
    checkpoints_go_on,
    it_ends,
    it_restarts,
    missing,
    nothing,
)
from fake_firewall import STORAGE
from fakes import NODES, Calls

from harness import faults
from harness.errors import FaultError, FlinkError, UsageError
from harness.faults.cut_storage import CutStorage
from harness.model import Restore

FLINK = ["jobmanager", "taskmanager-1", "taskmanager-2"]
IN_PLACE = "the rules were there until they were removed"
STOPPED = "packets between it and the storage were stopped"


def test_it_bites_when_every_effect_was_seen() -> None:
    cut = Cut(a_checkpoint_fails)
    proof = cut.whole(CutStorage()).proof()

    assert proof.bit
    assert ("cut-storage", "jobmanager,taskmanager-1,taskmanager-2") == (proof.fault, proof.node)
    assert 0 <= time.time() * 1000 - proof.injected_at_ms < 60_000
    assert [
        f"jobmanager: {IN_PLACE}",
        f"taskmanager-1: {IN_PLACE}",
        f"taskmanager-1: {STOPPED}",
        f"taskmanager-2: {IN_PLACE}",
        f"taskmanager-2: {STOPPED}",
        "orders: a checkpoint failed or was late",
        "behavior-log: a checkpoint failed or was late",
    ] == [check.name for check in proof.checks]
    assert "chain HARNESS-CUT, 2 rules, jumps from INPUT, OUTPUT; 5 packets stopped" == proof.checks[0].actual


def test_it_cuts_the_flink_nodes_and_no_other_in_both_directions() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.struck(CutStorage())

    assert FLINK == cut.firewall.cut_nodes()
    chains = cut.firewall.rules["taskmanager-1"]
    assert [["-j", "HARNESS-CUT"]] == chains["INPUT"] == chains["OUTPUT"]
    assert [
        f"-p tcp -m tcp -d {STORAGE} --dport 9000 -j DROP",
        f"-p tcp -m tcp -s {STORAGE} --sport 9000 -j DROP",
    ] == [" ".join(rule) for rule in chains["HARNESS-CUT"]]


def test_the_jumps_come_before_rules_that_are_there_already() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.firewall.rules["jobmanager"]["OUTPUT"] = [["-j", "ACCEPT"]]
    cut.struck(CutStorage())

    assert [["-j", "HARNESS-CUT"], ["-j", "ACCEPT"]] == cut.firewall.rules["jobmanager"]["OUTPUT"]


def test_reject_resets_and_lets_its_own_resets_through() -> None:
    cut = Cut(it_restarts)
    cut.struck(CutStorage(mode="reject"))

    reset = "-j REJECT --reject-with tcp-reset"
    assert [
        f"-p tcp -m tcp -d {STORAGE} --dport 9000 {reset}",
        f"-p tcp -m tcp -s {STORAGE} --sport 9000 ! --tcp-flags RST RST {reset}",
    ] == [" ".join(rule) for rule in cut.firewall.rules["jobmanager"]["HARNESS-CUT"]]


def test_a_fault_that_was_never_injected_did_not_bite() -> None:
    assert not CutStorage().proof().bit


def test_no_packet_stopped_at_a_node_with_tasks_proves_nothing() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.firewall.packets["taskmanager-2"] = 0

    assert [f"taskmanager-2: {STOPPED}"] == missing(cut.whole(CutStorage()))


def test_the_jobmanager_and_an_idle_taskmanager_may_have_nothing_to_say() -> None:
    cut = Cut(a_checkpoint_fails)
    for job in cut.jobs:
        job.hosts = ("taskmanager-1",)
    cut.firewall.packets |= {"jobmanager": 0, "taskmanager-2": 0}

    assert [] == missing(cut.whole(CutStorage()))


@pytest.mark.parametrize("node", FLINK)
def test_a_node_that_restarted_under_the_cut_proves_nothing(node: str) -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.firewall.restart(node)
    fault.heal(cut.stack)

    assert f"{node}: {IN_PLACE}" in missing(fault)


def test_beyond_the_jobs_end_a_node_that_restarts_is_cut_off_again() -> None:
    def restarts_its_node(job: CutJob) -> None:
        if job.looks == 2:
            state = cut.stack.states["taskmanager-1"]
            cut.stack.states["taskmanager-1"] = replace(state, started_at="second")
            cut.firewall.restart("taskmanager-1")
        if job.looks > 4:
            job.ended = "FAILED"

    cut = Cut(restarts_its_node, it_ends)
    fault = cut.struck(CutStorage(mode="reject", until="job-failed", at_most_s=5))
    fault.heal(cut.stack)

    assert f"taskmanager-1: {IN_PLACE}" not in missing(fault)
    assert "1 restarted nodes cut off again" in fault.proof().checks[-2].actual


@pytest.mark.parametrize("hook", ["INPUT", "OUTPUT"])
def test_a_direction_that_was_open_again_proves_nothing(hook: str) -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.firewall.rules["taskmanager-1"][hook].clear()
    fault.heal(cut.stack)

    assert [f"taskmanager-1: {IN_PLACE}"] == missing(fault)


def test_a_chain_without_a_rule_proves_nothing() -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.firewall.rules["jobmanager"]["HARNESS-CUT"].clear()
    fault.heal(cut.stack)

    assert [f"jobmanager: {IN_PLACE}"] == missing(fault)


def test_a_node_that_is_down_when_it_is_healed_proves_nothing_and_is_no_error() -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.stack.revives = False
    cut.stack.execute("taskmanager-2", ["kill", "-KILL", "77"])
    fault.heal(cut.stack)

    assert [f"taskmanager-2: {IN_PLACE}", f"taskmanager-2: {STOPPED}"] == missing(fault)


def test_a_cut_that_was_not_looked_at_before_healing_proves_nothing() -> None:
    fault = Cut(a_checkpoint_fails).struck(CutStorage())

    assert {f"{node}: {IN_PLACE}" for node in FLINK} <= set(missing(fault))


def test_a_job_without_a_failed_checkpoint_proves_nothing() -> None:
    cut = Cut(a_checkpoint_fails, nothing)

    assert ["behavior-log: a checkpoint failed or was late"] == missing(cut.whole(CutStorage()))


def test_a_checkpoint_that_is_late_is_as_good_as_a_failed_one() -> None:
    assert [] == missing(Cut(nothing, late_s=0.02).whole(CutStorage()))


def test_a_job_whose_checkpoints_complete_is_not_late() -> None:
    cut = Cut(a_checkpoint_fails, checkpoints_go_on, late_s=0.2)

    assert ["behavior-log: a checkpoint failed or was late"] == missing(cut.whole(CutStorage()))


def test_checkpoints_that_failed_before_the_cut_prove_nothing() -> None:
    cut = Cut(nothing)
    for job in cut.jobs:
        job.failed = 7

    assert [
        "orders: a checkpoint failed or was late",
        "behavior-log: a checkpoint failed or was late",
    ] == missing(cut.whole(CutStorage()))


def test_a_restart_alone_is_an_effect_of_reject_and_not_of_drop() -> None:
    assert [] == missing(Cut(it_restarts).whole(CutStorage(mode="reject")))
    assert [
        "orders: a checkpoint failed or was late",
        "behavior-log: a checkpoint failed or was late",
    ] == missing(Cut(it_restarts).whole(CutStorage(mode="drop")))


def test_restarts_that_an_ended_job_reports_no_more_still_count() -> None:
    def restarts_and_ends(job: CutJob) -> None:
        job.restarted = 1 if job.looks == 2 else 0
        job.ended = "" if job.looks == 2 else "FAILED"

    def restarts_late(job: CutJob) -> None:
        job.restarted = 1 if job.looks > 2 else 0

    cut = Cut(restarts_and_ends, restarts_late)

    assert [] == missing(cut.whole(CutStorage(mode="reject", at_most_s=30)))


def test_neither_restart_nor_failed_checkpoint_is_no_effect_of_reject() -> None:
    cut = Cut(it_restarts, nothing)

    assert ["behavior-log: a checkpoint or its tasks failed"] == missing(cut.whole(CutStorage(mode="reject")))


def test_a_cut_that_does_not_cut_is_given_up_long_before_its_bound() -> None:
    cut = Cut(checkpoints_go_on)
    cut.firewall.packets = {node.name: 0 for node in NODES}
    began = time.monotonic()
    fault = cut.whole(CutStorage(port=9999, at_most_s=60))

    assert time.monotonic() - began < 30
    assert f"taskmanager-1: {STOPPED}" in missing(fault)
    expected = "given up, since checkpoints went on completing"
    assert fault.proof().checks[-1].actual.endswith(expected)


def test_the_cut_ends_at_its_bound() -> None:
    began = time.monotonic()
    fault = Cut(nothing).whole(CutStorage(at_most_s=0.2))

    assert time.monotonic() - began < 10
    assert "orders: a checkpoint failed or was late" in missing(fault)


def test_jobs_that_ended_are_started_from_their_retained_checkpoints() -> None:
    cut = Cut(it_ends)
    fault = cut.whole(CutStorage(mode="reject", until="job-failed"))

    assert [] == missing(fault)
    for job in cut.jobs:
        path, why = job.lives[-1]
        assert f"s3://flink/checkpoints/{job.name}/chk-7" == path
        assert why.startswith("FAILED: the storage was cut off")
    assert "behavior-log: restored from its retained checkpoint" == fault.proof().checks[-1].name


def test_a_job_that_outlived_the_cut_proves_nothing_and_is_left_alone() -> None:
    cut = Cut(it_ends, it_restarts)
    fault = cut.whole(CutStorage(mode="reject", until="job-failed"))

    assert [
        "behavior-log: used up its restarts",
        "behavior-log: restored from its retained checkpoint",
    ] == missing(fault)
    assert [("", "")] == cut.jobs[1].lives
    assert [] == cut.jobs[1].calls.made


def test_a_job_that_was_not_started_again_proves_nothing() -> None:
    cut = Cut(it_ends)
    fault = cut.struck(CutStorage(until="job-failed"))
    fault.heal(cut.stack)

    assert [f"{job.name}: restored from its retained checkpoint" for job in cut.jobs] == missing(fault)


def test_a_job_without_a_retained_checkpoint_is_not_started_from_nothing() -> None:
    cut = Cut(it_ends)
    cut.jobs[0].retained = ""
    fault = cut.whole(CutStorage(until="job-failed"))

    assert ["orders: restored from its retained checkpoint"] == missing(fault)
    assert [("", "")] == cut.jobs[0].lives


def test_a_job_restored_from_another_checkpoint_proves_nothing() -> None:
    class Elsewhere(CutJob):
        def last_restore(self) -> Restore | None:
            return Restore(
                checkpoint_id=3, at_ms=1, is_savepoint=False, path="s3://flink/checkpoints/orders/chk-3"
            )

    cut = Cut(it_ends)
    cut.jobs = (Elsewhere(it_ends), cut.jobs[1])

    assert ["orders: restored from its retained checkpoint"] == missing(
        cut.whole(CutStorage(until="job-failed"))
    )


def test_a_job_that_failed_where_it_should_have_recovered_is_not_started_again() -> None:
    def both(job: CutJob) -> None:
        job.failed, job.ended = 1, "FAILED"

    cut = Cut(both)
    cut.whole(CutStorage(mode="reject"))

    assert [[("", "")], [("", "")]] == [job.lives for job in cut.jobs]


def test_a_job_that_cannot_be_started_is_told_with_the_engines_message() -> None:
    cut = Cut(it_ends)
    cut.jobs[0].calls = Calls(start_from=FlinkError("no such checkpoint"))
    fault = cut.whole(CutStorage(until="job-failed"))

    assert ["orders: restored from its retained checkpoint"] == missing(fault)
    assert "not started: no such checkpoint" in [check.actual for check in fault.proof().checks]


def test_an_answer_that_does_not_come_is_waited_for() -> None:
    def refused_once(job: CutJob) -> None:
        if job.looks == 2:
            raise FlinkError("GET /checkpoints: status 500")
        job.failed = 1

    cut = Cut(refused_once)

    assert [] == missing(cut.whole(CutStorage(at_most_s=30)))


def test_without_a_taskmanager_with_tasks_nothing_is_cut() -> None:
    cut = Cut(nothing)
    for job in cut.jobs:
        job.hosts = ()
    with pytest.raises(FaultError, match="no TaskManager holds tasks"):
        CutStorage().inject(cut.context)

    assert [] == cut.firewall.cut_nodes()


@pytest.mark.parametrize("answer", ["", "no-address\n", "fe80::1 STREAM storage\n", "1.2.3.4;reboot STREAM"])
def test_a_storage_that_cannot_be_resolved_is_refused_before_anything_is_cut(answer: str) -> None:
    cut = Cut(nothing)
    cut.firewall.storage = answer
    with pytest.raises(FaultError, match="jobmanager can't resolve storage"):
        CutStorage().inject(cut.context)

    assert [] == cut.firewall.cut_nodes()


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"mode": "delay"}, "cut-storage: mode is 'delay'"),
        ({"until": "later"}, "cut-storage: until is 'later'"),
        ({"port": 0}, "cut-storage: port is 0"),
        ({"port": "9000"}, "cut-storage: port is '9000'"),
        ({"at_most_s": -1}, "cut-storage: at_most_s is -1"),
        ({"at_most_s": True}, "cut-storage: at_most_s is True"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters: dict[str, str | int], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        faults.make("cut-storage", parameters)

    assert what == caught.value.what
