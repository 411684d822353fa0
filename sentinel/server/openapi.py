"""`/v1/openapi.json`, built from the same table of operations and the same models that serve the calls."""

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import models_json_schema

from sentinel import __version__
from sentinel.rooms.hoop_wire import (
    WireAccount,
    WireConversation,
    WireMedia,
    WireMember,
    WireMessage,
    WirePage,
)
from sentinel.server.http import Access, Operation

_REF = "#/components/schemas/{model}"
_REPLIES = (WireAccount, WireMember, WireMedia, WireMessage, WirePage, WireConversation)


def describe(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    operations = list(operations)
    taken = dict.fromkeys(one.takes for one in operations if one.takes is not None)
    _, schemas = models_json_schema(
        [*((model, "validation") for model in taken), *((model, "serialization") for model in _REPLIES)],
        ref_template=_REF,
    )
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "HOOP", "version": __version__, "description": "The HOOP wire protocol, v1."},
        "paths": paths,
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Problem": _problem()},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "hoop_session"},
            },
        },
    }


def _operation(one: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": one.summary,
        "responses": {
            str(int(one.status)): _good(one),
            "default": {
                "description": "refused",
                "content": {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}},
            },
        },
    }
    steps = [step[1:-1] for step in one.path.split("/") if step.startswith("{")]
    parameters = [_parameter(step, "path") for step in steps] + [
        _parameter(name, "query") for name in one.query
    ]
    if parameters:
        described["parameters"] = parameters
    if one.takes is not None:
        schema = {"$ref": _REF.format(model=one.takes.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if one.access is not Access.OPEN:
        described["security"] = [
            {"bearer": []},
            {"cookie": []},
            *([{}] if one.access is Access.EITHER else []),
        ]
    return described


def _parameter(name: str, where: str) -> dict[str, Any]:
    kind = "integer" if name in {"after", "limit"} else "string"
    return {"name": name, "in": where, "required": where == "path", "schema": {"type": kind}}


def _good(one: Operation) -> dict[str, Any]:
    if one.gives is None:
        return {"description": "done"}
    schema: dict[str, Any] = {"$ref": _REF.format(model=one.gives.__name__)}
    if one.gives_many:
        schema = {"type": "array", "items": schema}
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "errors": {
                "type": "array",
                "items": {"type": "object", "properties": {"field": text, "what": text}},
            },
        },
    }
