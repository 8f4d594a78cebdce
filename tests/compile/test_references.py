"""What does not fit together: missing, forbidden and circular references, each with its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sayso_api.compile import compile_agent, validate
from sayso_api.faults import CompileError, Fault
from sayso_api.manifests import Manifests, from_objects

Read = Callable[[str], Manifests]

MODEL = "kind: ModelConfig\nmetadata: {name: default, namespace: %s}\nspec: {provider: Scripted}\n"
SHOP = MODEL % "shop"


def agent(name: str, spec: str, namespace: str = "shop") -> str:
    head = f"kind: Agent\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
    return head + f"spec: {{instruction: Help., modelConfig: default, {spec}}}\n"


def faults_of(manifests: Manifests, key: str = "shop/desk") -> tuple[Fault, ...]:
    with pytest.raises(CompileError) as caught:
        compile_agent(manifests.agents[key], manifests, agent_url=lambda namespace, name: "http://agent.test")
    return caught.value.faults


MISSING = {
    "server": ("tools: [{mcpServer: {name: orders}}]", "spec.tools[0].mcpServer.name", "no MCPServer shop/orders"),
    "agent": ("tools: [{agent: {name: other}}]", "spec.tools[0].agent.name", "no Agent shop/other"),
    "server elsewhere": (
        "tools: [{mcpServer: {name: orders, namespace: tools}}]",
        "spec.tools[0].mcpServer.name",
        "no MCPServer tools/orders",
    ),
    "sub-agent's server": (
        "subAgents: [{name: s, instruction: x, tools: [{mcpServer: {name: orders}}]}]",
        "spec.subAgents[0].tools[0].mcpServer.name",
        "no MCPServer shop/orders",
    ),
    "sub-agent's text": (
        "subAgents: [{name: s, instructionFrom: {configMapKeyRef: {name: prompts, key: k}}}]",
        "spec.subAgents[0].instructionFrom.configMapKeyRef.name",
        "no ConfigMap shop/prompts",
    ),
}


@pytest.mark.parametrize(("spec", "path", "found"), MISSING.values(), ids=MISSING)
def test_a_missing_object_is_named_with_who_refers_to_it(spec: str, path: str, found: str, read: Read) -> None:
    (fault,) = faults_of(read(agent("desk", spec) + SHOP))

    assert (fault.kind, fault.name, fault.path, fault.found) == ("Agent", "shop/desk", path, found)
    assert "add " in fault.fix
    assert (fault.document, fault.line) == (1, 5)
    assert fault.file.endswith("manifests.yaml")


def test_a_missing_model_is_looked_for_in_the_agents_namespace_only(read: Read) -> None:
    (fault,) = faults_of(read(agent("desk", "tools: []") + MODEL % "elsewhere"))

    assert (fault.path, fault.found) == ("spec.modelConfig", "no ModelConfig shop/default")
    assert fault.fix.endswith("there is one at elsewhere/default")


def test_a_misspelt_reference_is_answered_with_the_likely_one(read: Read) -> None:
    server = "kind: MCPServer\nmetadata: {name: orders, namespace: shop}\nspec: {url: 'http://o.test'}\n"

    (fault,) = faults_of(read(agent("desk", "tools: [{mcpServer: {name: order}}]") + SHOP + server))

    assert fault.fix == "did you mean orders?"


@pytest.mark.parametrize(
    ("data", "found"), [("{other: x}", "no such key"), ('{desk: "  "}', "an empty text"), ("{}", "no such key")]
)
def test_a_config_map_without_the_text_is_a_fault_at_the_key(data: str, found: str, read: Read) -> None:
    desk = agent("desk", "tools: []").replace(
        "instruction: Help.", "instructionFrom: {configMapKeyRef: {name: prompts, key: desk}}"
    )
    prompts = f"kind: ConfigMap\nmetadata: {{name: prompts, namespace: shop}}\ndata: {data}\n"

    (fault,) = faults_of(read(desk + SHOP + prompts))

    assert (fault.path, fault.found) == ("spec.instructionFrom.configMapKeyRef.key", found)
    assert 'key "desk" in ConfigMap shop/prompts' in fault.expected


def test_all_faults_of_an_agent_come_at_once(read: Read) -> None:
    spec = "tools: [{mcpServer: {name: a}}, {agent: {name: b}}, {agent: {name: desk}}]"

    faults = faults_of(read(agent("desk", spec)))

    assert [fault.path for fault in faults] == [
        "spec.modelConfig",
        "spec.tools[0].mcpServer.name",
        "spec.tools[1].agent.name",
        "spec.tools[2].agent.name",
    ]


ALLOWED = {
    "Same": False,
    "All": True,
    "{selector: {}}": True,
    "{selector: {matchLabels: {team: a}}}": True,
    "{selector: {matchLabels: {team: b}}}": False,
    "{selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}": True,
    "{selector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]}}": True,
    "{selector: {matchExpressions: [{key: team, operator: NotIn, values: [a, b]}]}}": False,
    "{selector: {matchExpressions: [{key: team, operator: Exists}]}}": True,
    "{selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}": False,
    "{selector: {matchExpressions: [{key: none, operator: NotIn, values: [a]}]}}": True,
    "{selector: {matchLabels: {team: a}, matchExpressions: [{key: none, operator: Exists}]}}": False,
}


@pytest.mark.parametrize("target", ["MCPServer", "Agent"])
@pytest.mark.parametrize(("allowed", "permitted"), ALLOWED.items())
def test_another_namespace_refers_only_where_it_is_allowed(
    allowed: str, permitted: bool, target: str, read: Read
) -> None:
    field = "mcpServer" if target == "MCPServer" else "agent"
    text = agent("desk", f"tools: [{{{field}: {{name: it, namespace: tools}}}}]") + SHOP + MODEL % "tools"
    text += "kind: Namespace\nmetadata: {name: shop, labels: {team: a}}\n"
    if target == "Agent":
        text += agent("it", f"allowedNamespaces: {allowed}", namespace="tools")
    else:
        text += "kind: MCPServer\nmetadata: {name: it, namespace: tools}\n"
        text += f"spec: {{url: 'http://o.test', allowedNamespaces: {allowed}}}\n"
    manifests = read(text)

    faults = validate(manifests)

    assert bool(faults) is not permitted
    for fault in faults:
        assert fault.path == f"spec.tools[0].{field}.namespace"
        assert "namespace shop" in fault.found
        assert f"{target} tools/it" in fault.expected
        assert faults_of(manifests) == (fault,)


def test_an_agent_that_calls_itself_is_refused(read: Read) -> None:
    (fault,) = faults_of(read(agent("desk", "tools: [{agent: {name: desk, namespace: shop}}]") + SHOP))

    assert (fault.path, fault.found) == ("spec.tools[0].agent.name", "the Agent itself")


def test_agents_that_call_each_other_in_a_circle_are_refused_with_the_way(read: Read) -> None:
    sub = "subAgents: [{name: s, instruction: x, tools: [{agent: {name: desk}}]}]"
    manifests = read(
        agent("desk", "tools: [{agent: {name: b}}]")
        + agent("b", "tools: [{agent: {name: c}}, {agent: {name: leaf}}]")
        + agent("c", sub)
        + agent("leaf", "tools: []")
        + agent("outside", "tools: [{agent: {name: desk}}]")
        + SHOP
    )

    for key, way in {
        "shop/desk": "shop/desk → shop/b → shop/c → shop/desk",
        "shop/b": "shop/b → shop/c → shop/desk → shop/b",
        "shop/c": "shop/c → shop/desk → shop/b → shop/c",
    }.items():
        (fault,) = faults_of(manifests, key)
        assert fault.found == f"a circle: {way}"
    assert faults_of(manifests, "shop/c")[0].path == "spec.subAgents[0].tools[0].agent.name"
    for key in ("shop/leaf", "shop/outside"):
        compile_agent(manifests.agents[key], manifests, agent_url=lambda namespace, name: "http://agent.test")
    assert [fault.name for fault in validate(manifests)] == ["shop/desk"]


def test_two_agents_may_call_a_third_one(read: Read) -> None:
    spec = "tools: [{agent: {name: b}}, {agent: {name: c}}]"
    both = agent("b", "tools: [{agent: {name: c}}]") + agent("c", "tools: []")

    assert validate(read(agent("desk", spec) + both + SHOP)) == []


def test_agents_elsewhere_need_names_that_differ(read: Read) -> None:
    urls = "tools: [{agent: {url: 'http://a.test/1'}}, {agent: {url: 'http://a.test/2'}}]"

    (fault,) = faults_of(read(agent("desk", urls) + SHOP))

    assert (fault.path, fault.found) == ("spec.tools[1].agent", "an agent called a-test, as tools[0] is")


def test_faults_of_all_agents_are_listed_in_the_order_of_the_files(read: Read) -> None:
    missing = "tools: [{mcpServer: {name: orders}}]"

    faults = validate(read(agent("z", missing) + agent("a", missing) + SHOP))

    assert [(fault.name, fault.document) for fault in faults] == [("shop/z", 1), ("shop/a", 2)]
    text = str(CompileError(faults))
    assert text.startswith("2 faults between the manifests\n")
    assert "(document 2): Agent shop/a: spec.tools[0].mcpServer.name\n    found:    no MCPServer shop/orders\n" in text


def test_objects_without_files_have_faults_without_files() -> None:
    spec = {"instruction": "Help.", "modelConfig": "none"}
    manifests = from_objects(
        [{"apiVersion": "sayso.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "x"}, "spec": spec}]
    )

    (fault,) = validate(manifests)

    assert str(fault).startswith("Agent default/x: spec.modelConfig\n")
