"""Which files are read, in which order, and what is said of those that cannot be."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sayso_api import documents
from sayso_api.faults import Fault, ManifestError
from sayso_api.manifests import from_objects, load

FaultsOf = Callable[..., list[Fault]]


def model(name: str, **metadata: str) -> dict[str, object]:
    return {
        "apiVersion": "sayso.dev/v1alpha1",
        "kind": "ModelConfig",
        "metadata": {"name": name, **metadata},
        "spec": {"provider": "Scripted"},
    }


def test_documents_files_and_directories_keep_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.yml").write_text(yaml.safe_dump(model("third")))
    (folder / "a.yaml").write_text("---\n" + yaml.safe_dump_all([model("second"), model("first")]) + "---\n# nothing\n")
    (folder / "notes.txt").write_text("not: [a manifest")
    (tmp_path / "last.json").write_text(json.dumps(model("fourth", namespace="shop")))

    found = load([folder, tmp_path / "last.json", folder / "a.yaml"])

    assert list(found.model_configs) == ["default/second", "default/first", "default/third", "shop/fourth"]


def test_standard_input_is_read_for_a_dash() -> None:
    assert list(load(["-"], stdin=io.StringIO(json.dumps(model("one")))).model_configs) == ["default/one"]
    assert list(load(["-"], stdin=io.StringIO(yaml.safe_dump(model("two")))).model_configs) == ["default/two"]
    flow = "{apiVersion: sayso.dev/v1alpha1, kind: ModelConfig, metadata: {name: x}, spec: {provider: Scripted}}"
    assert list(load(["-"], stdin=io.StringIO(flow)).model_configs) == ["default/x"]


def test_a_list_as_kubectl_writes_it_is_read_object_by_object(faults_of: FaultsOf, tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [model("one"), {**model("two"), "spec": {}}]}

    (fault,) = faults_of(yaml.safe_dump(listed))

    assert (fault.name, fault.path) == ("default/two", "items[1].spec.provider")

    listed["items"] = [{"apiVersion": "v1", "kind": "List", "items": [model("inner")]}]
    (tmp_path / "nested.yaml").write_text(yaml.safe_dump(listed))
    assert list(load([tmp_path / "nested.yaml"]).model_configs) == ["default/inner"]


def test_all_faults_of_all_files_come_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([{**model("one"), "spec": {}}, {**model("two"), "spec": 7}]))
    (tmp_path / "b.yaml").write_text("a: [1\n")

    with pytest.raises(ManifestError) as caught:
        load([tmp_path / "a.yaml", tmp_path / "missing.yaml", tmp_path / "b.yaml"])

    where = [(Path(fault.file).name, fault.document, fault.path) for fault in caught.value.faults]
    assert where == [
        ("missing.yaml", 0, ""),
        ("a.yaml", 1, "spec.provider"),
        ("a.yaml", 2, "spec"),
        ("b.yaml", 1, ""),
    ]
    text = str(caught.value)
    assert text.startswith("4 faults in the manifests\n")
    assert f"{tmp_path}/a.yaml:5 (document 1): ModelConfig default/one: spec.provider\n" in text
    assert all(set(fault.as_dict()) >= {"file", "document", "line", "path"} for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("text", "line", "path", "found", "expected"),
    [
        ("a: [1\n", 2, "", "flow sequence", "YAML"),
        ("a: 1\n\tb: 2\n", 2, "", "", "YAML"),
        ("a: *nothing\n", 1, "", "undefined alias", "YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "a", "first in line 1", "each key once"),
        ("a:\n  b: {c: 1, c: 1}\n", 2, "a.b.c", "a second time", "each key once"),
        ("[a]: 1\n", 1, "", "a key that is not text", "text as a key"),
        ("a: !!python/name:os.system x\n", 1, "a", "the tag", "a plain value"),
        ("a: !!set {x, y}\n", 1, "a", "the tag", "plain mappings"),
        ("a: .nan\n", 1, "a", ".nan", "JSON can write"),
        ("a: 1e999\n", 1, "a", "1e999", "JSON can write"),
        ('a: "\\ud800"\n', 1, "a", "surrogate", "whole characters"),
        ("a: &a [*a]\n", 1, "", "levels", "ordinary size"),
        ("<<: 1\n", 1, "", "<<", "with a mapping"),
    ],
)
def test_text_that_is_no_plain_yaml_is_a_fault_with_its_line(
    text: str, line: int, path: str, found: str, expected: str
) -> None:
    faults = documents.read("a.yaml", text)[1]

    assert faults[0].document == 1
    assert faults[0].line == line
    assert path == faults[0].path
    assert found in faults[0].found
    assert expected in faults[0].expected


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ('{"a": 1,}', "column", "JSON"),
        ('{"a": 1, "a": 1}', 'the key "a" twice', "each key once"),
        ('{"a": NaN}', "NaN", "ordinary numbers"),
        ('{"a": 1e999}', "1e999", "ordinary numbers"),
        ('{"a": "\\ud800"}', "surrogates", "JSON"),
        ("[" * 100_000, "recursion", "depth"),
    ],
)
def test_text_that_is_no_plain_json_is_a_fault(text: str, found: str, expected: str) -> None:
    (fault,) = documents.read("a.json", text)[1]

    assert found in fault.found
    assert expected in fault.expected


def test_a_small_file_cannot_become_a_huge_one() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    read, (fault,) = documents.read("a.yaml", "\n".join(levels))

    assert read == []
    assert "more than 200000 values" in fault.found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("2026-01-02", "2026-01-02"),
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("0x1f", 31),
        ("017", 15),
        ("0o17", 15),
        ("-0b11", -3),
        ("1_000", 1000),
        ("08", 8.0),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("+", "+"),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_a_plain_word_means_what_it_means_to_kubectl(text: str, value: object) -> None:
    (document,), faults = documents.read("a.yaml", f"a: {text}\n")

    assert faults == []
    assert document.data == {"a": value}
    assert type(document.data["a"]) is type(value)


def test_a_merged_mapping_fills_in_what_is_not_given() -> None:
    (document,), faults = documents.read("a.yaml", "base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n")

    assert faults == []
    assert document.data["use"] == {"x": 1, "y": 3}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=4))
def test_json_reads_as_itself(data: dict[str, object]) -> None:
    (document,), faults = documents.read("a.json", json.dumps(data))

    assert faults == []
    assert document.data == data


@given(st.text())
def test_no_text_at_all_ends_in_anything_but_documents_or_faults(text: str) -> None:
    read, faults = documents.read("a.yaml", text)

    assert all(isinstance(fault, Fault) for fault in faults)
    assert all(document.number > 0 for document in read)


@pytest.mark.parametrize(
    ("head", "path", "found", "expected", "fix"),
    [
        ({"apiVersion": "sayso.dev/v1alpha1", "kind": "Agnt"}, "kind", '"Agnt"', "Agent, ", "did you mean Agent?"),
        ({"apiVersion": "sayso.dev/v1", "kind": "Agent"}, "apiVersion", '"sayso.dev/v1"', "sayso.dev/v1alpha1", ""),
        ({"apiVersion": "sayso.io/v1alpha1", "kind": "Agent"}, "apiVersion", "sayso.io", "sayso.dev/v1alpha1", ""),
        ({"apiVersion": "sayso.dev/v1alpha1", "kind": "ApprovalPolicy"}, "kind", "does not know", "Agent, ", ""),
        ({"kind": "Agent"}, "apiVersion", "nothing", "sayso.dev/v1alpha1", ""),
        ({"apiversion": "x", "kind": "Agent"}, "apiVersion", "nothing", "sayso.dev", "apiversion should be apiVersion"),
        ({"apiVersion": "sayso.dev/v1alpha1"}, "kind", "nothing", "Agent, ", ""),
        ({"apiVersion": 1, "kind": "Agent"}, "apiVersion", "1", "sayso.dev/v1alpha1", ""),
    ],
)
def test_a_document_of_no_known_kind_is_a_fault(
    head: dict[str, object], path: str, found: str, expected: str, fix: str, faults_of: FaultsOf
) -> None:
    (fault,) = faults_of(yaml.safe_dump({**head, "metadata": {"name": "x"}, "spec": {}}))

    assert fault.path == path
    assert found in fault.found
    assert expected in fault.expected
    assert fix in fault.fix


def test_objects_of_other_systems_are_passed_over_and_named(tmp_path: Path, faults_of: FaultsOf) -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([other, model("one")]))

    assert load([tmp_path / "a.yaml"]).skipped == ("Deployment shop/web",)

    (fault,) = faults_of(yaml.safe_dump(other))
    assert "only Deployment shop/web" in fault.found


def test_a_secret_with_values_is_refused_with_the_variables_to_set_instead(faults_of: FaultsOf) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "model-keys"},
        "stringData": {"gemini": "hush-hush"},
        "data": {"open.ai": "aHVzaA=="},
    }

    (fault,) = faults_of(yaml.safe_dump(secret))

    assert fault.name == "default/model-keys"
    assert "SAYSO_SECRET_MODEL_KEYS_GEMINI, SAYSO_SECRET_MODEL_KEYS_OPEN_AI" in fault.fix
    assert "hush-hush" not in str(fault)


def test_two_objects_of_one_name_are_a_fault_that_names_both_places(faults_of: FaultsOf) -> None:
    (fault,) = faults_of(yaml.safe_dump_all([model("one"), model("one", namespace="default")]))

    assert (fault.document, fault.kind, fault.name) == (2, "ModelConfig", "default/one")
    assert "document 1" in fault.found


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n"])
def test_files_without_any_object_are_a_fault(text: str, faults_of: FaultsOf) -> None:
    (fault,) = faults_of(text)

    assert fault.found == "no object"


def test_files_that_are_no_text_or_too_large_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()

    with pytest.raises(ManifestError) as caught:
        load([tmp_path / "binary.yaml", tmp_path / "empty", "-"], stdin=io.StringIO("#" * (16 * 1024 * 1024 + 1)))

    assert {(Path(fault.file).name, fault.found) for fault in caught.value.faults} == {
        ("binary.yaml", "something that is not UTF-8 text, from byte 0 on"),
        ("empty", "a directory without *.yaml, *.yml or *.json"),
        ("<stdin>", "more than 16777216 characters"),
    }


def test_objects_from_an_api_server_are_judged_the_same_without_a_file() -> None:
    assert list(from_objects([model("one")]).model_configs) == ["default/one"]

    with pytest.raises(ManifestError) as caught:
        from_objects([{**model("two"), "spec": {"provider": "Scripted", "x": 1}}])

    (fault,) = caught.value.faults
    assert (fault.file, fault.document, fault.line, fault.path) == ("", 0, None, "spec.x")
    assert str(fault).startswith("ModelConfig default/two: spec.x\n")
