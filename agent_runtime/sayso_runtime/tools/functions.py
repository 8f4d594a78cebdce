"""Python functions in the agent's image as tools, named `module:attribute`.

The fence is checked as the last thing before the function is entered; everything that ADK does around it (argument
checks, the tool context, `require_confirmation`, questions asked from within) stays as it is.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from sayso_api.runtimeconfig import FunctionBinding
from sayso_runtime.tools.fence import check_fence
from sayso_runtime.tools.outcome import ConfigProblem

FUNCTION_SERVER = "function"
FUNCTION_SECONDS = 30.0


def load_function(binding: FunctionBinding) -> BaseTool:
    """The tool that a binding names, with `server`, `endpoint`, `tool`, `idempotent` and `timeout_seconds`.

    Plain and coroutine functions become a FunctionTool; a tool that is made already is used as it is (a copy: the
    module's own object stays untouched). Raises ConfigProblem.
    """
    target = resolve(binding.ref)
    if isinstance(target, BaseTool):
        tool = copy.copy(target)
    elif callable(target) and not inspect.isclass(target):
        tool = FunctionTool(target)
    else:
        what = "a class" if inspect.isclass(target) else f"of type {type(target).__name__}"
        raise ConfigProblem(f"function {binding.ref}: it is {what}; name a function or an ADK tool")
    _fence(tool)
    tool.__dict__.update(
        server=FUNCTION_SERVER,
        endpoint=f"function:{binding.ref}",
        tool=tool.name,
        idempotent=binding.idempotent,
        timeout_seconds=getattr(target, "timeout_seconds", FUNCTION_SECONDS),
    )
    return tool


def resolve(ref: str) -> Any:
    """What `module:attribute` names. Raises ConfigProblem, saying which half is wrong."""
    module_name, colon, path = ref.partition(":")
    if not colon or not module_name or not path:
        raise ConfigProblem(f"function {ref}: write it as module:attribute, such as shop_tools:send_voucher")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ConfigProblem(
                f"function {ref}: there is no module {module_name}. Is it in the agent's image, or on PYTHONPATH?"
            ) from None
        raise ConfigProblem(f"function {ref}: its module needs {error.name}, which is not installed") from error
    except Exception as error:
        raise ConfigProblem(
            f"function {ref}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise ConfigProblem(f"function {ref}: module {module_name} has no {path}") from None
    return found


def _fence(tool: BaseTool) -> None:
    """Put the check before the function, or before the whole run of a tool that has no function."""
    if isinstance(tool, FunctionTool):
        tool.func = fenced(tool.func)
        return
    run = tool.run_async

    @functools.wraps(run)
    async def run_fenced(**kwargs: Any) -> Any:
        check_fence(FUNCTION_SERVER)
        return await run(**kwargs)

    tool.__dict__["run_async"] = run_fenced


def fenced(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func` behind the fence, still of the same kind (plain, coroutine, generator) and with the same signature."""
    call = func if inspect.isroutine(func) or isinstance(func, functools.partial) else type(func).__call__
    if inspect.isasyncgenfunction(call):

        async def stream(*args: Any, **kwargs: Any) -> Any:
            check_fence(FUNCTION_SERVER)
            async for item in func(*args, **kwargs):
                yield item

        return _dressed(stream, func)
    if inspect.isgeneratorfunction(call):

        def generate(*args: Any, **kwargs: Any) -> Any:
            check_fence(FUNCTION_SERVER)
            yield from func(*args, **kwargs)

        return _dressed(generate, func)
    if inspect.iscoroutinefunction(call):

        async def wait(*args: Any, **kwargs: Any) -> Any:
            check_fence(FUNCTION_SERVER)
            return await func(*args, **kwargs)

        return _dressed(wait, func)

    def run(*args: Any, **kwargs: Any) -> Any:
        check_fence(FUNCTION_SERVER)
        return func(*args, **kwargs)

    return _dressed(run, func)


def _dressed(wrapper: Callable[..., Any], func: Callable[..., Any]) -> Callable[..., Any]:
    functools.update_wrapper(wrapper, func)
    if not hasattr(func, "__name__"):  # a callable object or a partial: ADK reads the name
        wrapper.__name__ = type(func).__name__
    return wrapper
