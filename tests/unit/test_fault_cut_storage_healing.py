"""cut-storage: healing leaves no rule behind, touches nothing else, and works from anywhere."""

from __future__ import annotations

import pytest
from cut_stack import Cut, a_checkpoint_fails, missing, nothing

from harness.errors import FaultError
from harness.faults.cut_storage import CutStorage

IN_PLACE = "the rules were there until they were removed"


def test_healing_removes_all_that_was_made_and_only_that() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.firewall.rules["jobmanager"]["INPUT"] = [["-j", "ACCEPT"]]
    fault = cut.whole(CutStorage())
    fault.heal(cut.stack)

    assert ["jobmanager"] == cut.firewall.cut_nodes()
    assert [["-j", "ACCEPT"]] == cut.firewall.rules["jobmanager"]["INPUT"]


def test_healing_twice_changes_nothing_and_keeps_the_proof() -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.whole(CutStorage())
    removals, proof = list(cut.firewall.removals), fault.proof()
    fault.heal(cut.stack)

    assert removals == cut.firewall.removals
    assert proof == fault.proof()
    assert proof.bit


def test_another_process_heals_it() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.struck(CutStorage())
    CutStorage().heal(cut.stack)

    assert [] == cut.firewall.cut_nodes()


def test_an_injection_that_breaks_off_is_healed_and_did_not_bite() -> None:
    cut = Cut(a_checkpoint_fails)
    cut.firewall.broken = {"taskmanager-2"}
    fault = CutStorage()
    with pytest.raises(FaultError, match=r"taskmanager-2: iptables failed with status 4: .*Permission"):
        fault.inject(cut.context)
    begun = cut.firewall.cut_nodes()
    cut.firewall.broken = set()
    fault.heal(cut.stack)

    assert ["jobmanager", "taskmanager-1"] == begun
    assert [] == cut.firewall.cut_nodes()
    assert not fault.proof().bit


def test_half_a_chain_is_healed() -> None:
    cut = Cut(nothing)
    cut.firewall.rules["taskmanager-1"]["HARNESS-CUT"] = [["-p", "tcp", "-j", "DROP"]]
    cut.firewall.rules["taskmanager-2"] |= {"HARNESS-CUT": [], "OUTPUT": [["-j", "HARNESS-CUT"]] * 2}
    CutStorage().heal(cut.stack)

    assert [] == cut.firewall.cut_nodes()


def test_a_chain_left_from_before_is_not_cut_over() -> None:
    cut = Cut(nothing)
    cut.firewall.rules["taskmanager-1"]["HARNESS-CUT"] = []
    with pytest.raises(FaultError) as caught:
        CutStorage().inject(cut.context)

    assert "taskmanager-1: iptables failed with status 1" in caught.value.what
    assert "if the chain is there already, `harness heal` removes it" == caught.value.todo


def test_a_rule_that_remains_is_an_error_after_all_nodes_were_healed() -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.firewall.stubborn = {"jobmanager"}
    with pytest.raises(FaultError, match="jobmanager: rules remain after healing: chain HARNESS-CUT"):
        fault.heal(cut.stack)

    assert ["jobmanager"] == cut.firewall.cut_nodes()


def test_a_node_whose_rules_cannot_be_read_is_an_error_of_healing() -> None:
    cut = Cut(a_checkpoint_fails)
    fault = cut.struck(CutStorage())
    cut.firewall.broken = {"taskmanager-1"}
    with pytest.raises(FaultError, match="taskmanager-1: iptables can't be read"):
        fault.heal(cut.stack)

    assert ["taskmanager-1"] == cut.firewall.cut_nodes()
    assert f"taskmanager-1: {IN_PLACE}" in missing(fault)
