"""What is said of a field that is wrong: where, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from sayso_api.faults import Fault

FaultsOf = Callable[..., list[Fault]]


def manifest(kind: str, spec: str, metadata: str = "{name: it, namespace: shop}") -> str:
    """One document, its spec in YAML's flow style."""
    return f"apiVersion: sayso.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"


AGENT_FAULTS = {
    "a misspelt field": (
        "{instrution: Help., instruction: Help., modelConfig: default}",
        ("spec.instrution", 'unknown field "instrution"', "instructionFrom", "did you mean instruction?"),
    ),
    "a field in Python's spelling": (
        "{instruction: Help., modelConfig: default, sub_agents: []}",
        ("spec.sub_agents", "unknown field", "subAgents", "did you mean subAgents?"),
    ),
    "a null": (
        "{instruction: Help., modelConfig: default, tools: null}",
        ("spec.tools", "null", "a value", "leave the field out"),
    ),
    "no instruction": (
        "{modelConfig: default}",
        ("spec", "none", "exactly one of instruction and instructionFrom", "give instruction"),
    ),
    "two instructions": (
        "{instruction: a, instructionFrom: {configMapKeyRef: {name: c, key: k}}, modelConfig: default}",
        ("spec", "instruction and instructionFrom", "exactly one of", "keep one"),
    ),
    "no model": ("{instruction: Help.}", ("spec.modelConfig", "nothing", "required", "")),
    "a name with capitals": (
        "{instruction: Help., modelConfig: Default}",
        ("spec.modelConfig", '"Default"', "a DNS label", ""),
    ),
    "a name that is too long": (
        "{instruction: Help., modelConfig: " + "a" * 64 + "}",
        ("spec.modelConfig", "64 characters", "1 to 63 characters", ""),
    ),
    "a tool of no kind": (
        "{instruction: Help., modelConfig: default, tools: [{}]}",
        ("spec.tools[0]", "none", "exactly one of mcpServer, agent and function", "give"),
    ),
    "a tool of two kinds": (
        "{instruction: Help., modelConfig: default, tools: [{agent: {name: a}, function: {ref: 'm:f'}}]}",
        ("spec.tools[0]", "agent and function", "exactly one of", "keep one"),
    ),
    "more than 50 tools": (
        "{instruction: Help., modelConfig: default, tools: ["
        + ", ".join(f"{{agent: {{name: a{i}}}}}" for i in range(51))
        + "]}",
        ("spec.tools", "51", "at most 50", ""),
    ),
    "a gate that guards nothing": (
        "{instruction: Help., modelConfig: default, tools: "
        "[{mcpServer: {name: orders, toolNames: [get_order, refund], requireApproval: [refund, refnd]}}]}",
        ("spec.tools[0].mcpServer.requireApproval[1]", '"refnd"', "get_order or refund", "did you mean refund?"),
    ),
    "a gate's glob that guards nothing": (
        "{instruction: Help., modelConfig: default, tools: "
        '[{mcpServer: {name: orders, toolNames: [get_order], requireApproval: ["cancel_*"]}}]}',
        ("spec.tools[0].mcpServer.requireApproval[0]", '"cancel_*"', "get_order", "add the tool"),
    ),
    "a gate list that is true": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: orders, requireApproval: true}}]}",
        ("spec.tools[0].mcpServer.requireApproval", "true", "a list", 'write ["*"] for all'),
    ),
    "a gate list that is a word": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: orders, requireApproval: refund}}]}",
        ("spec.tools[0].mcpServer.requireApproval", '"refund"', "a list", 'write ["refund"]'),
    ),
    "a gate list that is null": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: orders, requireApproval: }}]}",
        ("spec.tools[0].mcpServer.requireApproval", "null", "a value", "leave the field out"),
    ),
    "an approval that is null": (
        "{instruction: Help., modelConfig: default, tools: [{agent: {name: a, requireApproval: null}}]}",
        ("spec.tools[0].agent.requireApproval", "null", "a value", "leave the field out"),
    ),
    "a function's approval that is null": (
        "{instruction: Help., modelConfig: default, tools: [{function: {ref: 'a:f', requireApproval: null}}]}",
        ("spec.tools[0].function.requireApproval", "null", "a value", "leave the field out"),
    ),
    "a null in a gate list": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: orders, requireApproval: [~]}}]}",
        ("spec.tools[0].mcpServer.requireApproval[0]", "null", "text", ""),
    ),
    "a character class in a gate": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: o, requireApproval: ['[ab]*']}}]}",
        ("spec.tools[0].mcpServer.requireApproval[0]", '"[ab]*"', "* and ? only", ""),
    ),
    "a gate that stands twice": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: o, requireApproval: [a, a]}}]}",
        ("spec.tools[0].mcpServer.requireApproval[1]", "requireApproval[0]", "each only once", "remove one"),
    ),
    "an empty list of tools": (
        "{instruction: Help., modelConfig: default, tools: [{mcpServer: {name: o, toolNames: []}}]}",
        ("spec.tools[0].mcpServer.toolNames", "an empty list", "at least 1", ""),
    ),
    "one server in two entries": (
        "{instruction: Help., modelConfig: default, tools: "
        "[{mcpServer: {name: o, requireApproval: [a]}}, {mcpServer: {name: o, namespace: shop}}]}",
        ("spec.tools[1].mcpServer.name", "tools[0]", "each only once", "one entry"),
    ),
    "one function's name in two entries": (
        "{instruction: Help., modelConfig: default, tools: [{function: {ref: 'a:f'}}, {function: {ref: 'b:f'}}]}",
        ("spec.tools[1].function.ref", "tools[0]", "each only once", "one entry"),
    ),
    "one agent in two entries of a sub-agent": (
        "{instruction: Help., modelConfig: default, subAgents: "
        "[{name: s, instruction: x, tools: [{agent: {name: a}}, {agent: {name: a}}]}]}",
        ("spec.subAgents[0].tools[1].agent.name", "tools[0]", "each only once", "one entry"),
    ),
    "an agent tool without name and url": (
        "{instruction: Help., modelConfig: default, tools: [{agent: {requireApproval: true}}]}",
        ("spec.tools[0].agent", "none", "name or url", "name an Agent"),
    ),
    "an agent's namespace beside a url": (
        "{instruction: Help., modelConfig: default, tools: [{agent: {url: 'http://a.test', namespace: b}}]}",
        ("spec.tools[0].agent.namespace", "beside url", "only for an Agent", "remove it"),
    ),
    "an approval in words": (
        "{instruction: Help., modelConfig: default, tools: [{agent: {name: a, requireApproval: 'yes'}}]}",
        ("spec.tools[0].agent.requireApproval", '"yes"', "true or false", "without quotes"),
    ),
    "an approval as a number": (
        "{instruction: Help., modelConfig: default, tools: [{function: {ref: 'a:f', requireApproval: 1}}]}",
        ("spec.tools[0].function.requireApproval", "1", "true or false", ""),
    ),
    "a function without a module": (
        "{instruction: Help., modelConfig: default, tools: [{function: {ref: send}}]}",
        ("spec.tools[0].function.ref", '"send"', "module:attribute", ""),
    ),
    "two sub-agents of one name": (
        "{instruction: Help., modelConfig: default, subAgents: [{name: s, instruction: x}, {name: s, instruction: y}]}",
        ("spec.subAgents[1].name", "subAgents[0]", "each only once", "remove one"),
    ),
    "a sub-agent with the agent's name": (
        "{instruction: Help., modelConfig: default, subAgents: [{name: it, instruction: x}]}",
        ("spec.subAgents[0].name", "the Agent's own name", "a name of its own", "rename"),
    ),
    "a sub-agent's sub-agents": (
        "{instruction: Help., modelConfig: default, subAgents: [{name: s, instruction: x, subAgents: []}]}",
        ("spec.subAgents[0].subAgents", "unknown field", "tools", ""),
    ),
    "a word for whilePaused that is none": (
        "{instruction: Help., modelConfig: default, whilePaused: refuse}",
        ("spec.whilePaused", '"refuse"', "Refuse or CancelPause", "did you mean Refuse?"),
    ),
    "a word for allowedNamespaces that is none": (
        "{instruction: Help., modelConfig: default, allowedNamespaces: None}",
        ("spec.allowedNamespaces", '"None"', "Same or All", ""),
    ),
    "a selector without its conditions": (
        "{instruction: Help., modelConfig: default, allowedNamespaces: {selecter: {}}}",
        ("spec.allowedNamespaces.selecter", "unknown field", "selector", "did you mean selector?"),
    ),
    "a selector's comparison without values": (
        "{instruction: Help., modelConfig: default, allowedNamespaces: "
        "{selector: {matchExpressions: [{key: team, operator: In}]}}}",
        ("spec.allowedNamespaces.selector.matchExpressions[0].values", "no values", "at least one", ""),
    ),
    "a time limit without unit": (
        "{instruction: Help., modelConfig: default, approval: {timeout: 30}}",
        ("spec.approval.timeout", "30", "24h, 30m, 90s or 1h30m", "30s, 30m or 30h"),
    ),
    "a time limit in days": (
        "{instruction: Help., modelConfig: default, approval: {timeout: 7d}}",
        ("spec.approval.timeout", '"7d"', "24h, 30m, 90s or 1h30m", ""),
    ),
    "replicas in quotes": (
        "{instruction: Help., modelConfig: default, deployment: {replicas: '2'}}",
        ("spec.deployment.replicas", '"2"', "a whole number", "without quotes"),
    ),
    "fewer replicas than none": (
        "{instruction: Help., modelConfig: default, deployment: {replicas: -1}}",
        ("spec.deployment.replicas", "-1", "not below 0", ""),
    ),
    "a quantity that is none": (
        "{instruction: Help., modelConfig: default, deployment: {resources: {limits: {memory: 1 GB}}}}",
        ("spec.deployment.resources.limits.memory", '"1 GB"', "512Mi", ""),
    ),
    "two skills of one id": (
        "{instruction: Help., modelConfig: default, skills: [{id: a, name: A}, {id: a, name: B}]}",
        ("spec.skills[1].id", "skills[0]", "each only once", ""),
    ),
    "a spec that is a list": ("[]", ("spec", "an empty list", "a mapping", "")),
}

SERVER_FAULTS = {
    "neither url nor command": ("{timeoutSeconds: 5}", ("spec", "none", "exactly one of url and command", "")),
    "both url and command": (
        "{url: 'http://a.test', command: [x]}",
        ("spec", "url and command", "exactly one of url and command", "keep one"),
    ),
    "a url of another scheme": ("{url: 'ftp://a.test'}", ("spec.url", '"ftp://a.test"', "http:// or https://", "")),
    "an empty command": ("{command: []}", ("spec.command", "an empty list", "at least 1", "")),
    "headers for a command": (
        "{command: [x], headers: [{name: A, value: b}]}",
        ("spec.headers", "a list", "only together with url", "leave headers out"),
    ),
    "a variable for a url": (
        "{url: 'http://a.test', env: [{name: A, value: b}]}",
        ("spec.env", "a list", "only together with command", "leave env out"),
    ),
    "another transport for a command": (
        "{command: [x], transport: SSE}",
        ("spec.transport", '"SSE"', "only together with url", ""),
    ),
    "one header twice in other capitals": (
        "{url: 'http://a.test', headers: [{name: A, value: b}, {name: a, value: c}]}",
        ("spec.headers[1].name", "headers[0]", "each only once", ""),
    ),
    "a header with a line break": (
        '{url: "http://a.test", headers: [{name: A, value: "a\\r\\nB: c"}]}',
        ("spec.headers[0].value", "\\r\\n", "on one line", ""),
    ),
    "a variable without a value": (
        "{command: [x], env: [{name: A}]}",
        ("spec.env[0]", "none", "value and valueFrom", ""),
    ),
    "no check beside a CA": (
        "{url: 'https://a.test', tls: {insecureSkipVerify: true, caSecretRef: {name: ca, key: ca.crt}}}",
        ("spec.tls.insecureSkipVerify", "beside caSecretRef", "either", ""),
    ),
    "a time-out of no time": ("{url: 'http://a.test', timeoutSeconds: 0}", ("spec.timeoutSeconds", "0", "above 0", "")),
    "a time-out without end": (
        "{url: 'http://a.test', timeoutSeconds: 1e9}",
        ("spec.timeoutSeconds", "1000000000.0", "not above 86400", ""),
    ),
}

MODEL_FAULTS = {
    "an unknown provider": (
        "{provider: openai, model: x}",
        ("spec.provider", '"openai"', "Gemini, OpenAI, Anthropic, LiteLLM or Scripted", "did you mean OpenAI?"),
    ),
    "no provider": ("{model: x}", ("spec.provider", "nothing", "required", "")),
    "no model for a real provider": ("{provider: OpenAI}", ("spec.model", "nothing", "only provider Scripted", "add")),
    "a script for a real provider": (
        "{provider: OpenAI, model: x, scripted: {turns: []}}",
        ("spec.scripted", "provider OpenAI", "only with provider Scripted", "remove"),
    ),
    "a turn that says nothing": (
        "{provider: Scripted, scripted: {turns: [{delaySeconds: 1}]}}",
        ("spec.scripted.turns[0]", "an empty turn", "calls, text or fail", "say"),
    ),
    "arguments that are a list": (
        "{provider: Scripted, scripted: {turns: [{calls: [{name: a, args: [1]}]}]}}",
        ("spec.scripted.turns[0].calls[0].args", "a list", "a mapping", ""),
    ),
    "a temperature that is true": (
        "{provider: OpenAI, model: x, parameters: {temperature: true}}",
        ("spec.parameters.temperature", "true", "a number", ""),
    ),
    "a key of a Secret with spaces": (
        "{provider: OpenAI, model: x, apiKeySecretRef: {name: a, key: 'b c'}}",
        ("spec.apiKeySecretRef.key", '"b c"', "a key", ""),
    ),
    "tries by halves": (
        "{provider: OpenAI, model: x, parameters: {retries: 1.5}}",
        ("spec.parameters.retries", "1.5", "a whole number", ""),
    ),
}

TABLE = [
    pytest.param(kind, spec, *words, id=f"{kind} with {name}")
    for kind, faults in (("Agent", AGENT_FAULTS), ("MCPServer", SERVER_FAULTS), ("ModelConfig", MODEL_FAULTS))
    for name, (spec, words) in faults.items()
]


@pytest.mark.parametrize(("kind", "spec", "path", "found", "expected", "fix"), TABLE)
def test_a_wrong_field_is_one_fault_with_its_place_and_what_to_do(
    kind: str, spec: str, path: str, found: str, expected: str, fix: str, faults_of: FaultsOf
) -> None:
    text = manifest(kind, spec)
    assert yaml.safe_load(text)["kind"] == kind

    (fault,) = faults_of(text)

    assert (fault.kind, fault.name, fault.path) == (kind, "shop/it", path)
    assert found in fault.found
    assert expected in fault.expected
    assert fix in fault.fix if fix else True
    assert fault.document == 1
    assert fault.line == (4 if path.startswith("spec") else 3)


@pytest.mark.parametrize(
    ("metadata", "path", "found", "expected"),
    [
        ("{namespace: shop}", "metadata.name", "nothing", "required"),
        ("{name: It}", "metadata.name", '"It"', "DNS label"),
        ("{name: it, namespace: a.b}", "metadata.namespace", '"a.b"', "DNS label"),
        ("{name: it, namespce: shop}", "metadata.namespce", 'unknown field "namespce"', "namespace"),
        ("{name: it, labels: {a: 1}}", "metadata.labels.a", "1", "text"),
        ("{name: it, labels: {a.b/c: true}}", 'metadata.labels["a.b/c"]', "true", "text"),
    ],
)
def test_a_fault_in_the_metadata_is_found_too(
    metadata: str, path: str, found: str, expected: str, faults_of: FaultsOf
) -> None:
    (fault,) = faults_of(manifest("ModelConfig", "{provider: Scripted}", metadata))

    assert fault.path == path
    assert found in fault.found
    assert expected in fault.expected


def test_metadata_that_kubernetes_writes_is_no_fault(faults_of: FaultsOf) -> None:
    metadata = "{name: it, uid: u, generation: 3, creationTimestamp: null, managedFields: [], ownerReferences: []}"

    (fault,) = faults_of(manifest("ModelConfig", "{}", metadata))

    assert fault.path == "spec.provider"


def test_a_hostile_value_is_shown_short_and_without_control_characters(faults_of: FaultsOf) -> None:
    (fault,) = faults_of(manifest("ModelConfig", '{provider: "\\e[31m' + "x" * 5000 + '", model: x}'))

    assert "\x1b" not in str(fault)
    assert len(fault.found) < 200
