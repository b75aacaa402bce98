"""Fixtures that several test files share."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import evidence_folders
import pytest

from harness.model import Evidence


@pytest.fixture(scope="session")
def clean_evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Made once: tests spoil copies of it."""
    return evidence_folders.evidence(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def evidence(clean_evidence: Evidence, tmp_path: Path) -> Evidence:
    """A clean run's evidence in a folder of the test's own, to be spoiled."""
    shutil.copytree(clean_evidence.folder, tmp_path, dirs_exist_ok=True)
    return replace(clean_evidence, folder=str(tmp_path))
