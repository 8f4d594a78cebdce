"""Documents say what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from sayso_api.objects import KINDS

DOCUMENTS = ("README.md", "docs/index.md", "docs/concepts.md", "docs/doors.md", "docs/performance.md")


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_quick_starts_commands_are_targets(root: Path, command: str) -> None:
    assert f"\n{command}\n" in (root / "README.md").read_text()
    assert re.search(rf"^{command.split()[1]}: ", (root / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_target_that_is_named_exists(root: Path, name: str) -> None:
    targets = set(re.findall(r"^(\w+):", (root / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make (\w+)`", (root / name).read_text())) <= targets


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_to_a_file(root: Path, name: str) -> None:
    page = root / name
    links = [link for link in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_folder_of_tests_that_is_named_has_tests(root: Path, name: str) -> None:
    folders = set(re.findall(r"`(tests/\w+)`", (root / name).read_text()))
    assert [folder for folder in folders if not list((root / folder).glob("test_*.py"))] == []


def test_the_readmes_agent_is_valid_and_gates_what_the_example_gates(root: Path) -> None:
    shown = yaml.safe_load(re.search(r"```yaml\n(.+?)```", (root / "README.md").read_text(), re.DOTALL)[1])
    KINDS[shown["kind"]].model_validate(shown)
    example = next(yaml.safe_load_all((root / "examples/refund-desk/agent.yaml").read_text()))
    assert shown["spec"]["tools"] == example["spec"]["tools"]
    assert shown["metadata"] == example["metadata"]


def generate(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the generator of the reference."""
    command = [sys.executable, root / "tools" / "gen_docs.py", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


def test_the_reference_is_what_the_code_says(root: Path) -> None:
    checked = generate(root, "--check")
    assert checked.returncode == 0, checked.stderr


def test_a_page_that_is_stale_missing_or_left_over_is_named(root: Path, tmp_path: Path) -> None:
    assert generate(root, tmp_path).returncode == 0
    (tmp_path / "agent.md").write_text((tmp_path / "agent.md").read_text() + "more\n")
    (tmp_path / "refusals.md").unlink()
    (tmp_path / "gone.md").write_text("of an earlier version\n")
    checked = generate(root, "--check", tmp_path)
    assert checked.returncode == 1
    assert "(agent.md, gone.md, refusals.md)" in checked.stderr
    assert generate(root, tmp_path).returncode == 0
    assert generate(root, "--check", tmp_path).returncode == 0
