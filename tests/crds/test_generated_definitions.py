"""The generated CustomResourceDefinitions: fresh, structural, bounded, and as strict as the models.

The API server's own rules that can be judged without one are written out here, apart from the generator.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sayso_api import crds
from sayso_api.base import Part
from sayso_api.faults import ManifestError
from sayso_api.manifests import from_objects
from sayso_api.objects import KINDS
from sayso_api.structural import structural

FOLDER = Path(__file__).parents[2] / "crds" / "manifests"
Schema = dict[str, Any]
Node = tuple[str, Schema]

# JSONSchemaProps of apiextensions.k8s.io/v1, without what structural schemas forbid.
KEYWORDS = {
    *("type", "nullable", "description", "default", "enum", "format", "pattern", "required", "properties", "items"),
    *("additionalProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"),
}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
CEL_RESERVED = ("namespace", "function", "in", "as", "for", "if", "package", "return", "import", "const")


def walk(schema: Schema, path: str = "") -> Iterator[Node]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}")
    for word, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if word in schema:
            yield from walk(schema[word], path + mark)


@functools.cache
def definitions() -> dict[str, Schema]:
    return {data["spec"]["names"]["kind"]: data for data in map(yaml.safe_load, crds.files().values())}


def root(kind: str) -> Schema:
    (version,) = definitions()[kind]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def nodes() -> list[Node]:
    return [(kind + path, schema) for kind in KINDS for path, schema in walk(root(kind))]


def test_the_files_in_the_repository_are_fresh() -> None:
    assert crds.stale(FOLDER) == []
    assert crds.main(["--check", str(FOLDER)]) == 0


def test_a_stale_missing_or_left_over_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "manifests"
    shutil.copytree(FOLDER, folder)
    stale = folder / "sayso.dev_agents.yaml"
    stale.write_text(stale.read_text().replace("maxItems: 50", "maxItems: 51"))
    (folder / "sayso.dev_modelconfigs.yaml").unlink()
    (folder / "sayso.dev_old.yaml").write_text("")

    assert crds.main(["--check", str(folder)]) == 1

    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert "sayso.dev_agents.yaml is stale; run: make crds" in said[0]
    assert "sayso.dev_modelconfigs.yaml is missing" in said[1]
    assert "sayso.dev_old.yaml is generated from nothing" in said[2]


def test_written_files_are_found_fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main([str(tmp_path / "new")]) == 0

    assert len(capsys.readouterr().out.splitlines()) == len(KINDS)
    assert crds.stale(tmp_path / "new") == []


def test_no_file_makes_its_reader_follow_an_alias() -> None:
    for text in crds.files().values():
        assert not any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text))


def test_only_keywords_of_a_structural_schema_are_used() -> None:
    for path, schema in nodes():
        assert set(schema) <= KEYWORDS, path


def test_every_place_has_a_type_or_says_why_it_has_none() -> None:
    for path, schema in nodes():
        free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")

        assert schema.get("type") in TYPES or (free and "type" not in schema), path
        if schema.get("x-kubernetes-int-or-string"):
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert "anyOf" not in schema, path
        assert not {"properties", "additionalProperties"} <= set(schema), path
        assert ("items" in schema) == (schema.get("type") == "array"), path


def test_every_place_is_bounded_so_that_rules_have_a_cost() -> None:
    for path, schema in nodes():
        if schema.get("type") == "string" and "enum" not in schema and "format" not in schema:
            assert "maxLength" in schema or schema == {"type": "string"}, path
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


def test_a_default_is_a_value_that_the_place_itself_would_take() -> None:
    for path, schema in nodes():
        if "default" not in schema:
            continue
        value = schema["default"]
        assert value not in ("", [], {}, None), path
        assert isinstance(value, TYPES[schema.get("type", "string")]), path
        assert value in schema.get("enum", [value]), path
        assert re.search(schema.get("pattern", ""), str(value)), path


def test_lists_by_key_have_keys_that_are_always_there() -> None:
    for path, schema in nodes():
        kind = schema.get("x-kubernetes-list-type")
        if kind == "map":
            assert set(schema["x-kubernetes-list-map-keys"]) <= set(schema["items"]["required"]), path
        elif kind == "set":
            assert schema["items"]["type"] == "string", path
        else:
            assert kind is None, path


def test_every_field_says_what_leaving_it_out_means() -> None:
    for path, schema in nodes():
        for name, field in schema.get("properties", {}).items():
            if field.keys() <= {"type", "properties"} and name in ("apiVersion", "kind", "metadata"):
                continue  # Kubernetes describes these itself.
            if field == root("Agent")["properties"]["metadata"]["properties"]["name"]:
                continue
            required = name in schema.get("required", ())
            assert ("Required" in field["description"]) == required, f"{path}.{name}"
            assert ("Left out:" in field["description"]) != required, f"{path}.{name}"
        if "type" in schema:
            assert set(schema.get("required", ())) <= {*schema.get("properties", {})}, path


def test_rules_speak_of_fields_that_exist_and_spell_them_as_cel_does() -> None:
    for path, schema in nodes():
        for law in schema.get("x-kubernetes-validations", ()):
            assert law["message"].startswith("expected "), path
            assert law["rule"].count("(") == law["rule"].count(")"), path
            for name in re.findall(r"\bself\.(\w+)", law["rule"]):
                assert name.strip("_") in schema["properties"], f"{path}: {law['rule']}"
            for word in re.findall(r"\.(\w+)", law["rule"]):
                assert word not in CEL_RESERVED, f"{path}: {law['rule']}"


def test_a_gate_that_is_null_is_kept_for_the_operator_to_refuse() -> None:
    gates = [(path, schema) for path, schema in nodes() if path.endswith(".requireApproval")]

    assert len(gates) == 6
    assert all(schema.get("nullable") is True for _, schema in gates)
    tools: list[dict[str, dict[str, Any]]] = [
        {"mcpServer": {"name": "o"}},
        {"agent": {"name": "a"}},
        {"function": {"ref": "m:f"}},
    ]
    for value in tools:
        (tool,) = value.values()
        spec = {"instruction": "x", "modelConfig": "m", "tools": [value]}
        read = {"apiVersion": "sayso.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "x"}, "spec": spec}
        assert from_objects([read]).agents
        tool["requireApproval"] = None
        with pytest.raises(ManifestError, match="null"):
            from_objects([read])


def parts(model: type[Part]) -> Iterator[type[Part]]:
    yield model
    for field in model.model_fields.values():
        for found in re.findall(r"sayso_api\.\w+\.\w+", str(field.annotation)):
            module, _, name = found.rpartition(".")
            inner = getattr(__import__(module, fromlist=[name]), name)
            if isinstance(inner, type) and issubclass(inner, Part):
                yield from parts(inner)
        if isinstance(field.annotation, type) and issubclass(field.annotation, Part):
            yield from parts(field.annotation)


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_of_the_models_that_an_api_server_can_judge_is_in_the_definition(kind: str) -> None:
    wanted = {rule.cel for part in parts(KINDS[kind]) for rule in part.rules if rule.cel}
    found = {law["rule"] for _, schema in walk(root(kind)) for law in schema.get("x-kubernetes-validations", ())}

    assert wanted
    assert found == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_spec_and_status_of_the_definition_are_those_of_the_model(kind: str) -> None:
    model = structural(KINDS[kind])

    for part in ("spec", "status"):
        assert root(kind)["properties"][part] == model["properties"][part]


@pytest.mark.parametrize("kind", KINDS)
def test_a_definition_has_what_kubectl_shows(kind: str) -> None:
    data = definitions()[kind]
    names = data["spec"]["names"]
    (version,) = data["spec"]["versions"]

    assert data["metadata"]["name"] == f"{names['plural']}.sayso.dev"
    assert names["categories"] == ["sayso"]
    assert names["shortNames"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    for column in version["additionalPrinterColumns"]:
        place = root(kind)
        for step in re.sub(r"\[.*?\]", "[]", column["jsonPath"]).strip(".").split("."):
            if column["jsonPath"] == ".metadata.creationTimestamp":
                break
            place = place["properties"][step.removesuffix("[]")]
            place = place["items"] if step.endswith("[]") else place
        else:
            assert place["type"] == column["type"]


def test_agents_are_listed_with_what_a_person_wants_to_know_first() -> None:
    (version,) = definitions()["Agent"]["spec"]["versions"]
    shown = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]

    assert shown == ["Ready", "Accepted", "Gated", "Age"]


def test_no_two_kinds_share_a_short_name() -> None:
    short = [name for data in definitions().values() for name in data["spec"]["names"]["shortNames"]]

    assert len(short) == len(set(short))
